//! Listening addresses and the servers behind them.
//!
//! Every address is here once, with all servers that share it and one that answers by default.
//! Next: `millstream-net`'s `listener`, which opens them; `millstream-server`'s `route/server_name`, which chooses.

use super::address::ListenAddress;
use super::location::{LocationId, LocationTree};
use super::regex::Regex;
use super::tls::Tls;
use crate::source::Span;
use std::time::Duration;

/// Index into `Http::servers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u32);

/// `so_keepalive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keepalive {
    /// `on` or `off`.
    Switch(bool),
    /// `idle:interval:count`; `None` leaves the system's value.
    Times {
        /// TCP_KEEPIDLE.
        idle: Option<Duration>,
        /// TCP_KEEPINTVL.
        interval: Option<Duration>,
        /// TCP_KEEPCNT.
        count: Option<u32>,
    },
}

/// One address with the options of its `listen` directives.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address.
    pub address: ListenAddress,
    /// Where it was first written.
    pub span: Span,
    /// `ssl`.
    pub ssl: bool,
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
    pub so_keepalive: Option<Keepalive>,
    /// `ipv6only`, default on.
    pub ipv6only: bool,
    /// The `control_socket`: its file has mode 0600 from the moment it is there.
    pub owner_only: bool,
    /// Servers that listen here, in file order.
    pub servers: Vec<ServerId>,
    /// The one for a Host that none names: `default_server`, else the first.
    pub default_server: ServerId,
}

/// A name of a server.
#[derive(Debug, Clone)]
pub enum ServerName {
    /// `example.com`, lower case; `""` matches a request without Host.
    Exact(String),
    /// `*.example.com`, held as `.example.com`. (`.example.com` is this and the exact name, two entries.)
    LeadingWildcard(String),
    /// `www.example.*`, held as `www.example.`.
    TrailingWildcard(String),
    /// `~expression`.
    Regex(Regex),
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
    /// TLS, where it has a certificate.
    pub tls: Option<Tls>,
    /// Index of `status_zone` into `Http::status_zones`.
    pub status_zone: Option<u32>,
    /// `client_header_timeout`, default 60 s.
    pub client_header_timeout: Duration,
    /// `client_header_buffer_size`, default 1 KiB.
    pub client_header_buffer_size: usize,
    /// `large_client_header_buffers`, default 4 × 8 KiB: a line must fit one (414, 431), the head all.
    pub large_client_header_buffers: (usize, usize),
    /// `merge_slashes`, default on.
    pub merge_slashes: bool,
}
