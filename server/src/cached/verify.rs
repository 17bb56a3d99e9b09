//! `proxy_cache_verify`: hits that are checked behind their clients' backs, and what is done at a leak.
//!
//! ```text
//! hit ─ chosen ─▶ a detached task: the client's own request again ─┬ same, noise ──────────▶ counted
//!                                                                  └ different ─ more requests ─▶ experiment
//! experiment ─┬ noise, stale ─▶ counted
//!             └ leak ─────────▶ counted, reported; the location's cache off, its zone purged
//! ```
//! A hit that is not chosen costs one random number. Nothing that is asked is stored, and no request has a credential of another
//! client. Next: `experiment`, which judges; `bare`, a request of no one; `asking`, how both are asked.

mod experiment;
mod bare;
mod asking;

use crate::failure;
use crate::location_text;
use crate::request::Request;
use crate::url_text;
use crate::verified::Leak;
use bare::Bareness;
use experiment::{CheckFinding, CheckResult, Experiment, Inference, ROUNDS, refuses_only_bare};
use millstream_cache::{Entry, How, Purge, What};
use millstream_conf::model::{CacheVerify, Level, OnLeak, ProxyCache};
use millstream_net::clock;
use millstream_net::timer::within;
use millstream_shadow::Key;
use millstream_telemetry::metrics::Counter;
use millstream_wire::Method;
use millstream_wire::h1::framing::Framing;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// Checks in progress per worker.
const MOST: usize = 4;

/// A check that takes longer has failed.
const LONGEST: Duration = Duration::from_secs(60);

thread_local! {
    static RANDOM: Cell<u64> = Cell::new(RandomState::new().hash_one(0_u8) | 1);
    static IN_PROGRESS: Cell<usize> = const { Cell::new(0) };
}

/// Counts a check while it exists.
struct InProgress;

impl InProgress {
    fn begin() -> Option<InProgress> {
        let count = IN_PROGRESS.get();
        (count < MOST).then(|| {
            IN_PROGRESS.set(count + 1);
            InProgress
        })
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        IN_PROGRESS.set(IN_PROGRESS.get() - 1);
    }
}

/// A request is served from this entry.
#[inline]
pub(super) fn at_hit(request: &Request, cache: &ProxyCache, entry: &Arc<Entry>) {
    if let Some(verify) = &cache.verify
        && random() <= verify.share
    {
        begin(request, verify, entry);
    }
}

/// Marsaglia's xorshift, of which the upper half is good enough to choose by.
fn random() -> u32 {
    let mut state = RANDOM.get();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    RANDOM.set(state);
    (state >> 32) as u32
}

#[cold]
fn begin(request: &Request, verify: &CacheVerify, entry: &Arc<Entry>) {
    let is_checked = request.method == Method::Get
        && request.descent.wanted.is_none()
        && request.received.framing == Framing::None
        && request.cache.slice.is_none()
        && entry.head().part.is_none();
    let verified = &request.generation.shared.zones.verified;
    let Some(location) = verified.of_location(request.route.location).filter(|_| is_checked) else { return };
    if location.leak().is_some() {
        return;
    }
    let Some(in_progress) = InProgress::begin() else { return };
    if !location.admits(verify.interval, clock::now()) {
        return;
    }
    let (copy, entry, on_leak) = (request.for_refresh(), entry.clone(), verify.on_leak);
    tokio::task::spawn_local(async move {
        check(&copy, &entry, on_leak).await;
        drop(in_progress);
    });
}

async fn check(request: &Request, entry: &Arc<Entry>, on_leak: OnLeak) {
    let found = within(LONGEST, Box::pin(find(request, entry))).await;
    let found = found.unwrap_or(Err(CheckResult::Failed)).unwrap_or_else(CheckFinding::of);
    let metrics = &request.worker.metrics;
    metrics.add(counter(found.result), 1);
    if found.result == CheckResult::Leak {
        leaked(request, found.differs_by, on_leak).await;
    }
}

fn counter(result: CheckResult) -> Counter {
    match result {
        CheckResult::Same => Counter::CacheVerifiedSame,
        CheckResult::Noise => Counter::CacheVerifiedNoise,
        CheckResult::Stale => Counter::CacheVerifiedStale,
        CheckResult::Leak => Counter::CacheVerifiedLeak,
        CheckResult::Failed => Counter::CacheVerifiedFailed,
        CheckResult::Unknown => Counter::CacheVerifiedUnknown,
    }
}

/// Asks as often as it takes to know.
async fn find(request: &Request, entry: &Arc<Entry>) -> Result<CheckFinding, CheckResult> {
    let key = Key::random();
    let stored = asking::stored(&key, entry).await?;
    let own = asking::ask(&key, request.for_refresh()).await?;
    let mut experiment = match Experiment::begin(stored, own) {
        Ok(experiment) => experiment,
        Err(found) => return Ok(found),
    };
    let mut bareness = Bareness::Named;
    for _ in 0..ROUNDS {
        let bare = bare::request(request, entry, bareness).ok_or(CheckResult::Unknown)?;
        let (own, other) = tokio::join!(asking::ask(&key, request.for_refresh()), asking::ask(&key, bare));
        let (own, mut other) = (own?, other?);
        // Some refuse whatever does not look like a browser; that is no dependence on who asks.
        if bareness == Bareness::Named && refuses_only_bare(&own, &other) {
            bareness = Bareness::Browser;
            let bare = bare::request(request, entry, bareness).ok_or(CheckResult::Unknown)?;
            other = asking::ask(&key, bare).await?;
        }
        if let Inference::Finding(found) = experiment.judge(own, other) {
            return Ok(found);
        }
    }
    Err(CheckResult::Unknown)
}

/// Reported once, if the cache goes off; at most once a minute, if it is only reported.
async fn leaked(request: &Request, differs_by: &'static str, on_leak: OnLeak) {
    let shared = &request.generation.shared;
    let path = request.received.head.path.of(&request.received.bytes);
    let url = url_text::shown(&request.route.host, path);
    let at = clock::wall().unix_milliseconds();
    let goes_off = on_leak == OnLeak::Off;
    let Some(location) = shared.zones.verified.of_location(request.route.location) else { return };
    let is_news = match goes_off {
        true => location.turn_off(Leak { at, url: url.clone(), differs_by }),
        false => location.reports(clock::now()),
    };
    if !is_news {
        return;
    }
    let Some(cache) = request.location().settings.cache() else { return };
    let store = &shared.zones.stores[cache.zone.0 as usize];
    // In force at once, and before anything is reported.
    let purging = goes_off.then(|| {
        let purging = store.purge(Purge { what: What::All, how: How::Hard });
        if let Some(door) = shared.clusters.door(cache.zone.0 as usize) {
            drop(door.publish(millstream_cluster::What::All, millstream_cluster::How::Hard, false));
        }
        purging
    });
    let consequence = match goes_off {
        true => format!(
            "the location's cache is off until the configuration is reloaded or Millstream is restarted, and zone \"{}\" was purged",
            store.name()
        ),
        false => "the location's cache stays on (on_leak=warn)".to_owned(),
    };
    let location = location_text::located(request, request.route.location);
    let text = format!(
        "proxy_cache_verify found a leak in {location}: the {differs_by} of {url} depends on something that neither the cache key nor \
         Vary contains, so clients may have received each other's responses; {consequence}"
    );
    failure::log(request, Level::Alert, format_args!("{text}"));
    // The dashboard shows what is logged too; this is what it shows in one line.
    shared.recorder.note(at, false, &format!("leak in {location} (proxy_cache_verify): {consequence}"));
    if let Some(purging) = purging {
        request.worker.metrics.add(Counter::PurgesAll, 1);
        if purging.await.is_err() {
            request.worker.metrics.add(Counter::PurgesFailed, 1);
        }
    }
}
