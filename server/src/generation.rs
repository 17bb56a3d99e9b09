//! One configuration put to work: what all workers share of it, and what each worker has of its own.
//!
//! A reload makes a new [`Shared`] and each worker a new [`Generation`] from it; requests in flight keep the one they
//! began with. Nothing in `Shared` is written after it is made, so reading it costs no shared write.
//! Next: `worker`, which holds the current generation; `route`, which reads it.

use crate::clusters::Clusters;
use crate::limit_zone::connections::ConnectionZone;
use crate::limit_zone::requests::RequestZone;
use crate::open_files::OpenFiles;
use crate::reads::Reads;
use crate::recorder::Recorder;
use crate::route::last_host::LastHost;
use crate::route::server_name::HostTable;
use crate::shadow_zone::Shadows;
use crate::status_zones::StatusZones;
use crate::verified::VerifiedLocations;
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

/// By SNI; `None` refuses the handshake.
pub type ChooseCertificate = Box<dyn Fn(Option<&str>) -> Option<Arc<ServerTls>> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections from which on new clients wait: `worker_connections`, or fewer by the limit of open files.
    pub clients: usize,
    /// Connections from which on no upstream connection is opened; fewer than `clients`, so that requests
    /// waiting for slow upstreams leave room for clients, unless the limit of open files is lower.
    pub upstreams: usize,
    /// Connections from which on requests wait for an upstream connection; more than `clients`, so that
    /// accepted clients can be served.
    pub descriptors: usize,
    /// Per `open_file_cache`, whatever its `max`.
    pub kept_files: usize,
}

/// The part of a configuration shared by all workers.
pub struct Shared {
    pub edition: Edition,
    pub bounds: Bounds,
    pub configuration: Configuration,
    /// One per `Http::upstreams`.
    pub groups: Vec<Arc<Group>>,
    /// One per `Http::resolvers`.
    pub resolvers: Vec<Arc<Resolver>>,
    pub zones: Zones,
    pub logs: SharedLogs,
    pub handshakes: Handshakes,
    /// One per `Http::listeners`.
    pub hosts: Vec<HostTable>,
    pub tracing: Option<Arc<Tracing>>,
    pub acme: Acme,
    pub clusters: Clusters,
    /// Counters of all workers, which outlive configurations; only the API reads them.
    pub registry: Arc<Registry>,
    /// The dashboard's last hour, which outlives configurations.
    pub recorder: Arc<Recorder>,
    pub reads: Reads,
}

/// Which configuration of the process it is.
#[derive(Debug, Clone, Copy)]
pub struct Edition {
    /// From 1, since the process started.
    pub number: u64,
    /// Milliseconds since 1970.
    pub loaded: i64,
}

pub struct Zones {
    /// One per `Http::cache_zones`.
    pub stores: Vec<Arc<Store>>,
    /// One per `Http::request_zones`.
    pub requests: Vec<Arc<RequestZone>>,
    /// One per `Http::connection_zones`.
    pub connections: Vec<Arc<ConnectionZone>>,
    pub status: StatusZones,
    pub shadows: Shadows,
    pub verified: VerifiedLocations,
}

pub struct SharedLogs {
    pub main: ErrorLogs,
    /// One per `Http::locations`.
    pub errors: Vec<ErrorLogs>,
    /// One per `Http::log_files`.
    pub files: Vec<LogSink>,
    /// One per `Http::log_groups`.
    pub groups: Vec<LogSink>,
}

/// What handshakes go by, on both sides.
pub struct Handshakes {
    /// One per `Http::listeners`; `None` for a plain one.
    pub acceptors: Vec<Option<TlsAcceptor<ChooseCertificate>>>,
    /// One per `Http::servers`; `None` without certificates.
    pub certificates: Vec<Option<Arc<ServerTls>>>,
    /// One per `Http::servers`: the authorities of its clients; `None` if it requests no client certificates.
    pub clients: Vec<Option<Arc<Clients>>>,
    /// One per `Http::locations`; `None` without TLS upstream.
    pub connectors: Vec<Option<Arc<TlsConnector>>>,
}

/// A configuration on one worker.
pub struct Generation {
    pub shared: Arc<Shared>,
    pub fronts: Vec<RefCell<Front>>,
    pub upstreams: Vec<LocalGroup>,
    pub logs: Vec<RefCell<AccessBuffer>>,
    pub open_files: RefCell<OpenFiles>,
    pub last_host: RefCell<LastHost>,
}

impl Generation {
    pub fn new(shared: Arc<Shared>) -> Rc<Self> {
        let http = &shared.configuration.http;
        Rc::new(Generation {
            fronts: shared.zones.stores.iter().map(|store| RefCell::new(Front::new(store.clone()))).collect(),
            upstreams: shared.groups.iter().cloned().map(LocalGroup::new).collect(),
            logs: shared
                .logs
                .files
                .iter()
                .zip(&http.log_files)
                .map(|(sink, file)| RefCell::new(AccessBuffer::new(sink.clone(), file)))
                .collect(),
            open_files: RefCell::new(OpenFiles::new(shared.bounds.kept_files)),
            last_host: RefCell::default(),
            shared,
        })
    }

    pub fn http(&self) -> &Http {
        &self.shared.configuration.http
    }

    /// `None` once a reload has removed the listener.
    pub fn listener_of(&self, address: &ListenAddress) -> Option<usize> {
        self.http().listeners.iter().position(|listener| listener.address == *address)
    }
}
