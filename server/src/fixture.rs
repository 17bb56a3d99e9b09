//! Requests for unit tests: a configuration from text, a worker that serves with it, and a head as it would come.
//!
//! Nothing is opened: no listener, no cache, no log file. What touches the network is tested with the real binary.

use crate::admission;
use crate::generation::{Bounds, Edition, Generation, Handshakes, Shared, SharedLogs, Zones};
use crate::reads::Reads;
use crate::request::{ConnectionFacts, Request};
use crate::route::server_name::HostTable;
use crate::shadow_zone::Shadows;
use crate::status_zones::StatusZones;
use crate::verified::VerifiedLocations;
use crate::worker::Worker;
use millstream_acme::Acme;
use millstream_conf::load_text;
use millstream_conf::model::{Configuration, Instruction, Part, Return, ReturnBody, Template, Variable};
use millstream_conf::variables::VARIABLES;
use millstream_net::{Address, clock};
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::log_writer::LogWriter;
use millstream_telemetry::metrics::Registry;
use millstream_upstream::Group;
use millstream_wire::h1::head::{HeadLimits, Progress};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) fn configuration(http: &str) -> Configuration {
    let text = format!("events {{}} http {{ access_log off; {http} }}");
    let loaded = load_text("test.conf", &text, Path::new("/nowhere"));
    loaded.configuration.unwrap_or_else(|| panic!("the configuration is refused: {text}"))
}

pub(crate) fn worker(http: &str) -> Rc<Worker> {
    let configuration = configuration(http);
    let conf = &configuration.http;
    let address = Address::Tcp("127.0.0.1:1".parse().expect("it is an address"));
    let groups = conf.upstreams.iter().map(|upstream| {
        let addresses = vec![vec![address.clone()]; upstream.servers.len()];
        Group::open(upstream, &addresses, None)
    });
    let registry = Arc::new(Registry::new());
    let shared = Shared {
        edition: Edition { number: 1, loaded: 0 },
        bounds: Bounds { clients: 512, upstreams: 448, descriptors: 1024, kept_files: 100 },
        groups: groups.collect(),
        resolvers: Vec::new(),
        zones: Zones {
            stores: Vec::new(),
            requests: Vec::new(),
            connections: Vec::new(),
            status: StatusZones::of(conf, &registry),
            shadows: Shadows::default(),
            verified: VerifiedLocations::default(),
        },
        logs: SharedLogs {
            main: ErrorLogs::new(Vec::new()),
            errors: conf.locations.iter().map(|_| ErrorLogs::new(Vec::new())).collect(),
            files: Vec::new(),
            groups: Vec::new(),
        },
        handshakes: Handshakes {
            acceptors: conf.listeners.iter().map(|_| None).collect(),
            certificates: Vec::new(),
            clients: Vec::new(),
            connectors: Vec::new(),
        },
        hosts: conf.listeners.iter().map(|listener| HostTable::new(conf, listener)).collect(),
        tracing: None,
        acme: Acme::default(),
        clusters: Default::default(),
        registry: registry.clone(),
        recorder: Arc::default(),
        reads: Reads { sent_heads: true, upstream_heads: true, ..Reads::of(conf) },
        configuration,
    };
    let writer = LogWriter::start().expect("a thread can be started");
    Worker::new(registry.worker(), writer, Generation::new(Arc::new(shared)))
}

pub(crate) fn parsed(worker: &Rc<Worker>, head: &str) -> Request {
    let tcp = |text: &str| Address::Tcp(text.parse().expect("it is an address"));
    let facts = ConnectionFacts {
        serial: 7,
        ..ConnectionFacts::plain(tcp("192.0.2.1:4000"), tcp("198.51.100.1:8080"), 0)
    };
    let mut request = Request::new(worker.clone(), worker.generation(), Rc::new(facts), clock::now());
    request.received.bytes = head.as_bytes().to_vec();
    let limits = HeadLimits { line: 8192, total: 32768, fields: 100 };
    assert_eq!(
        request.received.head.parse(&request.received.bytes, &limits),
        Ok(Progress::Complete),
        "{head}"
    );
    request.method = request.received.head.method;
    request
}

pub(crate) fn admitted(worker: &Rc<Worker>, head: &str) -> Request {
    let mut request = parsed(worker, head);
    assert_eq!(admission::admit(&mut request), Ok(()), "{head}");
    assert_eq!(admission::route(&mut request), Ok(()), "{head}");
    request
}

/// The text of its location's `return`, by which tests tell locations apart.
pub(crate) fn answered_by(request: &Request) -> String {
    let script = &request.location().settings.rewrite.script;
    let [Instruction::Return(Return { body: ReturnBody::Text(text), .. })] = &**script else {
        panic!("each location of the test returns a text")
    };
    String::from_utf8_lossy(&crate::variables::value(text, request)).into_owned()
}

pub(crate) fn variable(name: &str) -> Template {
    let builtin = VARIABLES.iter().find(|(_, known, _)| *known == name).expect("it is in the table").0;
    Template { parts: [Part::Variable(Variable::Builtin(builtin))].into(), source: format!("${name}").into() }
}
