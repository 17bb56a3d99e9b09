//! How long an entry may be used, and how beyond that (RFC 9111 §4.2.4, RFC 5861).
//!
//! Plain numbers, kept with the entry and in its file: whoever asks hands in the moment. What made the numbers is
//! `judge`'s; what a request makes of them, `request`'s.

use crate::now::{Now, milliseconds};
use millstream_conf::model::{FailureWords, UseStale};
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
    /// `proxy_ignore_headers Vary`: one answer for all, whatever its Vary says.
    pub vary_ignored: bool,
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
            vary_ignored: false,
            always_validate: false,
        }
    }

    /// Whether the entry may be used without asking anybody.
    #[inline]
    pub fn is_fresh(&self, now: Now) -> bool {
        now.unix_milliseconds < self.fresh_until && !self.always_validate
    }

    /// Whether the entry, being stale, may be used because of `cause`.
    ///
    /// The configuration may allow it for an answer that says nothing about it; an answer that forbids it outweighs
    /// the configuration (RFC 9111 §4.2.4).
    pub fn may_serve_stale(&self, cause: StaleCause, use_stale: &UseStale, now: Now) -> bool {
        let granted = match cause {
            StaleCause::Updating => self.stale_while_revalidate,
            StaleCause::Status(status) if !matches!(status, 500 | 502 | 503 | 504) => None,
            _ => self.stale_if_error,
        };
        match self.revalidation {
            Revalidation::Required => false,
            _ if granted.is_some_and(|window| self.is_within(window, now)) => true,
            Revalidation::Implied => false,
            Revalidation::Free => allows(use_stale, cause),
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
