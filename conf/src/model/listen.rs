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

/// One address with the options of all its `listen` directives.
#[derive(Debug, Clone)]
pub struct Listener {
    pub address: ListenAddress,
    pub span: Span,
    pub ssl: bool,
    pub proxy_protocol: bool,
    pub http2: bool,
    pub backlog: u32,
    pub reuseport: bool,
    pub deferred: bool,
    /// In bytes.
    pub sndbuf: Option<usize>,
    /// In bytes.
    pub rcvbuf: Option<usize>,
    pub so_keepalive: Option<SocketKeepalive>,
    pub ipv6only: bool,
    /// The `control_socket`: its file has mode 0600 from its creation.
    pub owner_only: bool,
    /// Not an error if the address is in use.
    pub optional: bool,
    /// In file order.
    pub servers: Vec<ServerId>,
    /// For a Host that none names: `default_server`, else the first.
    pub default_server: ServerId,
}

#[derive(Debug)]
pub struct Server {
    pub span: Span,
    /// The first `server_name` as written, `$server_name`; may be empty.
    pub name: String,
    /// `[Exact("")]` if none was written, as in nginx.
    pub names: Vec<ServerName>,
    /// Its own level ([`super::LocationMatch::Server`]).
    pub own: LocationId,
    pub locations: LocationTree,
    pub settings: ServerSettings,
    pub status_zone: StatusZone,
    pub acme: Option<AcmeCertificateId>,
}
