//! Listening addresses and the servers behind them.
//!
//! Every address is here once, with all servers that share it and one that answers by default.
//! Next: `millstream-net`'s `listener`, which opens them; `millstream-server`'s `route/server_name`, which chooses.

use super::location::LocationTree;
use crate::address::ListenAddress;
use crate::declared::acme::AcmeCertificateId;
use crate::features::ServerSettings;
use crate::features::listen::{ServerName, SocketKeepalive};
use crate::features::location::LocationId;
use crate::features::status_zone::StatusZone;
use crate::source::Span;

/// Index into `Http::servers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u32);

/// One address with the options of its `listen` directives.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address.
    pub address: ListenAddress,
    /// Where it was first written.
    pub span: Span,
    /// `ssl`.
    pub ssl: bool,
    /// `proxy_protocol`.
    pub proxy_protocol: bool,
    /// `http2`.
    pub http2: bool,
    /// `backlog`, default 511.
    pub backlog: u32,
    /// `reuseport`.
    pub reuseport: bool,
    /// `deferred`.
    pub deferred: bool,
    /// `sndbuf` in bytes.
    pub sndbuf: Option<usize>,
    /// `rcvbuf` in bytes.
    pub rcvbuf: Option<usize>,
    /// `so_keepalive`.
    pub so_keepalive: Option<SocketKeepalive>,
    /// `ipv6only`, default on.
    pub ipv6only: bool,
    /// The `control_socket`: its file has mode 0600 from the moment it is there.
    pub owner_only: bool,
    /// Whether the server does without it where somebody else has its address.
    pub optional: bool,
    /// Servers that listen here, in file order.
    pub servers: Vec<ServerId>,
    /// The one for a Host that none names: `default_server`, else the first.
    pub default_server: ServerId,
}

/// A `server` block.
#[derive(Debug)]
pub struct Server {
    /// Where it was written.
    pub span: Span,
    /// The first `server_name` as written, `$server_name`; empty where none.
    pub name: String,
    /// All names; `[Exact("")]` where none was written, as in nginx.
    pub names: Vec<ServerName>,
    /// Its own level ([`super::LocationMatch::Server`]).
    pub own: LocationId,
    /// Its locations.
    pub locations: LocationTree,
    /// What is set for it as a whole.
    pub settings: ServerSettings,
    /// `status_zone`.
    pub status_zone: StatusZone,
    /// `acme_certificate`.
    pub acme: Option<AcmeCertificateId>,
}
