//! What is known of the locations with `shadow on`: one zone for the process, which outlives configurations.
//!
//! Its lock is held for less than a microsecond for a request that is not sampled, and for some 20 for one that is; while a report
//! is made, nothing is observed, so that no worker waits for it. Before: `millstream-shadow`, which judges; next: `watched`, what
//! is observed of a request.

use crate::status_zones::location_name;
use millstream_conf::model::{Http, LocationId};
use millstream_net::clock;
use millstream_shadow::report::STALE_BUDGET;
use millstream_shadow::{Key, Limits, Report, Shadow};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long viewers see one report.
const FRESH: Duration = Duration::from_secs(5);

/// In milliseconds: at most ten in a second.
const PROBE_EVERY: u64 = 100;

/// What has been observed since the process started.
pub struct ShadowZone {
    known: Mutex<Known>,
    is_reporting: AtomicBool,
    /// The report that viewers see, and when it was made.
    latest: Mutex<Option<(Instant, Arc<Value>)>>,
}

struct Known {
    shadow: Shadow,
    /// Stale hits per hit that are allowed where none are given.
    budget: f64,
    /// The observed locations, as `server location`; their numbers stay over reloads.
    locations: Vec<String>,
}

/// The locations of one configuration that are observed.
#[derive(Default)]
pub struct Shadows {
    zone: Option<Arc<ShadowZone>>,
    /// One per `Http::locations`.
    numbers: Vec<Option<u32>>,
}

impl Shadows {
    /// Those of a configuration. What `previous` has observed is kept.
    pub fn of(http: &Http, previous: Option<&Shadows>) -> Shadows {
        let before = previous.and_then(|shadows| shadows.zone.clone());
        let is_on = http.locations.iter().any(|location| location.settings.shadow);
        let zone = before.or_else(|| is_on.then(|| Arc::new(ShadowZone::new())));
        let Some(zone) = zone else { return Shadows::default() };
        let mut numbers = vec![None; http.locations.len()];
        let mut named: Vec<String> = Vec::new();
        for server in &http.servers {
            for id in http.locations_of(server) {
                let location = http.location(id);
                if !location.settings.shadow {
                    continue;
                }
                let name = location_name(server, &location.matches);
                // Two that are written alike are two all the same.
                let alike = named.iter().filter(|other| **other == name).count();
                let unique = if alike == 0 { name.clone() } else { format!("{name} ({})", alike + 1) };
                named.push(name);
                numbers[id.0 as usize] = Some(zone.number(unique));
            }
        }
        Shadows { zone: Some(zone), numbers }
    }

    /// `None` if no location is observed.
    pub fn zone(&self) -> Option<&Arc<ShadowZone>> {
        self.zone.as_ref()
    }

    pub fn of_location(&self, id: LocationId) -> Option<(&Arc<ShadowZone>, u32)> {
        Some((self.zone.as_ref()?, (*self.numbers.get(id.0 as usize)?)?))
    }
}

impl ShadowZone {
    fn new() -> ShadowZone {
        let shadow = Shadow::new(Key::random(), Limits::default());
        let known = Mutex::new(Known { shadow, budget: STALE_BUDGET, locations: Vec::new() });
        ShadowZone { known, is_reporting: AtomicBool::new(false), latest: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, location: String) -> u32 {
        let mut known = self.lock();
        let at = known.locations.iter().position(|known| *known == location);
        let at = at.unwrap_or_else(|| {
            known.locations.push(location);
            known.locations.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// From now on, some requests with credentials are sent once more without them, at most 10 in a second.
    pub fn probe(&self) {
        self.lock().shadow.allow_probes(PROBE_EVERY);
    }

    /// From now on, reports that are given no budget allow so many stale hits per hit.
    pub fn allow_stale(&self, budget: f64) {
        self.lock().budget = budget;
    }

    /// The verdicts up to now. `budget`: stale hits per hit that are allowed, instead of the usual ones.
    pub fn report(&self, budget: Option<f64>) -> Report {
        self.is_reporting.store(true, Ordering::Relaxed);
        let report = {
            let known = self.lock();
            let budget = budget.unwrap_or(known.budget);
            Report::of(&known.shadow, env!("CARGO_PKG_VERSION"), budget).naming(known.locations.clone())
        };
        self.is_reporting.store(false, Ordering::Relaxed);
        report
    }

    /// A report as JSON with the usual budget, at most five seconds old.
    pub fn latest(&self) -> Arc<Value> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((made, report)) if clock::now().saturating_duration_since(*made) < FRESH => report.clone(),
            _ => {
                let report = serde_json::to_value(self.report(None)).unwrap_or_default();
                latest.insert((clock::now(), Arc::new(report))).1.clone()
            }
        }
    }

    /// `None` while a report is made.
    pub fn observe<R>(&self, what: impl FnOnce(&mut Shadow) -> R) -> Option<R> {
        (!self.is_reporting.load(Ordering::Relaxed)).then(|| what(&mut self.lock().shadow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_see_the_budget_of_the_process_unless_they_ask_with_another() {
        let zone = ShadowZone::new();
        assert_eq!(zone.report(None).stale_budget, STALE_BUDGET);
        zone.allow_stale(0.01);
        assert_eq!((zone.report(None).stale_budget, zone.report(Some(0.5)).stale_budget), (0.01, 0.5));
        assert_eq!(zone.latest()["stale_budget"], 0.01);
    }
}
