//! Zones as seen by the cluster: something that carries out orders, and something that counts for a limit.
//!
//! Cache and limits are above or beside this crate; whoever knows both implements this. Next: `member` and `ledger`, which call it.

use crate::order::{How, What};
use crate::secret::KeyHash;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

/// An order that is in force, and will survive a restart when this resolves.
pub type Lasting = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// What carries out the orders of other nodes.
pub trait Zone: Send + Sync {
    fn name(&self) -> &str;

    /// Where it keeps files, and the cluster its journal; `None` if what it has is gone after a restart.
    fn directory(&self) -> Option<&Path>;

    /// The node is confirmed from one moment to before another, in milliseconds since 1970; not at all if they
    /// are equal.
    fn confirmed(&self, from: i64, until: i64);

    /// The order is in force when this returns.
    fn carry_out(&self, what: &What, how: How) -> Lasting;
}

/// A zone of a limit, which counts with the other nodes.
pub struct Limit {
    pub kind: LimitKind,
    pub zone: String,
    /// The engine decides about each request.
    pub is_exact: bool,
    pub counts: Arc<dyn LimitedZone>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Requests by their rate.
    Requests,
    /// Requests under way.
    Connections,
}

/// What counts for a limit on this node.
pub trait LimitedZone: Send + Sync {
    /// Other nodes have let in requests of a key, at that moment.
    fn add(&self, _key: &KeyHash, _requests: u32, _at: Instant) {}

    /// Requests under way on this node, of at most so many keys.
    fn under_way(&self, _most: usize) -> Vec<(KeyHash, u32)> {
        Vec::new()
    }
}
