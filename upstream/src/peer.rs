//! One upstream server as it is connected to, and as its group knows it.
//!
//! Both are plain data that never change; a member's load and health live in its `standing`.
//! Next: `peers`, which lists the members; `pool`, which keeps connections to peers.

use crate::standing::{Parameters, Standing};
use millstream_net::address::Address;
use std::sync::Arc;

/// One address of an upstream group.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its number in the group, the same in every version that has it and never another's; idle connections are found
    /// by it.
    pub id: u64,
    /// Where it is.
    pub address: Address,
    /// `$upstream_addr`: `ip:port` or `unix:/path`.
    pub name: Arc<str>,
}

/// A peer among those of its group.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) peer: Peer,
    /// The server as written. With the address it is what makes a member the same one from version to version.
    pub(crate) server: Arc<str>,
    pub(crate) parameters: Parameters,
    /// Shared by all workers and all versions that have the member.
    pub(crate) standing: Arc<Standing>,
}
