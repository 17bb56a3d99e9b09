//! Why requests were not answered from the cache, and why answers were not stored: per location, per thread.
//!
//! The words are a table here; what they mean is decided where requests are answered. Next: `snapshot`, which sums; `prometheus`, which prints.

use super::add;
use super::table::MetricLine;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

macro_rules! causes {
    ($($variant:ident = $family:ident $name:literal, $doc:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause { $(#[doc = $doc] $variant,)* }

        impl Cause {
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)*];
            pub const COUNT: usize = Self::ALL.len();

            pub fn of(self) -> (CauseFamily, &'static str) {
                match self { $(Cause::$variant => (CauseFamily::$family, $name),)* }
            }

            /// Labels and meanings, for the manual.
            pub fn described(family: CauseFamily) -> impl Iterator<Item = (&'static str, &'static str)> {
                [$((CauseFamily::$family, $name, $doc),)*]
                    .into_iter()
                    .filter(move |(of, ..)| *of == family)
                    .map(|(_, word, doc)| (word, doc))
            }
        }
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseFamily {
    Miss,
    NotStored,
}

causes! {
    Absent = Miss "absent", "No matching response was stored.";
    Expired = Miss "expired", "The stored response was stale.";
    Validate = Miss "always_validate", "The stored response must be validated at every use.";
    Client = Miss "client", "The client requested a fresher response.";
    Bypass = Miss "bypass", "`proxy_cache_bypass` applied.";
    Credentials = Miss "credentials", "The request carried a credential (`proxy_cache_credentials`).";
    OwnWrite = Miss "own_write", "The client has just changed what is stored (`proxy_cache_invalidation rate=`).";
    NotKeyed = Miss "not_keyed", "The request has parts that the key does not name, or its key is too long.";
    Leak = Miss "leak", "A leak has turned the cache of the location off (`proxy_cache_verify`).";
    NotCachedMethod = Miss "method", "The method is not cached.";
    Scarce = Miss "scarce", "`proxy_cache_min_uses` was not reached, or the zone was full.";
    LockTimeout = Miss "lock_timeout", "Another request's response took longer than `proxy_cache_lock_timeout`.";
    StoreMethod = NotStored "method", "Responses to this method are not stored.";
    StoreStatus = NotStored "status", "Responses with this status are not stored.";
    StoreNoCacheDirective = NotStored "proxy_no_cache", "`proxy_no_cache` applied.";
    StoreXAccelExpires = NotStored "x_accel_expires", "X-Accel-Expires forbids it.";
    StoreNoStore = NotStored "no_store", "no-store forbids it.";
    StorePrivate = NotStored "private", "private forbids it.";
    StoreNoCache = NotStored "no_cache", "no-cache, without a validator.";
    StoreExpired = NotStored "expired", "The response was already stale when it arrived.";
    StoreNoLifetime = NotStored "no_lifetime", "The response has no lifetime.";
    StoreErrorStatus = NotStored "error_status", "An error (4xx, 5xx) without a lifetime of its own.";
    StoreSetCookie = NotStored "set_cookie", "The response has Set-Cookie.";
    StoreVary = NotStored "vary", "Vary is `*` or too long.";
    StoreAuthorization = NotStored "authorization", "The request had Authorization.";
    StoreCredentials = NotStored "credentials", "The request carried a credential (`proxy_cache_credentials`).";
    StoreUnnamed = NotStored "unnamed_field", "The request had a field (RSC) that neither key nor Vary names.";
    StoreStreaming = NotStored "streaming", "The response is an event stream or similar.";
    StoreMustUnderstand = NotStored "must_understand", "must-understand, for an unknown status.";
    StoreKeyTooLong = NotStored "key_too_long", "The key is too long.";
    StoreRequestBody = NotStored "request_body", "The request had a body.";
    StoreClientNoStore = NotStored "client_no_store", "The client sent no-store.";
    StoreTooLarge = NotStored "too_large", "The response is too large for the zone.";
    StoreStillArriving = NotStored "still_arriving", "The response was still arriving after `proxy_cache_fill_timeout`.";
    StoreIncomplete = NotStored "incomplete", "The response broke off.";
    StoreTooManyTags = NotStored "too_many_tags", "The response has more than 1,024 tags.";
    StoreDiskError = NotStored "disk_error", "The cache directory was not writable.";
    StoreNoValidator = NotStored "no_validator", "A piece (`slice`) without ETag and Last-Modified.";
}

impl Cause {
    pub fn not_stored(word: &str) -> Option<Cause> {
        Cause::ALL.iter().copied().find(|cause| cause.of() == (CauseFamily::NotStored, word))
    }
}

impl CauseFamily {
    /// Labels are added for location and cause.
    pub const fn line(self) -> MetricLine {
        match self {
            CauseFamily::Miss => MetricLine {
                name: "millstream_cache_misses_total",
                labels: "location, cause",
                doc: "Requests not served from the cache, by location and cause.",
            },
            CauseFamily::NotStored => MetricLine {
                name: "millstream_cache_not_stored_total",
                labels: "location, cause",
                doc: "Responses that might have been stored but were not, by location and cause.",
            },
        }
    }
}

#[derive(Debug)]
pub(super) struct MissCells([MissCell; Cause::COUNT]);

/// How often one thread met a cause, and when last (milliseconds since 1970, 0 = never).
#[derive(Debug)]
struct MissCell {
    count: AtomicU64,
    moved: AtomicU64,
    last: AtomicI64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MissCount {
    pub count: u64,
    /// In milliseconds since 1970; 0 = never.
    pub last: i64,
    /// For a cause of misses: those explained by another cause, because the response was not stored. For a
    /// cause of a response not being stored: the misses that it explains. So each miss has one cause.
    pub moved: u64,
}

impl MissCount {
    /// With each miss counted under one cause.
    pub fn misses(&self, family: CauseFamily) -> u64 {
        match family {
            CauseFamily::Miss => self.count.saturating_sub(self.moved),
            CauseFamily::NotStored => self.moved,
        }
    }
}

impl Default for MissCells {
    fn default() -> Self {
        MissCells(
            [const { MissCell { count: AtomicU64::new(0), moved: AtomicU64::new(0), last: AtomicI64::new(0) } };
                Cause::COUNT],
        )
    }
}

impl MissCells {
    pub(super) fn count(&self, cause: Cause, unix_milliseconds: i64) {
        let cell = &self.0[cause as usize];
        add(&cell.count, 1);
        cell.last.store(unix_milliseconds, Ordering::Relaxed);
    }

    pub(super) fn move_on(&self, cause: Cause, reason: Cause) {
        add(&self.0[cause as usize].moved, 1);
        add(&self.0[reason as usize].moved, 1);
    }

    pub(super) fn add_to(&self, sums: &mut [MissCount; Cause::COUNT]) {
        for (sum, cell) in sums.iter_mut().zip(&self.0) {
            sum.count = sum.count.wrapping_add(cell.count.load(Ordering::Relaxed));
            sum.moved = sum.moved.wrapping_add(cell.moved.load(Ordering::Relaxed));
            sum.last = sum.last.max(cell.last.load(Ordering::Relaxed));
        }
    }
}
