//! A zone's part in a cluster: whether its node knows all purges of the others, and how it lets them know of its own changes.
//!
//! The cluster is not known here: whoever has both tells this store until when the node is confirmed, and takes what has changed
//! without a request that waits. Next: `store/purge`.

use super::rate::Changed;
use crate::now::Now;
use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The other nodes of a cluster.
pub trait OtherNodes: Debug + Send + Sync {
    /// An unsafe request has changed a key, and its delayed invalidation was carried out here. Must not block.
    fn changed(&self, key: &[u8], has_pieces: bool);
}

/// When the node may serve what is stored without asking: always, without a cluster.
#[derive(Debug)]
pub struct Membership {
    /// Milliseconds since 1970: the first moment and the one after the last.
    from: AtomicI64,
    until: AtomicI64,
    others: RwLock<Option<Arc<dyn OtherNodes>>>,
}

impl Default for Membership {
    fn default() -> Self {
        let (from, until) = (AtomicI64::new(i64::MIN), AtomicI64::new(i64::MAX));
        Membership { from, until, others: RwLock::new(None) }
    }
}

impl Membership {
    /// Whether stored responses must be confirmed by the upstream before they are served.
    #[inline]
    pub fn is_cut_off(&self, now: Now) -> bool {
        let now = now.unix_milliseconds;
        now >= self.until.load(Ordering::Acquire) || now < self.from.load(Ordering::Relaxed)
    }

    /// Takes part in a cluster, or with `None` in none any more. Until the first confirmation it is cut off.
    pub fn join(&self, others: Option<Arc<dyn OtherNodes>>) {
        match others {
            Some(_) => self.confirm(0, 0),
            None => self.confirm(i64::MIN, i64::MAX),
        }
        *self.others.write().unwrap_or_else(PoisonError::into_inner) = others;
    }

    /// The node knows all purges of the others from one moment to before another, in milliseconds since 1970.
    pub fn confirm(&self, from: i64, until: i64) {
        self.from.store(from, Ordering::Relaxed);
        self.until.store(until, Ordering::Release);
    }

    pub(super) fn tell_others(&self, changed: Changed<'_>) {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(others) = &*others {
            others.changed(changed.key, changed.has_pieces);
        }
    }
}
