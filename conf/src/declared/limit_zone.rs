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

/// What both kinds of zones have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitZone {
    /// Its name.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// Whose requests are counted together; those without a key are not counted.
    pub key: Template,
    /// Its size in bytes.
    pub size: u64,
}

/// A `limit_req_zone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestZone {
    /// Name, key and size.
    pub zone: LimitZone,
    /// Thousandths of a request a second.
    pub rate: u64,
}

/// A `limit_conn_zone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionZone {
    /// Name, key and size.
    pub zone: LimitZone,
}
