//! Where spans and metrics are exported to, and what is said of the service that they are of.
//!
//! Next: `features/otel/exporter`, which reads it; `millstream-traces`, which exports.

use crate::address::PeerAddress;
use crate::source::Span;
use std::path::PathBuf;
use std::time::Duration;

/// `service.name` where nothing is written, as OpenTelemetry has it for a process that nobody named.
pub const UNKNOWN_SERVICE: &str = "unknown_service:millstream";

/// An `otel_exporter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelExporter {
    /// Where it was written.
    pub span: Span,
    /// `endpoint`.
    pub endpoint: OtelEndpoint,
    /// `trusted_certificate`; without it, the authorities of the system.
    pub trusted: Option<PathBuf>,
    /// `header`s, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// `interval`: the longest that a span waits to be exported.
    pub interval: Duration,
    /// `metrics_interval`: from one export of the figures to the next; without it, none is made.
    pub metrics_interval: Option<Duration>,
    /// `batch_size`: spans in one export.
    pub batch_size: usize,
    /// `batch_count`: batches that may wait.
    pub batch_count: usize,
}

/// Where a collector is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelEndpoint {
    /// Host and port as written, which is the authority of requests.
    pub authority: String,
    /// Where to connect.
    pub address: PeerAddress,
    /// Whether TLS is spoken (`https://`).
    pub secured: bool,
    /// What is spoken.
    pub protocol: OtelProtocol,
}

/// How the path of traces ends in OTLP/HTTP, and that of metrics.
const TRACES_PATH: &str = "/v1/traces";
const METRICS_PATH: &str = "/v1/metrics";

impl OtelEndpoint {
    /// The path that metrics are posted to, beside that of traces; nothing in gRPC, nor where the path of traces does not tell.
    pub fn metrics_path(&self) -> Option<String> {
        match &self.protocol {
            OtelProtocol::Grpc => None,
            OtelProtocol::Http(path) => {
                path.strip_suffix(TRACES_PATH).map(|before| format!("{before}{METRICS_PATH}"))
            }
        }
    }
}

/// How spans travel (OTLP/gRPC, OTLP/HTTP).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtelProtocol {
    /// gRPC: an endpoint without a path.
    Grpc,
    /// A POST of protobuf to this path.
    Http(String),
}

/// What is said of the service: `otel_service_name` and `otel_resource_attr`, each name once, in the order of names.
pub type OtelResource = std::collections::BTreeMap<String, String>;
