//! The last hour in rows of a second each, and what those who watch are sent each second.
//!
//! One thread writes here, once a second, out of the sums of what workers count; no request does. Memory is bounded: rows have a fixed
//! size, a frame is one text for all viewers, and who takes it too slowly gets a later one. Before: `telemetry`'s `metrics`; next:
//! `millstream-admin`'s `live`, which sends it; `millstream`'s `app/src/recording.rs`, the thread.

use millstream_net::clock;
use millstream_telemetry::histogram::HistogramSnapshot;
use millstream_telemetry::metrics::{CacheStatus, Counter, Gauge, LocationSnapshot, Registry, Snapshot};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch::{Receiver, Sender};

/// An hour, 320 KiB.
const ROWS: usize = 3600;
const NOTES: usize = 50;
const LONGEST_NOTE: usize = 300;
const VIEWERS: usize = 64;

macro_rules! columns {
    ($($name:ident: $doc:literal;)*) => {
        /// One second. Times are in microseconds, counters are increments.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Second { $(#[doc = $doc] pub $name: u64,)* }

        impl Second {
            /// In the order of its fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            fn figures(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$name,)*]
            }
        }
    };
}

columns! {
    at: "The end of the interval, in seconds since 1970.";
    requests: "Completed client requests.";
    cached: "Requests that a cache handled.";
    hits: "Requests served from the cache without a request to the upstream.";
    reached: "Requests sent to upstream servers, including refreshes and retries.";
    without: "Requests that would have been sent to upstream servers without a cache.";
    p50: "The median response time; 0 without requests.";
    p99: "The 99th percentile of response times.";
    errors: "Responses with status 5xx, and requests without a response.";
    sent: "Bytes sent to clients.";
    active: "Client connections open at the end of the interval.";
}

#[derive(Debug, Clone)]
struct Note {
    /// Milliseconds since 1970.
    at: i64,
    went_well: bool,
    text: String,
}

#[derive(Debug)]
pub struct Recorder {
    rows: Mutex<VecDeque<Second>>,
    notes: Mutex<VecDeque<Note>>,
    before: Mutex<Option<Totals>>,
    frames: Sender<Arc<str>>,
}

/// Running totals; a row is the difference of two.
#[derive(Debug, Clone)]
struct Totals {
    requests: u64,
    cached: u64,
    hits: u64,
    reached: u64,
    without: u64,
    errors: u64,
    sent: u64,
    latency: Option<HistogramSnapshot>,
    active: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder {
            rows: Mutex::default(),
            notes: Mutex::default(),
            before: Mutex::default(),
            frames: Sender::new(Arc::from("")),
        }
    }
}

impl Recorder {
    /// Records the second that ends now (`unix_seconds`) and sends it to viewers with `tables`, which is
    /// called only if there are any. For one thread.
    pub fn record(&self, registry: &Registry, unix_seconds: i64, tables: impl FnOnce() -> Value) {
        let totals = Totals::of(&registry.snapshot());
        // The first look has nothing before it to compare with.
        let Some(before) = lock(&self.before).replace(totals.clone()) else { return };
        let second = totals.since(&before, u64::try_from(unix_seconds).unwrap_or(0));
        {
            let mut rows = lock(&self.rows);
            if rows.len() == ROWS {
                rows.pop_front();
            }
            rows.push_back(second);
        }
        if self.frames.receiver_count() > 0 {
            let frame =
                json!({ "second": second.figures(), "tables": tables(), "notes": self.noted(registry) });
            self.frames.send_replace(Arc::from(frame.to_string()));
        }
    }

    pub fn history(&self, registry: &Registry) -> Value {
        let rows = lock(&self.rows);
        let rows: Vec<_> = rows.iter().map(Second::figures).collect();
        json!({ "names": Second::NAMES, "rows": rows, "notes": self.noted(registry) })
    }

    /// The latest frame, updated each second. `None` if there are too many viewers.
    pub fn watch(&self) -> Option<Receiver<Arc<str>>> {
        (self.frames.receiver_count() < VIEWERS).then(|| self.frames.subscribe())
    }

    /// Unless the last note says the same.
    pub fn note_shortage(&self, text: &str) {
        if lock(&self.notes).back().is_none_or(|last| last.text != text) {
            self.note(clock::wall().unix_milliseconds(), false, text);
        }
    }

    pub fn note(&self, unix_milliseconds: i64, went_well: bool, text: &str) {
        let text = text.chars().take(LONGEST_NOTE).collect();
        let mut notes = lock(&self.notes);
        if notes.len() == NOTES {
            notes.pop_front();
        }
        notes.push_back(Note { at: unix_milliseconds, went_well, text });
    }

    /// Notes and logged errors, the latest first.
    fn noted(&self, registry: &Registry) -> Vec<Value> {
        let errors = registry.recent_errors().all().into_iter();
        let errors = errors.map(|error| Note { at: error.at * 1000, went_well: false, text: error.text });
        let mut notes: Vec<Note> = lock(&self.notes).iter().cloned().chain(errors).collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.at));
        let told = notes.iter();
        told.map(|Note { at, went_well, text }| json!({ "at": at, "well": went_well, "text": text }))
            .collect()
    }
}

impl Totals {
    fn of(snapshot: &Snapshot) -> Totals {
        let mut latency: Option<HistogramSnapshot> = None;
        let (mut requests, mut errors, mut sent) = (0, 0, 0);
        for (_, zone) in &snapshot.servers {
            requests += zone.requests();
            errors += zone.responses[4] + zone.discarded();
            sent += zone.sent;
            match &mut latency {
                Some(sum) => sum.add(&zone.latency),
                None => latency = Some(zone.latency.clone()),
            }
        }
        let sum = |of: fn(&LocationSnapshot) -> u64| snapshot.locations.iter().map(of).sum();
        Totals {
            requests,
            cached: sum(cached),
            hits: sum(|location| location.http.saved()),
            reached: snapshot.counter(Counter::UpstreamRequests),
            without: sum(without),
            errors,
            sent,
            latency,
            active: u64::try_from(snapshot.gauge(Gauge::ConnectionsActive)).unwrap_or(0),
        }
    }

    fn since(&self, before: &Totals, at: u64) -> Second {
        let latency = match (&self.latency, &before.latency) {
            (Some(now), Some(before)) => Some(now.since(before)),
            (now, _) => now.clone(),
        };
        let quantile = |quantile| latency.as_ref().and_then(|times| times.quantile(quantile)).unwrap_or(0);
        // Workers go on counting while they are read, so a part may be ahead of its whole.
        let grown = |of: fn(&Totals) -> u64| of(self).saturating_sub(of(before));
        Second {
            at,
            requests: grown(|totals| totals.requests),
            cached: grown(|totals| totals.cached),
            hits: grown(|totals| totals.hits),
            reached: grown(|totals| totals.reached),
            without: grown(|totals| totals.without),
            p50: quantile(0.5),
            p99: quantile(0.99),
            errors: grown(|totals| totals.errors),
            sent: grown(|totals| totals.sent),
            active: self.active,
        }
    }
}

fn cached(location: &LocationSnapshot) -> u64 {
    location.http.cache.iter().sum()
}

/// Requests that a location would send upstream without a cache: all that involve it, those that waited for
/// another one too.
fn without(location: &LocationSnapshot) -> u64 {
    let asking =
        [CacheStatus::Miss, CacheStatus::Bypass, CacheStatus::Expired, CacheStatus::Revalidated].into_iter();
    let by_cached: u64 = asking.map(|status| location.http.cached(status)).sum();
    cached(location) + location.origin.requests.saturating_sub(by_cached)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_telemetry::metrics::Finished;
    use std::time::Duration;

    #[test]
    fn an_hour_is_kept_and_a_day_takes_no_more_room() {
        let registry = Registry::new();
        let recorder = Recorder::default();
        for second in 0..86_400 {
            recorder.record(&registry, second, || panic!("nobody watches"));
            recorder.note(second * 1000, true, &"x".repeat(1000));
        }
        let rows = lock(&recorder.rows);
        assert_eq!((rows.len(), rows[0].at, rows[ROWS - 1].at), (ROWS, 86_400 - 3600, 86_399));
        assert!(rows.capacity() < 2 * ROWS);
        let noted = recorder.noted(&registry);
        assert_eq!(noted.len(), NOTES);
        assert!(noted[0]["text"].as_str().is_some_and(|text| text.len() == LONGEST_NOTE));
    }

    #[test]
    fn a_second_says_what_reached_the_upstream_and_what_would_have() {
        let registry = Registry::new();
        let (metrics, recorder) = (registry.worker(), Recorder::default());
        let zones = (registry.server("a"), registry.location("a /x"));
        recorder.record(&registry, 1, || Value::Null);
        let request = |cache| {
            let took = Duration::from_millis(5);
            let of = Finished { status: 200, received: 1, sent: 10, cache, took };
            metrics.finished(zones.0, zones.1, &of);
        };
        // One asks, two wait for its answer, seven are answered from the cache; one goes past it.
        (0..3).for_each(|_| request(Some(CacheStatus::Miss)));
        (0..7).for_each(|_| request(Some(CacheStatus::Hit)));
        request(None);
        metrics.asked(zones.1, 2, Duration::from_millis(10));
        metrics.add(Counter::UpstreamRequests, 2);
        let mut viewer = recorder.watch().expect("there is room");
        recorder.record(&registry, 2, || json!("tables"));
        assert!(viewer.has_changed().expect("it is there"));
        let frame: Value = serde_json::from_str(&viewer.borrow_and_update()).expect("JSON");
        let of = |name: &str| {
            let index = Second::NAMES.iter().position(|known| *known == name).expect("it is a figure");
            frame["second"][index].as_u64().expect("a number")
        };
        assert_eq!((of("at"), of("requests"), of("cached"), of("hits"), of("reached")), (2, 11, 10, 7, 2));
        assert_eq!((of("without"), of("sent"), of("errors")), (10, 110, 0));
        assert!((5_000..5_700).contains(&of("p99")), "{frame}");
        assert_eq!(frame["tables"], "tables");
    }
}
