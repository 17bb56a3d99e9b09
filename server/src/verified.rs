//! What all workers share of the locations whose hits are checked (`proxy_cache_verify`): the rate of the checks, and a leak.
//!
//! It is made anew with each configuration, so a reload turns the caches on again. Reading it costs no shared write. Next:
//! `caching/keyed`, which asks whether the cache is off; `cached/verify`, which checks.

use crate::status_zones::location_name;
use millstream_conf::model::{Http, LocationId};
use millstream_net::clock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Checks that were not made are made up for within this time.
const BURST: Duration = Duration::from_secs(1);

/// The time between two reports of leaks, if the cache stays on.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// One location, with its `if` and `limit_except` blocks.
pub struct VerifiedLocation {
    started: Instant,
    /// Microseconds after `started` until which checks have been admitted.
    admitted: AtomicU64,
    leak: OnceLock<Leak>,
    /// Microseconds after `started` until which a leak has been reported.
    reported: AtomicU64,
}

/// Why the cache of a location is off.
#[derive(Debug, Clone)]
pub struct Leak {
    /// Milliseconds since 1970.
    pub at: i64,
    /// Host and path, without what may be a secret.
    pub url: String,
    /// What of the response differs.
    pub differs_by: &'static str,
}

/// Those of one configuration.
#[derive(Default)]
pub struct VerifiedLocations {
    /// One per `Http::locations`; empty if none is checked.
    locations: Vec<Option<Arc<VerifiedLocation>>>,
}

impl VerifiedLocation {
    fn new() -> VerifiedLocation {
        VerifiedLocation {
            started: clock::now(),
            admitted: AtomicU64::new(0),
            leak: OnceLock::new(),
            reported: AtomicU64::new(0),
        }
    }

    /// `Some`: the cache is off.
    #[inline]
    pub fn leak(&self) -> Option<&Leak> {
        self.leak.get()
    }

    /// Whether it was on until now.
    pub fn turn_off(&self, leak: Leak) -> bool {
        self.leak.set(leak).is_ok()
    }

    /// Whether a check may begin, at most one per `interval` on average.
    pub fn admits(&self, interval: Duration, now: Instant) -> bool {
        self.take(&self.admitted, interval, BURST.saturating_sub(interval), now)
    }

    /// Whether a leak is to be reported now, if the cache stays on.
    pub fn reports(&self, now: Instant) -> bool {
        self.take(&self.reported, REPORT_EVERY, Duration::ZERO, now)
    }

    fn take(&self, until: &AtomicU64, interval: Duration, burst: Duration, now: Instant) -> bool {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = micros(now.saturating_duration_since(self.started));
        let next = |taken: u64| {
            let is_free = taken <= now.saturating_add(micros(burst));
            is_free.then(|| taken.max(now).saturating_add(micros(interval)))
        };
        until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

impl VerifiedLocations {
    pub fn of(http: &Http) -> VerifiedLocations {
        let is_checked =
            |id: LocationId| http.location(id).settings.cache().is_some_and(|cache| cache.verify.is_some());
        let mut locations = Vec::new();
        for server in &http.servers {
            // A location's blocks are locations with the same path.
            let mut of_server: HashMap<String, Arc<VerifiedLocation>> = HashMap::new();
            for id in http.locations_of(server).into_iter().filter(|id| is_checked(*id)) {
                locations.resize(http.locations.len(), None);
                let path = location_name(server, &http.location(id).matches);
                let shared = of_server.entry(path).or_insert_with(|| Arc::new(VerifiedLocation::new()));
                locations[id.0 as usize] = Some(shared.clone());
            }
        }
        VerifiedLocations { locations }
    }

    #[inline]
    pub fn of_location(&self, id: LocationId) -> Option<&Arc<VerifiedLocation>> {
        self.locations.get(id.0 as usize)?.as_ref()
    }

    /// Locations that are off.
    pub fn off(&self) -> u32 {
        let mut off: Vec<_> = self.locations.iter().flatten().filter(|one| one.leak().is_some()).collect();
        off.sort_unstable_by_key(|one| Arc::as_ptr(one));
        off.dedup_by(|one, other| Arc::ptr_eq(one, other));
        u32::try_from(off.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_admitted_at_their_rate_whatever_came_before() {
        let location = VerifiedLocation::new();
        let admitted = |after: u64| {
            let now = location.started + Duration::from_millis(after);
            (0..100).filter(|_| location.admits(Duration::from_millis(100), now)).count()
        };
        assert_eq!([admitted(0), admitted(99), admitted(100), admitted(60_000)], [10, 0, 1, 10]);
    }

    #[test]
    fn the_first_leak_turns_off() {
        let location = VerifiedLocation::new();
        let leak = || Leak { at: 1, url: "a/".to_owned(), differs_by: "body" };
        assert!(location.leak().is_none());
        assert!(location.turn_off(leak()) && !location.turn_off(leak()) && location.leak().is_some());
    }
}
