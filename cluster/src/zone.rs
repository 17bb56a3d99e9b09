//! A zone as seen by the cluster: something that carries out orders.
//!
//! The cache is above or beside this crate; whoever knows both implements this. Next: `member`, which calls it.

use crate::order::{How, What};
use std::io;
use std::path::Path;
use std::pin::Pin;

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
