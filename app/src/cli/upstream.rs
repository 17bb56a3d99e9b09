//! `serve https://…`: how TLS is spoken to the API, and under which name.
//!
//! Next: `serve_url/upstream`, what these flags mean in the configuration.

use clap::Args;
use std::path::PathBuf;

/// The flags of the upstream's side.
#[derive(Debug, Clone, Default, Args)]
pub struct UpstreamFlags {
    /// Send this name to the API as Host, and over TLS require a certificate for it (default: the name in an https URL)
    #[arg(long, value_name = "NAME")]
    pub upstream_name: Option<String>,
    /// Verify an https API with this PEM file (default: SSL_CERT_FILE, or the system's authorities)
    #[arg(long, value_name = "FILE")]
    pub upstream_ca: Option<PathBuf>,
    /// Accept any certificate from an https API
    #[arg(long, conflicts_with = "upstream_ca")]
    pub insecure_upstream: bool,
}
