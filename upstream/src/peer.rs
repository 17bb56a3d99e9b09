//! One upstream server as it is connected to, and as its group knows it.
//!
//! Both are plain data that never change; a member's load and health live in its `standing`.
//! Next: `peers`, which lists the members; `pool`, which keeps connections to peers.

use crate::standing::{Parameters, Standing};
use millstream_net::address::Address;
use millstream_telemetry::metrics::PeerCells;
use millstream_telemetry::metrics::parts::Parts;
use std::sync::Arc;

/// One address of an upstream group.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The same in every version that has the peer and never reused; idle connections are found by it.
    pub id: u64,
    pub address: Address,
    /// `$upstream_addr`: `ip:port` or `unix:/path`.
    pub name: Arc<str>,
}

impl Peer {
    /// An address without ports stays as it is.
    #[must_use]
    pub fn at_port(&self, port: u16) -> Peer {
        Peer { address: self.address.at_port(port), ..self.clone() }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) peer: Peer,
    /// As written. With the address it identifies the member from version to version.
    pub(crate) server: Arc<str>,
    pub(crate) parameters: Parameters,
    pub(crate) route: Option<Arc<str>>,
    /// Its `route=`, or the hash of its address; empty without an address.
    pub(crate) session_name: Arc<str>,
    /// Shared by all workers and all versions that have the member.
    pub(crate) standing: Arc<Standing>,
    /// Each worker has a part of its own.
    pub(crate) counts: Arc<Parts<PeerCells>>,
}
