//! The typed configuration: plain data, every setting resolved (inherited, parsed, compiled) at load.
//!
//! Nothing here is looked up by name during a request, and nothing here does I/O. Each engine takes its own
//! part (`cache` takes a [`CacheZone`], `upstream` an [`Upstream`]), never the whole.
//! Next: `directives/`, which fills these; `millstream-server`'s `route`, which reads them.

pub mod address;
pub mod regex;
pub mod template;
pub mod upstream;
pub mod tls;
pub mod log;
pub mod gzip;
pub mod temp_path;
pub mod failures;
pub mod cache;
pub mod proxy;
pub mod location;
pub mod templates;
pub mod listen;
pub mod main_context;

pub use address::{HostPort, ListenAddress, PeerAddress};
pub use cache::{
    CacheVary, CacheZone, CacheZoneId, Credentials, Heuristic, IgnoreHeaders, Invalidation, ManageRight,
    Network, Pace, ProxyCache, StaleWhile, Valid, ValidStatus,
};
pub use failures::{FailureWords, NextUpstream, UseStale};
pub use gzip::{Gzip, GzipHttpVersion, GzipProxied};
pub use listen::{Keepalive as SocketKeepalive, Listener, Server, ServerId, ServerName};
pub use location::{
    AddHeader, Api, ErrorPage, ErrorPageStatus, Expires, IfModifiedSince, LingeringClose, Location,
    LocationId, LocationMatch, LocationTree, PurgeAt, Return, ReturnBody, ServerTokens, Settings, Types,
};
pub use log::{AccessLog, ErrorLog, Escape, Level, LogFile, LogFileId, LogFormat, LogTarget};
pub use main_context::{Main, User, WorkerProcesses};
pub use proxy::{HttpVersion, Proxy, ProxyPass, ProxyTarget, Redirect, SetHeader, Store};
pub use regex::Regex;
pub use temp_path::TempPath;
pub use template::{Part, Template, Variable};
pub use tls::{Tls, TlsVersion};
pub use upstream::{
    Balance, BalanceMethod, KeepaliveSize, Upstream, UpstreamId, UpstreamKeepalive, UpstreamServer,
};

use crate::source::Sources;

/// A whole configuration, checked.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The files it came from.
    pub sources: Sources,
    /// Directives of the main and events contexts.
    pub main: Main,
    /// The http block; empty lists where the file has none.
    pub http: Http,
}

/// The http block with everything in it, each kind in one arena that the ids point into.
#[derive(Debug, Default)]
pub struct Http {
    /// Addresses to listen on; every address once, with the servers that share it.
    pub listeners: Vec<Listener>,
    /// `server` blocks in file order.
    pub servers: Vec<Server>,
    /// Every location of every server, the servers' own level included.
    pub locations: Vec<Location>,
    /// `upstream` blocks, then one implicit upstream per distinct `proxy_pass host:port`.
    pub upstreams: Vec<Upstream>,
    /// `proxy_cache_path` zones.
    pub cache_zones: Vec<CacheZone>,
    /// Access-log files; every distinct path once with its buffering.
    pub log_files: Vec<LogFile>,
    /// Names of `status_zone`s, each once; locations and servers hold indices into it.
    pub status_zones: Vec<String>,
}

impl Http {
    /// The location of an id from this configuration.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }
    /// The server of an id from this configuration.
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.0 as usize]
    }
    /// The upstream of an id from this configuration.
    pub fn upstream(&self, id: UpstreamId) -> &Upstream {
        &self.upstreams[id.0 as usize]
    }
    /// The cache zone of an id from this configuration.
    pub fn cache_zone(&self, id: CacheZoneId) -> &CacheZone {
        &self.cache_zones[id.0 as usize]
    }
}
