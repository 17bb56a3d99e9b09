//! What the names of the zones of `limit_req` and `limit_conn` stand for.
//!
//! Next: `features/limit_req` and `features/limit_conn`, which read and use them; `millstream-server`'s `limit_zone`, which is one
//! at work.

use crate::source::Span;
use crate::template::Template;

/// Index into `Http::request_zones`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestZoneId(pub u32);

/// Index into `Http::connection_zones`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionZoneId(pub u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitZone {
    pub name: String,
    pub span: Span,
    /// Requests with the same key are counted together; an empty key is not counted.
    pub key: Template,
    /// In bytes.
    pub size: u64,
    /// `sync`: it counts the requests of all nodes of a cluster.
    pub sync: Option<LimitSync>,
}

/// How the nodes of a cluster count together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSync {
    pub span: Span,
    /// `sync=exact`: the engine decides about each request.
    pub is_exact: bool,
    /// Of the cluster; empty until the zone without `cluster=` has got the only one.
    pub cluster: String,
}

impl LimitZone {
    pub fn is_exact(&self) -> bool {
        self.sync.as_ref().is_some_and(|sync| sync.is_exact)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestZone {
    pub zone: LimitZone,
    /// Thousandths of a request a second.
    pub rate: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionZone {
    pub zone: LimitZone,
}
