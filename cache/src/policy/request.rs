//! What a request asks of the cache (RFC 9111 §5.2.1, §5.4), and whether a stored answer satisfies it.
//!
//! Clients are only listened to where `proxy_cache_client_control` is on: in front of an application, a cache that
//! every reload goes through protects nothing. Next: `lifetime`.

use super::lifetime::{Lifetime, Revalidation};
use crate::now::{Now, milliseconds};
use millstream_conf::model::ProxyCache;
use millstream_wire::{FieldId, Fields, cache_control};
use std::time::Duration;

/// What a request asks for; by default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    pub no_cache: bool,
    pub no_store: bool,
    /// In seconds.
    pub max_age: Option<u64>,
    /// In seconds.
    pub min_fresh: Option<u64>,
    /// Stale for so many seconds, or forever (`Some(None)`).
    pub max_stale: Option<Option<u64>>,
    pub only_if_cached: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usable {
    Yes,
    /// After asking the upstream, and why.
    Validate(Why),
    /// Not at all, nor may the upstream be asked: 504.
    Refuse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Stale,
    /// It must be validated at every use.
    AlwaysValidate,
    NoCache,
    MaxAge,
    MinFresh,
}

impl Why {
    /// For the API.
    pub fn name(self) -> &'static str {
        match self {
            Why::Stale => "stale",
            Why::AlwaysValidate => "always_validate",
            Why::NoCache => "request_no_cache",
            Why::MaxAge => "request_max_age",
            Why::MinFresh => "request_min_fresh",
        }
    }
}

impl Wish {
    /// Empty unless `proxy_cache_client_control` is on.
    #[inline]
    pub fn read(conf: &ProxyCache, request: Fields<'_>) -> Wish {
        if conf.client_control { Wish::of(request) } else { Wish::default() }
    }

    fn of(request: Fields<'_>) -> Wish {
        if !request.has(FieldId::CacheControl) {
            // Pragma stands in for a Cache-Control that is not there (RFC 9111 §5.4).
            return Wish { no_cache: request.lists(FieldId::Pragma, "no-cache"), ..Wish::default() };
        }
        let control = cache_control::parse(request.all(FieldId::CacheControl));
        Wish {
            no_cache: control.no_cache.is_present(),
            no_store: control.no_store,
            max_age: control.max_age,
            min_fresh: control.min_fresh,
            max_stale: control.max_stale,
            only_if_cached: control.only_if_cached,
        }
    }

    #[inline]
    pub fn is_none(&self) -> bool {
        *self == Wish::default()
    }

    /// `age` is in seconds.
    pub fn accepts(&self, lifetime: &Lifetime, age: u64, now: Now) -> Usable {
        match self.objection(lifetime, age, now) {
            None => Usable::Yes,
            Some(_) if self.only_if_cached => Usable::Refuse,
            Some(why) => Usable::Validate(why),
        }
    }

    fn objection(&self, lifetime: &Lifetime, age: u64, now: Now) -> Option<Why> {
        if lifetime.always_validate {
            return Some(Why::AlwaysValidate);
        }
        if self.no_cache {
            return Some(Why::NoCache);
        }
        // What a browser's reload sends: it means now, not within this second.
        if self.max_age.is_some_and(|longest| age > longest || longest == 0) {
            return Some(Why::MaxAge);
        }
        let left = lifetime.fresh_until.saturating_sub(now.unix_milliseconds);
        if self.min_fresh.is_some_and(|least| left < milliseconds(Duration::from_secs(least))) {
            return Some(Why::MinFresh);
        }
        if left > 0 {
            return None;
        }
        let accepted = match self.max_stale {
            // An answer that forbids to be used stale outweighs who wants it all the same (§4.2.4).
            _ if lifetime.revalidation != Revalidation::Free => false,
            None => false,
            Some(None) => true,
            Some(Some(longest)) => -left <= milliseconds(Duration::from_secs(longest)),
        };
        (!accepted).then_some(Why::Stale)
    }
}

/// `age` is in seconds.
pub fn may_use(lifetime: &Lifetime, age: u64, request: Fields<'_>, conf: &ProxyCache, now: Now) -> Usable {
    Wish::read(conf, request).accepts(lifetime, age, now)
}
