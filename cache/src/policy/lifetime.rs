//! How long an entry may be used, and how beyond that (RFC 9111 §4.2.4, RFC 5861), and by whom.
//!
//! Plain numbers, kept with the entry and in its file: whoever asks hands in the moment. What made the numbers is
//! `judge`'s; what a request makes of them, `request`'s.

use crate::now::{Now, milliseconds};
use crate::vary::VaryRule;
use millstream_conf::model::{CacheVary, FailureWords, ProxyCache, UseStale};
use std::time::Duration;

/// How long an entry may be used, and in which cases beyond that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// In milliseconds since 1970.
    pub fresh_until: i64,
    /// On arrival.
    pub initial_age: Duration,
    /// May be used this much longer while it is being updated (RFC 5861 §3).
    pub stale_while_revalidate: Option<Duration>,
    /// May be used this much longer if the upstream fails (RFC 5861 §4).
    pub stale_if_error: Option<Duration>,
    pub revalidation: Revalidation,
    /// What it varies by in addition to its Vary, or in its place.
    pub vary: VaryRule,
    /// Whether it is explicitly public (`public` or s-maxage).
    pub public: bool,
    /// Never used without validation, however fresh: no-cache (RFC 9111 §5.2.2.4), or stale on arrival.
    pub always_validate: bool,
}

/// Whether a stale response may be used without validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revalidation {
    Free,
    /// Implied by s-maxage (RFC 9111 §5.2.2.10); an explicit RFC 5861 directive beside it wins.
    Implied,
    /// must-revalidate, proxy-revalidate or no-cache: never.
    Required,
}

/// Who asks, as far as it decides what may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asker {
    /// A client without a credential, or with one that does not count here.
    #[default]
    Anybody,
    /// A client with a credential, with `proxy_cache_credentials public`.
    Known,
}

/// What a response must satisfy before it may be used for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs(u8);

impl Needs {
    const PUBLIC: u8 = 1;
    const ORIGIN: u8 = 1 << 1;
    const UNLISTED: u8 = 1 << 2;
    const ADDRESS: u8 = 1 << 3;

    /// What a client needs in a location with these settings. What was stored under laxer ones may have been
    /// given to anyone, so it is not given here.
    #[inline]
    pub fn of(conf: &ProxyCache, asker: Asker) -> Needs {
        let public = if asker == Asker::Known { Needs::PUBLIC } else { 0 };
        let CacheVary { origin, unlisted, address } = conf.vary;
        let rule = VaryRule { origin, unlisted, address, ignored: false };
        Needs(public | Needs::met_by(false, rule))
    }

    #[inline]
    pub(crate) const fn met_by(public: bool, vary: VaryRule) -> u8 {
        public as u8 * Needs::PUBLIC
            + vary.origin as u8 * Needs::ORIGIN
            + vary.unlisted as u8 * Needs::UNLISTED
            + (vary.address || public) as u8 * Needs::ADDRESS
    }

    #[inline]
    pub(crate) const fn are_met(self, met: u8) -> bool {
        met & self.0 == self.0
    }
}

/// Why a stale response would be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleCause {
    Updating,
    Error,
    Timeout,
    InvalidHeader,
    Status(u16),
}

impl Lifetime {
    /// Of a response that is used this once.
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

    #[inline]
    pub fn meets(&self, needs: Needs) -> bool {
        needs.are_met(Needs::met_by(self.public, self.vary))
    }

    #[inline]
    pub fn is_fresh(&self, now: Now) -> bool {
        now.unix_milliseconds < self.fresh_until && !self.always_validate
    }

    /// Whether the stale entry may be used because of `cause`; `stored_at` is in milliseconds since 1970.
    ///
    /// The configuration may allow it, within its limit, for a response that does not say; a response that
    /// forbids it overrides the configuration (RFC 9111 §4.2.4).
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

    /// Whether the response allows it itself (RFC 5861), whatever is configured.
    pub fn grants_stale(&self, cause: StaleCause, now: Now) -> bool {
        self.revalidation != Revalidation::Required
            && self.granted(cause).is_some_and(|window| self.is_within(window, now))
    }

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

    /// Whether a response that is stale at once is worth storing for its permitted stale uses.
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
