//! `serve --domain`: TLS with a certificate that an authority issues.
//!
//! Next: `serve_url/domain`, what these flags come to.

use clap::Args;
use std::path::PathBuf;

/// Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The names that TLS is spoken for, and who says that they are ours.
#[derive(Debug, Clone, Args)]
pub struct Domains {
    /// Speak TLS for this name, with a certificate that is issued and renewed by itself; the authority's terms are agreed to
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    pub domain: Vec<String>,
    /// Where TLS is spoken, with --domain: port or address:port
    #[arg(long, default_value = "443", value_name = "ADDRESS", requires = "domain")]
    pub https: String,
    /// Where the authority asks, and others are sent to https, with --domain: port or address:port
    #[arg(long, default_value = "80", value_name = "ADDRESS", requires = "domain")]
    pub http: String,
    /// The directory of the authority's ACME server, with --domain
    #[arg(long, default_value = LETS_ENCRYPT, value_name = "URL", requires = "domain")]
    pub acme_server: String,
    /// A PEM file with the authorities that the ACME server itself is judged by, in place of the system's
    #[arg(long, value_name = "FILE", requires = "domain")]
    pub acme_ca: Option<PathBuf>,
    /// Where account and certificates are kept (default: a folder for state of the service or the user, as root /var/lib/millstream/acme)
    #[arg(long, value_name = "DIRECTORY", requires = "domain")]
    pub acme_state: Option<PathBuf>,
    /// Where the authority can write to about the account: an address of mail
    #[arg(long, value_name = "MAIL", requires = "domain")]
    pub contact: Option<String>,
}

impl Domains {
    /// Whether TLS is spoken.
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
