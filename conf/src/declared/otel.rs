//! Where spans and metrics are exported to, and what is said of the service that they are of.
//!
//! Next: `features/otel/exporter`, which reads it; `millstream-traces`, which exports.

use crate::address::PeerAddress;
use crate::source::Span;
use std::path::PathBuf;
use std::time::Duration;

/// Default `service.name`, as OpenTelemetry specifies for an unnamed process.
pub const UNKNOWN_SERVICE: &str = "unknown_service:millstream";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelExporter {
    pub span: Span,
    pub endpoint: OtelEndpoint,
    /// `trusted_certificate`; without it, the authorities of the system.
    pub trusted: Option<PathBuf>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The longest time a span waits to be exported.
    pub interval: Duration,
    /// Interval between exports of metrics; `None` exports none.
    pub metrics_interval: Option<Duration>,
    pub batch_size: usize,
    /// Batches that may wait.
    pub batch_count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelEndpoint {
    /// Host and port as written; the authority of requests.
    pub authority: String,
    pub address: PeerAddress,
    pub secured: bool,
    pub protocol: OtelProtocol,
}

/// Path suffixes in OTLP/HTTP for traces and metrics.
const TRACES_PATH: &str = "/v1/traces";
const METRICS_PATH: &str = "/v1/metrics";

impl OtelEndpoint {
    /// Derived from the path of traces; `None` with gRPC or if that path has another ending.
    pub fn metrics_path(&self) -> Option<String> {
        match &self.protocol {
            OtelProtocol::Grpc => None,
            OtelProtocol::Http(path) => {
                path.strip_suffix(TRACES_PATH).map(|before| format!("{before}{METRICS_PATH}"))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtelProtocol {
    /// An endpoint without a path.
    Grpc,
    /// A POST of protobuf to this path.
    Http(String),
}

/// `otel_service_name` and `otel_resource_attr`s by name.
pub type OtelResource = std::collections::BTreeMap<String, String>;
