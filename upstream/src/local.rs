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

/// A worker's view of a group.
#[derive(Debug)]
pub struct LocalGroup {
    group: Arc<Group>,
    version: RefCell<Version>,
    pool: Rc<Pool>,
}

impl LocalGroup {
    pub fn new(group: Arc<Group>) -> LocalGroup {
        let version = RefCell::new(Version::of(group.in_force()));
        let pool = Rc::new(Pool::new(group.keepalive()));
        group.watch_idle(pool.count());
        LocalGroup { group, version, pool }
    }

    pub fn version(&self) -> Version {
        self.look();
        self.version.borrow().clone()
    }

    pub fn group(&self) -> &Group {
        &self.group
    }

    pub fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }

    /// Adopts a new version, if there is one. Requests do so too; without any, connections to removed peers
    /// would idle on.
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
