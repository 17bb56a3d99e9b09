//! `serve --domain`: TLS with a certificate that an authority issues.
//!
//! Next: `serve_url/domain`, what these flags come to.

use clap::Args;
use std::path::PathBuf;

pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The names that TLS is spoken for, and who says that they are ours.
#[derive(Debug, Clone, Args)]
pub struct Domains {
    /// Serve HTTPS for this name with an automatic certificate, and accept the authority's terms
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    pub domain: Vec<String>,
    /// With --domain, listen for HTTPS on this port or address:port
    #[arg(long, default_value = "443", value_name = "ADDRESS", requires = "domain")]
    pub https: String,
    /// With --domain, listen here for the authority's challenges, and redirect other requests to https
    #[arg(long, default_value = "80", value_name = "ADDRESS", requires = "domain")]
    pub http: String,
    /// With --domain, the directory URL of the ACME server
    #[arg(long, default_value = LETS_ENCRYPT, value_name = "URL", requires = "domain")]
    pub acme_server: String,
    /// Verify the ACME server with this PEM file instead of the system's authorities
    #[arg(long, value_name = "FILE", requires = "domain")]
    pub acme_ca: Option<PathBuf>,
    /// Store account and certificates here (default: the state directory of the service or user;
    /// for root, /var/lib/millstream/acme)
    #[arg(long, value_name = "DIRECTORY", requires = "domain")]
    pub acme_state: Option<PathBuf>,
    /// Contact e-mail address for the account at the authority
    #[arg(long, value_name = "MAIL", requires = "domain")]
    pub contact: Option<String>,
}

impl Domains {
    pub fn is_given(&self) -> bool {
        !self.domain.is_empty()
    }
}

impl Default for Domains {
    fn default() -> Self {
        Domains {
            domain: Vec::new(),
            https: "443".into(),
            http: "80".into(),
            acme_server: LETS_ENCRYPT.into(),
            acme_ca: None,
            acme_state: None,
            contact: None,
        }
    }
}
