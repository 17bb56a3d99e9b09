//! One configuration put to work: what all workers share of it, and what each worker has of its own.
//!
//! A reload makes a new [`Shared`] and each worker a new [`Generation`] from it; requests in flight keep the one they
//! began with. Nothing in `Shared` is written after it is made, so reading it costs no shared write.
//! Next: `worker`, which holds the current generation; `route`, which reads it.

use crate::limit_zone::connections::ConnectionZone;
use crate::limit_zone::requests::RequestZone;
use crate::open_files::OpenFiles;
use crate::recorder::Recorder;
use crate::route::server_name::HostTable;
use crate::status_zones::StatusZones;
use millstream_acme::Acme;
use millstream_cache::{Front, Store};
use millstream_conf::model::{Configuration, Http, ListenAddress};
use millstream_net::resolver::Resolver;
use millstream_net::tls::{Clients, ServerTls, TlsAcceptor, TlsConnector};
use millstream_telemetry::access_log::AccessBuffer;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_telemetry::log_writer::LogSink;
use millstream_telemetry::metrics::Registry;
use millstream_traces::exporter::Tracing;
use millstream_upstream::{Group, LocalGroup};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Chooses the certificate for the name a client asked for; `None` refuses the handshake.
pub type ChooseCertificate = Box<dyn Fn(Option<&str>) -> Option<Arc<ServerTls>> + Send + Sync>;

/// What one worker may have open at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections that keep new clients waiting: `worker_connections`, or fewer where the limit of open files wants it.
    pub clients: usize,
    /// So many connections leave no place for another one to an upstream; fewer than `clients`, so that requests which wait for slow upstreams leave
    /// places for clients. Where the limit of open files is the lower bound, that bounds them instead.
    pub upstreams: usize,
    /// Connections that keep requests waiting for one to an upstream; more than `clients`, so that whoever was let in can
    /// be served.
    pub descriptors: usize,
    /// Files that each `open_file_cache` keeps open, whatever its `max` says.
    pub kept_files: usize,
}

/// What all workers share of one configuration.
pub struct Shared {
    /// Counts configurations since the process started, from 1.
    pub number: u64,
    /// When it was put together, in milliseconds since 1970.
    pub loaded: i64,
    /// What each worker may have open.
    pub bounds: Bounds,
    /// The configuration.
    pub configuration: Configuration,
    /// One per `Http::upstreams`.
    pub groups: Vec<Arc<Group>>,
    /// One per `Http::resolvers`.
    pub resolvers: Vec<Arc<Resolver>>,
    /// One per `Http::cache_zones`.
    pub stores: Vec<Arc<Store>>,
    /// One per `Http::request_zones`.
    pub request_zones: Vec<Arc<RequestZone>>,
    /// One per `Http::connection_zones`.
    pub connection_zones: Vec<Arc<ConnectionZone>>,
    /// One per `Http::log_groups`.
    pub log_groups: Vec<LogSink>,
    /// One per `Http::log_files`.
    pub log_sinks: Vec<LogSink>,
    /// One per `Http::locations`.
    pub error_logs: Vec<ErrorLogs>,
    /// The main context's.
    pub main_log: ErrorLogs,
    /// One per `Http::listeners`; `None` for a plain one.
    pub tls: Vec<Option<TlsAcceptor<ChooseCertificate>>>,
    /// One per `Http::servers`: its certificates, where it has any.
    pub certificates: Vec<Option<Arc<ServerTls>>>,
    /// One per `Http::servers`: what it knows of its clients' authorities, where it asks for certificates.
    pub clients: Vec<Option<Arc<Clients>>>,
    /// One per `Http::locations`: how TLS is spoken to its upstream; `None` where it never is.
    pub connectors: Vec<Option<Arc<TlsConnector>>>,
    /// One per `Http::listeners`.
    pub hosts: Vec<HostTable>,
    /// Where spans go, where there is an `otel_exporter`.
    pub tracing: Option<Arc<Tracing>>,
    /// What is wanted of authorities, and what of that is there.
    pub acme: Acme,
    /// Under which numbers requests are counted.
    pub status_zones: StatusZones,
    /// The counts of all workers, which outlive configurations; read by the API, never by a request that is served.
    pub registry: Arc<Registry>,
    /// What the dashboard shows of the last hour, which outlives configurations too.
    pub recorder: Arc<Recorder>,
    /// Whether any template reads `$sent_http_`, so that heads are kept until the log line is written.
    pub keeps_sent_heads: bool,
    /// Whether a cache is asked by `$request_body`.
    pub names_bodies: bool,
    /// Whether something reads `$request_body_file`.
    pub names_body_files: bool,
    /// Whether any template reads `$upstream_http_` or `$upstream_cookie_`.
    pub keeps_upstream_heads: bool,
}

/// One configuration on one worker.
pub struct Generation {
    /// The shared part.
    pub shared: Arc<Shared>,
    /// One per cache zone.
    pub fronts: Vec<RefCell<Front>>,
    /// One per upstream.
    pub upstreams: Vec<LocalGroup>,
    /// One per log file.
    pub logs: Vec<RefCell<AccessBuffer>>,
    /// The files that are kept open.
    pub open_files: RefCell<OpenFiles>,
}

impl Generation {
    /// The worker's own part of a configuration.
    pub fn new(shared: Arc<Shared>) -> Rc<Self> {
        let http = &shared.configuration.http;
        Rc::new(Generation {
            fronts: shared.stores.iter().map(|store| RefCell::new(Front::new(store.clone()))).collect(),
            upstreams: shared.groups.iter().cloned().map(LocalGroup::new).collect(),
            logs: shared
                .log_sinks
                .iter()
                .zip(&http.log_files)
                .map(|(sink, file)| RefCell::new(AccessBuffer::new(sink.clone(), file)))
                .collect(),
            open_files: RefCell::new(OpenFiles::new(shared.bounds.kept_files)),
            shared,
        })
    }

    /// The http block.
    pub fn http(&self) -> &Http {
        &self.shared.configuration.http
    }

    /// Index of the listener with an address; `None` once a reload has removed it.
    pub fn listener_of(&self, address: &ListenAddress) -> Option<usize> {
        self.http().listeners.iter().position(|listener| listener.address == *address)
    }
}
