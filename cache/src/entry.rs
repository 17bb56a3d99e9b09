//! One stored answer: immutable but for a few marks, replaced whole, and small, because there may be millions.
//!
//! ```text
//!   Entry ── block ─▶ | key | field lines, packed | body, if it is small |
//!         └─ more ──▶ what few have: a large body or one in a file, tags, a part, coded bodies
//! ```
//! The marks are what lets a worker answer from its own handle without writing to shared memory: whether the entry is
//! still the stored one is only read, whether it is used is only written when it is not set yet. Next: `memory`,
//! which holds entries; `front`, which holds handles.

mod marks;

use crate::body::{Body, FileBody};
use crate::coded::CodedBodies;
use crate::footprint::{allocated, counted};
use crate::head::{Head, Part};
use crate::kept_lifetime::KeptLifetime;
use crate::loan::{Held, SMALL_BODY};
use crate::now::{Now, milliseconds};
use crate::policy::{Lifetime, Needs, StaleCause};
use crate::tags::Tags;
use crate::vary::VaryFields;
use bytes::Bytes;
use marks::EntryMarks;
use millstream_conf::model::ProxyCache;
use millstream_wire::{Coding, Fields, packed};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Last-Modified is missing or cannot be read.
const NEVER: i64 = i64::MIN;

static NO_TAGS: Tags = Tags::NONE;

#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) fields: Arc<VaryFields>,
    /// What the request of this one had in them.
    pub(crate) values: Arc<[u8]>,
}

impl Variant {
    /// Whether a request would get this variant. `scratch` is overwritten.
    #[inline]
    pub(crate) fn fits(&self, request: Fields<'_>, scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        self.fields.write(request, scratch);
        **scratch == *self.values
    }
}

/// A stored response.
#[derive(Debug)]
pub struct Entry {
    pub(crate) marks: EntryMarks,
    status: u16,
    fields_at: u32,
    body_at: u32,
    lifetime: KeptLifetime,
    stored_at: i64,
    last_modified: i64,
    /// When its fill was granted, to tell which of two responses was requested later.
    pub(crate) order: u64,
    /// Where it stands among the purges: later ones may apply to it. Advanced by each check.
    born: AtomicU64,
    pub(crate) variant: Option<Arc<Variant>>,
    block: Box<[u8]>,
    more: OnceLock<Box<More>>,
}

#[derive(Debug, Default)]
struct More {
    tags: Tags,
    part: Option<Part>,
    body: Option<Body>,
    coded: CodedBodies,
}

struct SmallBody(Arc<Entry>);

impl AsRef<[u8]> for SmallBody {
    fn as_ref(&self) -> &[u8] {
        self.0.block_from(self.0.body_at)
    }
}

impl Entry {
    pub(crate) fn new(
        key: &[u8],
        variant: Option<Arc<Variant>>,
        (order, born): (u64, u64),
        head: Head<'_>,
        body: Body,
    ) -> Entry {
        let fields = head.fields();
        // Small bodies are copied behind the fields; larger ones stay in the buffer they came in.
        let small = body.memory().filter(|body| body.len() <= SMALL_BODY).map(|body| (**body).clone());
        let lines: usize = fields.iter().map(|(id, name, value)| packed::length(id, name, value)).sum();
        let length = key.len() + lines + small.as_ref().map_or(0, Bytes::len);
        let mut block = Vec::with_capacity(length);
        block.extend_from_slice(key);
        fields.iter().for_each(|(id, name, value)| packed::append(id, name, value, &mut block));
        let body_at = block.len();
        let body = match small {
            Some(bytes) => {
                block.extend_from_slice(&bytes);
                None
            }
            None => Some(body),
        };
        let more = OnceLock::new();
        if body.is_some() || !head.tags.is_empty() || head.part.is_some() {
            let tags = head.tags.clone();
            let _ = more.set(Box::new(More { tags, part: head.part, body, coded: CodedBodies::default() }));
        }
        // Keys and heads are bounded far below 4 GiB.
        let offset = |at: usize| u32::try_from(at).expect("a head is shorter than 4 GiB");
        Entry {
            marks: EntryMarks::default(),
            status: head.status,
            fields_at: offset(key.len()),
            body_at: offset(body_at),
            lifetime: KeptLifetime::new(head.lifetime),
            stored_at: head.stored_at,
            last_modified: head.last_modified.unwrap_or(NEVER),
            order,
            born: AtomicU64::new(born),
            variant,
            block: block.into_boxed_slice(),
            more,
        }
    }

    /// The whole key it is stored under, see [`crate::key`].
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.block[..self.fields_at as usize]
    }

    #[inline]
    pub fn head(&self) -> Head<'_> {
        let more = self.more.get();
        Head {
            status: self.status,
            lifetime: self.lifetime(),
            stored_at: self.stored_at,
            last_modified: Some(self.last_modified).filter(|&moment| moment != NEVER),
            tags: more.map_or(&NO_TAGS, |more| &more.tags),
            part: more.and_then(|more| more.part),
            fields: Fields::packed(&self.block[self.fields_at as usize..self.body_at as usize]),
        }
    }

    #[inline]
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime.whole()
    }

    /// As the upstream sent it.
    pub fn body(self: &Arc<Self>) -> Body {
        match self.large_body() {
            Some(body) => body.clone(),
            None => Body::Memory(Bytes::from_owner(SmallBody(self.clone())).into()),
        }
    }

    #[inline]
    pub fn body_in_memory(&self) -> Option<&[u8]> {
        match self.large_body() {
            Some(body) => body.memory().map(|held| &held[..]),
            None => Some(self.block_from(self.body_at)),
        }
    }

    pub fn body_in_file(&self) -> Option<&FileBody> {
        match self.large_body() {
            Some(Body::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The request fields that tell it from other variants, with the values of its own request; `None` =
    /// absent.
    pub fn varies_by(&self) -> Vec<(String, Option<String>)> {
        self.variant.as_ref().map(|variant| variant.fields.told(&variant.values)).unwrap_or_default()
    }

    #[inline]
    pub fn length(&self) -> u64 {
        self.large_body().map_or(self.block.len() as u64 - u64::from(self.body_at), Body::len)
    }

    /// Seconds for the Age field.
    #[inline]
    pub fn age(&self, now: Now) -> u64 {
        self.head().age(now)
    }

    /// Whether it may be used without validation.
    #[inline]
    pub fn is_fresh(&self, now: Now) -> bool {
        self.lifetime().is_fresh(now)
    }

    #[inline]
    pub fn meets(&self, needs: Needs) -> bool {
        self.lifetime.meets(needs)
    }

    pub fn may_serve_stale(&self, cause: StaleCause, conf: &ProxyCache, now: Now) -> bool {
        self.lifetime().may_serve_stale(cause, conf, self.stored_at, now)
    }

    /// Whether it may be updated in the background while it is sent: by `proxy_cache_background_update`, or
    /// because it allows it itself (RFC 5861 §3).
    pub fn is_updated_behind(&self, conf: &ProxyCache, now: Now) -> bool {
        conf.background_update || self.lifetime().grants_stale(StaleCause::Updating, now)
    }

    #[inline]
    pub fn coded_body(&self, coding: Coding) -> Option<&Held> {
        self.more.get()?.coded.find(coding)
    }

    pub fn coded_bodies(&self) -> impl Iterator<Item = (Coding, &Held)> {
        self.more.get().into_iter().flat_map(|more| more.coded.iter())
    }

    #[inline]
    pub fn is_retired(&self) -> bool {
        self.marks.is_retired()
    }

    pub(crate) fn retire(&self) {
        self.marks.retire();
        self.held().for_each(Held::leave);
    }

    /// Call it when it is stored.
    pub(crate) fn enter(&self) {
        self.held().for_each(Held::enter);
    }

    /// Whether evicting it would not free its memory: a worker has a handle to it, or a client reads it.
    pub(crate) fn is_held(self: &Arc<Self>) -> bool {
        let mut held = self.held().filter(|held| held.is_large()).peekable();
        held.peek().is_some() && (Arc::strong_count(self) > 1 || held.any(Held::is_read))
    }

    /// What it has in memory in addition to its block.
    fn held(&self) -> impl Iterator<Item = &Held> {
        let body = self.large_body().and_then(Body::memory);
        body.into_iter().chain(self.coded_bodies().map(|(_, body)| body))
    }

    /// No purge up to this number applies to it.
    #[inline]
    pub(crate) fn born(&self) -> u64 {
        self.born.load(Ordering::Relaxed)
    }

    pub(crate) fn checked_upto(&self, number: u64) {
        self.born.fetch_max(number, Ordering::Relaxed);
    }

    /// The same response, stale from a moment on, for a soft purge.
    pub(crate) fn stale_since(self: &Arc<Self>, at: i64, born: u64) -> Entry {
        let mut head = self.head();
        head.lifetime.fresh_until = head.lifetime.fresh_until.min(at);
        let entry = Entry::new(self.key(), self.variant.clone(), (self.order, born), head, self.body());
        entry.keep_all_coded(self);
        entry
    }

    /// Whether it expires soon enough to be refreshed ahead, and no one has tried yet. Never in the first
    /// half of its life, or a short one would be refreshed without end.
    pub(crate) fn wants_refresh(&self, ahead: Duration, now: Now) -> bool {
        let until = self.lifetime().fresh_until;
        let life = until.saturating_sub(self.stored_at);
        until.saturating_sub(now.unix_milliseconds) <= milliseconds(ahead).min(life / 2)
            && !self.marks.is_ahead_claimed()
    }

    /// True for exactly one caller until it gives the claim back.
    pub(crate) fn claim_coding(&self, coding: Coding) -> bool {
        self.coded_body(coding).is_none() && self.marks.claim_coding(coding)
    }

    /// False if that coding exists.
    pub(crate) fn keep_coded(&self, coding: Coding, body: Held) -> bool {
        self.more.get_or_init(Box::default).coded.add(coding, body)
    }

    /// Takes over the coded bodies of another entry with the same body.
    pub(crate) fn keep_all_coded(&self, other: &Entry) {
        other.coded_bodies().for_each(|(coding, body)| _ = self.keep_coded(coding, body.clone()));
    }

    pub(crate) fn coded_cost(&self, length: usize) -> u64 {
        let more = if self.more.get().is_none() { allocated(size_of::<More>()) } else { 0 };
        CodedBodies::cost_of(length) + more
    }

    /// Bytes, key included. The request fields that tell variants apart are shared by all of a key; each
    /// counts them.
    pub(crate) fn cost(&self) -> u64 {
        let variant = self.variant.as_ref().map_or(0, |variant| {
            counted::<Variant>() + variant.fields.cost() + allocated(variant.values.len() + 16)
        });
        let more = self.more.get().map_or(0, |more| {
            let body = more.body.as_ref().and_then(Body::memory).map_or(0, |bytes| allocated(bytes.len()));
            let path = self.body_in_file().map_or(0, |file| allocated(file.path.as_os_str().len() + 16));
            allocated(size_of::<More>()) + more.tags.cost() + body + more.coded.cost() + path
        });
        counted::<Entry>() + allocated(self.block.len()) + variant + more
    }

    #[inline]
    fn large_body(&self) -> Option<&Body> {
        self.more.get()?.body.as_ref()
    }

    #[inline]
    fn block_from(&self, at: u32) -> &[u8] {
        &self.block[at as usize..]
    }
}
