//! Name servers, and how long what they say holds.
//!
//! Next: `millstream-net`'s `resolver`, which asks them.

use crate::address::PeerAddress;
use crate::source::Span;
use std::time::Duration;

/// Index into `Http::resolvers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolverId(pub u32);

/// `resolver_timeout` where none is written.
pub const RESOLVER_TIMEOUT: Duration = Duration::from_secs(30);

/// A `resolver`.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// Where it was written.
    pub span: Span,
    /// `status_zone=`: the name that its look-ups are counted under.
    pub zone: Option<String>,
    /// Name servers in the order in which they are asked, never a unix socket; one given by name is asked of the system.
    pub servers: Vec<PeerAddress>,
    /// `valid=`: how long an answer holds, whatever its own TTL.
    pub valid: Option<Duration>,
    /// `ipv4=`: whether IPv4 addresses are asked for.
    pub ipv4: bool,
    /// `ipv6=`: whether IPv6 addresses are.
    pub ipv6: bool,
}
