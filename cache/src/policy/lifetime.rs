//! How long an entry may be used, and how beyond that (RFC 9111 §4.2.4, RFC 5861), and by whom.
//!
//! Plain numbers, kept with the entry and in its file: whoever asks hands in the moment. What made the numbers is
//! `judge`'s; what a request makes of them, `request`'s.

use crate::now::{Now, milliseconds};
use crate::vary::VaryRule;
use millstream_conf::model::{CacheVary, FailureWords, ProxyCache, UseStale};
use std::time::Duration;

/// How long an entry may be used, and how beyond that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Fresh before this moment, in milliseconds since 1970.
    pub fresh_until: i64,
    /// Age it already had when it arrived.
    pub initial_age: Duration,
    /// May be used this much longer while it is being updated (RFC 5861 §3).
    pub stale_while_revalidate: Option<Duration>,
    /// May be used this much longer when the upstream fails (RFC 5861 §4).
    pub stale_if_error: Option<Duration>,
    /// Whether the answer forbids to use it stale.
    pub revalidation: Revalidation,
    /// What it varies by beside what its Vary says, or in its place.
    pub vary: VaryRule,
    /// Whether it says itself that it is for everybody (`public` or s-maxage).
    pub public: bool,
    /// Never used without asking first, however fresh: no-cache (RFC 9111 §5.2.2.4), or stale when it came.
    pub always_validate: bool,
}

/// Whether a stale answer may be used without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revalidation {
    /// Nothing is said.
    Free,
    /// s-maxage says it in passing (RFC 9111 §5.2.2.10); an explicit RFC 5861 directive beside it wins.
    Implied,
    /// must-revalidate, proxy-revalidate or no-cache: never.
    Required,
}

/// Who asks, as far as it decides what may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asker {
    /// Somebody who shows no credential, or one that counts for nothing here.
    #[default]
    Anybody,
    /// Somebody with a credential, where `proxy_cache_credentials public` is in force.
    Known,
}

/// What must hold for an answer before it may be given to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs(u8);

impl Needs {
    const PUBLIC: u8 = 1;
    const ORIGIN: u8 = 1 << 1;
    const UNLISTED: u8 = 1 << 2;
    /// By address, or for everybody.
    const ADDRESS: u8 = 1 << 3;

    /// What whoever asks needs in a location with these settings. What was stored under laxer ones may have been given
    /// to anybody, so it is not given here.
    #[inline]
    pub fn of(conf: &ProxyCache, asker: Asker) -> Needs {
        let public = if asker == Asker::Known { Needs::PUBLIC } else { 0 };
        let CacheVary { origin, unlisted, address } = conf.vary;
        let rule = VaryRule { origin, unlisted, address, ignored: false };
        Needs(public | Needs::met_by(false, rule))
    }

    /// The needs that are met by an answer, as bits.
    #[inline]
    pub(crate) const fn met_by(public: bool, vary: VaryRule) -> u8 {
        public as u8 * Needs::PUBLIC
            + vary.origin as u8 * Needs::ORIGIN
            + vary.unlisted as u8 * Needs::UNLISTED
            + (vary.address || public) as u8 * Needs::ADDRESS
    }

    /// Whether these bits of an answer meet them.
    #[inline]
    pub(crate) const fn are_met(self, met: u8) -> bool {
        met & self.0 == self.0
    }
}

/// Why a stale answer would be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleCause {
    /// It is being updated.
    Updating,
    /// The upstream could not be reached, or broke off.
    Error,
    /// The upstream was too slow.
    Timeout,
    /// The upstream's answer could not be read.
    InvalidHeader,
    /// The upstream answered with this status.
    Status(u16),
}

impl Lifetime {
    /// That of an answer that is used this once.
    pub fn over(now: Now) -> Lifetime {
        Lifetime {
            fresh_until: now.unix_milliseconds,
            initial_age: Duration::ZERO,
            stale_while_revalidate: None,
            stale_if_error: None,
            revalidation: Revalidation::Required,
            vary: VaryRule::default(),
            public: false,
            always_validate: false,
        }
    }

    /// Whether it may be given to a request with these needs.
    #[inline]
    pub fn meets(&self, needs: Needs) -> bool {
        needs.are_met(Needs::met_by(self.public, self.vary))
    }

    /// Whether the entry may be used without asking anybody.
    #[inline]
    pub fn is_fresh(&self, now: Now) -> bool {
        now.unix_milliseconds < self.fresh_until && !self.always_validate
    }

    /// Whether the entry, being stale, may be used because of `cause`; it was stored at this moment, in milliseconds
    /// since 1970.
    ///
    /// The configuration may allow it for an answer that says nothing about it, as long as its bound has it; an answer
    /// that forbids it outweighs the configuration (RFC 9111 §4.2.4).
    pub fn may_serve_stale(&self, cause: StaleCause, conf: &ProxyCache, stored_at: i64, now: Now) -> bool {
        if self.grants_stale(cause, now) {
            return true;
        }
        if self.revalidation != Revalidation::Free || !allows(&conf.use_stale, cause) {
            return false;
        }
        let bound = match cause {
            StaleCause::Updating => conf.stale_while_updating.map(|bound| {
                let fresh = u64::try_from(self.fresh_until.saturating_sub(stored_at)).unwrap_or(0);
                let part = bound.percent.map(|percent| fresh.saturating_mul(u64::from(percent)) / 100);
                part.map_or(bound.longest, |part| bound.longest.min(Duration::from_millis(part)))
            }),
            _ => conf.stale_if_error,
        };
        // Where there is a bound, an answer that has said how long is not held to another one.
        bound.is_none_or(|bound| self.granted(cause).is_none() && self.is_within(bound, now))
    }

    /// Whether the answer allows it itself (RFC 5861), whatever is configured.
    pub fn grants_stale(&self, cause: StaleCause, now: Now) -> bool {
        self.revalidation != Revalidation::Required
            && self.granted(cause).is_some_and(|window| self.is_within(window, now))
    }

    /// For how long it does.
    fn granted(&self, cause: StaleCause) -> Option<Duration> {
        match cause {
            StaleCause::Updating => self.stale_while_revalidate,
            StaleCause::Status(status) if !matches!(status, 500 | 502 | 503 | 504) => None,
            _ => self.stale_if_error,
        }
    }

    /// Whether it is fresh, or stale for less than `window`.
    pub(super) fn is_within(&self, window: Duration, now: Now) -> bool {
        now.unix_milliseconds < self.fresh_until.saturating_add(milliseconds(window))
    }

    /// Whether an answer that is stale at once is worth storing for what it may be used for all the same.
    pub(super) fn is_usable_stale(&self, now: Now) -> bool {
        self.revalidation != Revalidation::Required
            && [self.stale_while_revalidate, self.stale_if_error]
                .into_iter()
                .flatten()
                .any(|window| self.is_within(window, now))
    }
}

fn allows(use_stale: &UseStale, cause: StaleCause) -> bool {
    match cause {
        StaleCause::Updating => use_stale.updating,
        StaleCause::Error => use_stale.error,
        StaleCause::Timeout => use_stale.timeout,
        StaleCause::InvalidHeader => use_stale.invalid_header,
        StaleCause::Status(status) => use_stale.has_status(status),
    }
}
