//! A cluster of nodes: the engine through which they reach each other.
//!
//! Next: `features/cluster`, which reads it; `millstream-cluster`, which runs it.

use crate::address::PeerAddress;
use crate::source::Span;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Cluster {
    pub name: String,
    pub span: Span,
    /// The first that is a primary is used.
    pub servers: Vec<PeerAddress>,
    /// `sentinel name address`: which servers know the primary of this name.
    pub sentinel: Option<(String, Vec<PeerAddress>)>,
    pub user: Option<String>,
    /// Of the engine; a file.
    pub password: Option<PathBuf>,
    /// The same from the URL of a server.
    pub password_text: Option<String>,
    /// `tls on`, or `rediss://`.
    pub secured: bool,
    /// `trusted_certificate`; without it, the authorities of the system.
    pub trusted: Option<PathBuf>,
    pub secret: PathBuf,
    /// As the other nodes show this one; the host's name without it.
    pub node: Option<String>,
    /// Longest wait of a request.
    pub timeout: Duration,
    /// How old the last confirmation may be.
    pub cut_off: Duration,
    /// Whether a node that is cut off serves what it has.
    pub serves: bool,
}
