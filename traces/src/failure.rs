//! Why a batch was not taken.
//!
//! Next: `collector`, which meets these; `exporter`, which tells them.

use millstream_net::grpc::GrpcError;
use std::fmt;
use std::io;

#[derive(Debug)]
pub(crate) enum ExportFailure {
    Connection(io::Error),
    /// A gRPC call without an outcome.
    Grpc(GrpcError),
    Answer,
    Status(u16),
    /// A gRPC error: its code and message.
    Refused(u32, String),
    TimedOut,
}

impl fmt::Display for ExportFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportFailure::Connection(error) => error.fmt(f),
            ExportFailure::Grpc(GrpcError::Status(status)) => {
                write!(f, "the collector responded with {status}")
            }
            ExportFailure::Grpc(GrpcError::NoStatus | GrpcError::TooLarge) | ExportFailure::Answer => {
                f.write_str("the response is not a valid OTLP response")
            }
            ExportFailure::Grpc(error) => error.fmt(f),
            ExportFailure::Status(status) => write!(f, "the collector responded with {status}"),
            ExportFailure::Refused(code, message) => {
                write!(f, "the collector responded with gRPC status {code}: {message}")
            }
            ExportFailure::TimedOut => f.write_str("timed out"),
        }
    }
}

impl From<io::Error> for ExportFailure {
    fn from(error: io::Error) -> Self {
        ExportFailure::Connection(error)
    }
}

impl From<GrpcError> for ExportFailure {
    fn from(error: GrpcError) -> Self {
        ExportFailure::Grpc(error)
    }
}
