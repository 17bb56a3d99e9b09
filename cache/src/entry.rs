//! One stored answer: immutable but for a few marks, replaced whole.
//!
//! The marks are what lets a worker answer from its own handle without writing to shared memory: whether the entry is
//! still the stored one is only read, whether it is used is only written when it is not set yet. A compressed body is
//! made once and kept beside the plain one. Next: `memory`, which holds entries; `front`, which holds handles.

use crate::body::Body;
use crate::head::StoredHead;
use crate::key::Key;
use crate::now::Now;
use crate::policy::StaleCause;
use crate::vary::VaryFields;
use bytes::Bytes;
use millstream_conf::model::UseStale;
use millstream_wire::Fields;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Which of the variants of a key an entry is.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    /// The request fields that tell the variants apart.
    pub(crate) fields: Arc<VaryFields>,
    /// What the request of this one said in them.
    pub(crate) values: Arc<[u8]>,
}

impl Variant {
    /// Whether a request would get this one. `scratch` is any buffer; what was in it is lost.
    #[inline]
    pub(crate) fn fits(&self, request: Fields<'_>, scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        self.fields.write(request, scratch);
        **scratch == *self.values
    }
}

/// A stored answer.
#[derive(Debug)]
pub struct Entry {
    retired: AtomicBool,
    used: AtomicBool,
    gzip_claimed: AtomicBool,
    pub(crate) key: Arc<Key>,
    pub(crate) variant: Option<Variant>,
    /// Grows with every entry stored, so that the newest of two is known.
    pub(crate) order: u64,
    /// Where its fill stands among the purges: those that came later go for it.
    pub(crate) born: u64,
    /// The head.
    pub head: StoredHead,
    /// The body, as the upstream sent it.
    pub body: Body,
    gzip: OnceLock<Bytes>,
}

impl Entry {
    pub(crate) fn new(
        key: Arc<Key>,
        variant: Option<Variant>,
        (order, born): (u64, u64),
        mut head: StoredHead,
        body: Body,
    ) -> Entry {
        head.content_length = Some(body.len());
        Entry {
            retired: AtomicBool::new(false),
            used: AtomicBool::new(false),
            gzip_claimed: AtomicBool::new(false),
            key,
            variant,
            order,
            born,
            head,
            body,
            gzip: OnceLock::new(),
        }
    }

    /// The whole key it is stored under, see [`crate::key`].
    pub fn key(&self) -> &[u8] {
        self.key.bytes()
    }

    /// Length of the plain body in bytes.
    pub fn length(&self) -> u64 {
        self.body.len()
    }

    /// Seconds for the Age field.
    pub fn age(&self, now: Now) -> u64 {
        self.head.age(now)
    }

    /// Whether it may be used without asking anybody.
    #[inline]
    pub fn is_fresh(&self, now: Now) -> bool {
        self.head.lifetime.is_fresh(now)
    }

    /// Whether it may be used although it is stale.
    pub fn may_serve_stale(&self, cause: StaleCause, use_stale: &UseStale, now: Now) -> bool {
        self.head.lifetime.may_serve_stale(cause, use_stale, now)
    }

    /// The body compressed with gzip, once somebody has made it.
    #[inline]
    pub fn gzip_body(&self) -> Option<Bytes> {
        self.gzip.get().cloned()
    }

    /// Whether another entry, or none, is stored in its place.
    #[inline]
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Remembers that it was used. Written only when it is not set, so that a hot entry's line stays shared.
    #[inline]
    pub(crate) fn mark_used(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn take_used(&self) -> bool {
        self.used.load(Ordering::Relaxed) && self.used.swap(false, Ordering::Relaxed)
    }

    /// True for exactly one caller until it gives the claim back.
    pub(crate) fn claim_gzip(&self) -> bool {
        self.gzip.get().is_none() && !self.gzip_claimed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn unclaim_gzip(&self) {
        self.gzip_claimed.store(false, Ordering::Release);
    }

    pub(crate) fn keep_gzip(&self, body: Bytes) -> bool {
        self.gzip.set(body).is_ok()
    }

    /// Bytes it occupies, the key excluded, which belongs to the index.
    pub(crate) fn cost(&self) -> u64 {
        let body = self.body.memory().map_or(0, |bytes| bytes.len() as u64);
        let gzip = self.gzip.get().map_or(0, |bytes| bytes.len() as u64);
        let vary = self.variant.as_ref().map_or(0, |variant| variant.fields.cost());
        (size_of::<Entry>() + 16) as u64 + self.head.cost() + body + gzip + vary
    }
}
