//! A worker's way into a group: the version of it that is in force, and the worker's idle connections.
//!
//! Where nothing has changed a request reads one number that nobody writes. When a new version is come upon, connections
//! to peers that are no longer there are closed; those to peers that stay are kept.
//! Next: `peers`, where a request goes on; `pool`.

use crate::group::Group;
use crate::peers::Version;
use crate::pool::Pool;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A group as one worker has it.
#[derive(Debug)]
pub struct LocalGroup {
    group: Arc<Group>,
    version: RefCell<Version>,
    pool: Rc<Pool>,
}

impl LocalGroup {
    /// A worker's way into a group.
    pub fn new(group: Arc<Group>) -> LocalGroup {
        let version = RefCell::new(Version::of(group.in_force()));
        let pool = Rc::new(Pool::new(group.keepalive()));
        group.watch_idle(pool.count());
        LocalGroup { group, version, pool }
    }

    /// The version in force.
    pub fn version(&self) -> Version {
        self.look();
        self.version.borrow().clone()
    }

    /// The group, for what all workers share of it.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The worker's idle connections.
    pub fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }

    /// Takes over a new version, if there is one. A request does so by itself; without requests, connections to peers
    /// that are gone would idle on.
    pub fn look(&self) {
        if self.group.number() == self.version.borrow().number {
            return;
        }
        let version = Version::of(self.group.in_force());
        self.pool.keep_only(|id| version.has(id));
        self.version.replace(version);
    }
}

#[cfg(test)]
mod tests;
