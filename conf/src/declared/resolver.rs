//! Name servers, and how long what they say holds.
//!
//! Next: `millstream-net`'s `resolver`, which asks them.

use crate::address::PeerAddress;
use crate::source::Span;
use std::time::Duration;

/// Index into `Http::resolvers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolverId(pub u32);

/// Default of `resolver_timeout`.
pub const RESOLVER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Resolver {
    pub span: Span,
    /// `status_zone=`: the name that its look-ups are counted under.
    pub zone: Option<String>,
    /// In the order they are asked, never a unix socket; one given by name is resolved by the system.
    pub servers: Vec<PeerAddress>,
    /// `valid=`: overrides the TTL of responses.
    pub valid: Option<Duration>,
    pub ipv4: bool,
    pub ipv6: bool,
}
