//! A node of a test: a bus, and a zone that notes what it is to carry out.

use super::until;
use crate::settings::Guard;
use crate::{Bus, Door, EngineSettings, How, Lasting, LogBounds, Reached, Secret, Settings, What, Zone};
use millstream_conf::model::PeerAddress;
use millstream_net::clock;
use millstream_telemetry::error_log::ErrorLogs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Longest wait until an order is in force on all nodes.
pub(super) const WITHIN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct NotingZone {
    directory: Option<PathBuf>,
    pub(super) carried_out: Mutex<Vec<What>>,
}

impl Zone for NotingZone {
    fn name(&self) -> &str {
        "api"
    }

    fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    fn confirmed(&self, _: i64, _: i64) {}

    fn carry_out(&self, what: &What, _: How) -> Lasting {
        self.carried_out.lock().expect("whole").push(what.clone());
        Box::pin(async { Ok(()) })
    }
}

impl NotingZone {
    pub(super) fn has(&self, what: &What) -> bool {
        self.carried_out.lock().expect("whole").iter().any(|carried_out| carried_out == what)
    }

    pub(super) fn count(&self, what: &What) -> usize {
        self.carried_out.lock().expect("whole").iter().filter(|carried_out| *carried_out == what).count()
    }
}

/// How the nodes of a test are configured.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) ports: Vec<u16>,
    pub(super) secret: &'static [u8],
    pub(super) cut_off: Duration,
    pub(super) log: LogBounds,
    pub(super) without: Option<Guard>,
    /// At the engine: a user and its password.
    pub(super) account: Option<(&'static str, &'static str)>,
    pub(super) has_files: bool,
}

impl Plan {
    pub(super) fn of(ports: &[u16]) -> Plan {
        Plan {
            ports: ports.to_vec(),
            secret: b"the secret of the tests",
            cut_off: Duration::from_millis(900),
            log: LogBounds { entries: 65_536, bytes: 64 * 1024 * 1024 },
            without: None,
            account: None,
            has_files: true,
        }
    }

    pub(super) fn settings(&self, node: &str) -> Settings {
        let server = |port: &u16| PeerAddress::Tcp(([127, 0, 0, 1], *port).into());
        let engine = EngineSettings {
            servers: self.ports.iter().map(server).collect(),
            sentinel: None,
            user: self.account.map(|(user, _)| user.to_owned()),
            password: self.account.map(|(_, password)| password.to_owned()),
            tls: None,
        };
        Settings {
            cluster: "main".to_owned(),
            node: node.to_owned(),
            engine,
            secret: Secret::of(self.secret).expect("long enough"),
            timeout: Duration::from_millis(5),
            cut_off: self.cut_off,
            serves: false,
            log: self.log,
            without: self.without,
        }
    }
}

pub(super) struct Node {
    pub(super) name: &'static str,
    plan: Plan,
    pub(super) zone: Arc<NotingZone>,
    directory: TempDir,
    bus: Option<Bus>,
}

impl Node {
    pub(super) fn start(name: &'static str, plan: &Plan) -> Node {
        let directory = tempfile::tempdir().expect("a directory");
        let mut node = Node { name, plan: plan.clone(), zone: Arc::default(), directory, bus: None };
        node.restart();
        node
    }

    /// The zone begins empty, its directory as it was left.
    pub(super) fn restart(&mut self) {
        let directory = self.plan.has_files.then(|| self.directory.path().to_path_buf());
        self.zone = Arc::new(NotingZone { directory, ..NotingZone::default() });
        let zone: Arc<dyn Zone> = self.zone.clone();
        let settings = self.plan.settings(self.name);
        let bus = Bus::new(settings, vec![zone], Vec::new(), ErrorLogs::default());
        bus.start().expect("started");
        self.bus = Some(bus);
    }

    /// As if the process was killed.
    pub(super) fn kill(&mut self) {
        self.bus.take().expect("it runs").abandon();
    }

    pub(super) fn leave(&mut self) {
        self.bus = None;
    }

    pub(super) fn door(&self) -> &Arc<Door> {
        &self.bus.as_ref().expect("it runs").doors()[0]
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.door().is_cut_off(clock::wall().unix_milliseconds())
    }

    pub(super) fn is_confirmed(&self) {
        until(&format!("{} is confirmed: {:?}", self.name, self.door().shown()), || !self.is_cut_off());
    }

    pub(super) fn purge(&self, tag: &str) -> Reached {
        block_on(self.door().publish(self::tag(tag), How::Hard, true).reached(WITHIN))
    }

    pub(super) fn give(&self, tag: &str) {
        drop(self.door().publish(self::tag(tag), How::Hard, false));
    }

    pub(super) fn gets(&self, tag: &str) {
        until(&format!("{} gets {tag}: {:?}", self.name, self.door().shown()), || {
            self.zone.has(&self::tag(tag))
        });
    }
}

/// Three nodes that are confirmed and know each other.
pub(super) fn three(plan: &Plan) -> [Node; 3] {
    let nodes = ["a", "b", "c"].map(|name| Node::start(name, plan));
    nodes.iter().for_each(Node::is_confirmed);
    for node in &nodes {
        until("each knows the others", || node.door().shown().nodes.len() == 2);
    }
    nodes
}

pub(super) fn tag(name: &str) -> What {
    What::Tag(name.as_bytes().to_vec())
}

pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
