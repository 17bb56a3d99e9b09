//! The promises that a user relies on without reading about them, tried with random histories on the real binary: random APIs
//! behind `serve`, `serve --microcache`, `serve --trust-proxy`, the same over TLS with clients' certificates, and every file of `examples/`,
//! random clients that meet, come back and leave.
//!
//! 1. Nobody is given bytes that were made for another (`Against::Other`, `Mixed`, `Alone`).
//! 2. Nothing is staler than promised (`Stale`). Who has changed a resource reads the change at once, others soon (`Unchanged`).
//! 3. No upstream connection outlives its last reader by more than its bound (`Outlived`).
//! 4. Nothing that was cut looks whole (`Cut`), and what the API answers arrives (`Hung`).
//!
//! `sharing` holds the cache to RFC 9111, under directives that change what it says; this holds defaults to what was made for
//! whom, whatever the API says of it. A failure names its seed; `MILLSTREAM_SEED=7` plays that history alone, and
//! `MILLSTREAM_HISTORIES=5000` as many as that in front of each.

mod resource;
mod history;
mod api;
mod judge;
mod front;
mod play;

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use api::Api;
use front::Front;
use history::History;
use judge::{Against, Promise};
use play::{Played, play};
use resource::{By, Weights};

const AT_ONCE: usize = 64;
const SHRINKING: Duration = Duration::from_secs(20);

const ALL: &[Against] = &[
    Against::Mixed,
    Against::Cut,
    Against::Hung,
    Against::Other,
    Against::Alone,
    Against::Unchanged,
    Against::Stale,
    Against::Outlived,
];
const SECOND: Duration = Duration::from_secs(1);

/// What APIs respond by. Most weight is on what only one guard separates.
const ANYTHING: Weights = &[
    (2, By::Cookie),
    (2, By::Authorization),
    (1, By::ApiKey),
    (1, By::Session),
    (1, By::Tenant),
    (1, By::Origin),
    (1, By::Language),
    (1, By::Host),
    (4, By::Address),
    (1, By::Behind),
    (1, By::User),
];
/// The same behind a proxy that forwards client data, and for clients with certificates.
const TOLD: Weights =
    &[(3, By::Address), (6, By::Behind), (2, By::User), (2, By::Tenant), (1, By::Cookie), (1, By::Host)];
const CERTIFIED: Weights = &[(5, By::Certificate), (1, By::Cookie), (1, By::Authorization), (2, By::Address)];

/// What `serve` promises without options other than those about staleness.
const SERVE: Promise = Promise {
    by: ANYTHING,
    credentials: &[By::Cookie, By::Authorization, By::ApiKey, By::Session, By::User, By::Certificate],
    addresses: true,
    unlisted: false,
    origins: true,
    streams: true,
    silent: None,
    stale: Some(SECOND),
    stale_on_error: Some(Duration::from_secs(2)),
    changed: SECOND,
};
/// The default is minutes.
const ON_ERROR: &[&str] = &["--stale-if-error", "2s"];

/// A file has nginx's semantics except for what an example is made to separate.
const EXAMPLE: Promise = Promise {
    by: ANYTHING,
    credentials: &[By::Cookie, By::Authorization, By::ApiKey, By::Session, By::User],
    addresses: false,
    unlisted: true,
    origins: true,
    streams: false,
    silent: Some(Duration::from_secs(600)),
    stale: None,
    stale_on_error: None,
    changed: Duration::ZERO,
};

#[test]
fn behind_serve_nobody_is_given_what_is_anothers_or_too_old_or_cut() {
    keep(SERVE, ALL, 150, |api| Front::serve(api, ON_ERROR));
}

#[test]
fn behind_a_microcache_nobody_is_given_what_is_anothers_or_too_old_or_cut() {
    let promise = Promise { silent: Some(SECOND), unlisted: true, ..SERVE };
    keep(promise, ALL, 150, |api| Front::serve(api, &[ON_ERROR, &["--microcache", "1s"]].concat()));
}

#[test]
fn behind_a_proxy_nobody_is_given_what_that_says_of_another() {
    let promise = Promise { by: TOLD, unlisted: true, ..SERVE };
    keep(promise, ALL, 100, |api| Front::behind_proxy(api, ON_ERROR));
}

#[test]
fn nobody_is_given_what_was_made_for_the_holder_of_a_certificate() {
    let promise = Promise { by: CERTIFIED, ..SERVE };
    keep(promise, ALL, 60, |api| Front::with_certificates(api, ON_ERROR));
}

#[test]
fn behind_each_example_nobody_is_given_what_is_anothers_or_cut() {
    for file in front::examples() {
        let promise = Promise { addresses: front::varies_by_address(&file), ..EXAMPLE };
        keep(promise, &ALL[..6], 60, |api| Front::example(&file, api));
    }
}

/// Plays histories in front of one API and panics with the shortest one that breaks the promise.
fn keep(promise: Promise, held: &[Against], histories: u64, front: impl FnOnce(u16) -> Front) {
    skip_on_nginx!("it promises none of this");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let histories = number("MILLSTREAM_HISTORIES").unwrap_or(histories);
    let seeds = number("MILLSTREAM_SEED").map_or(0..histories, |seed| seed..seed + 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let api = Api::start().expect("it listens");
        let front = Rc::new(front(api.port()));
        let began = Instant::now();
        let (mut failed, sum) = all(&front, &api, promise, seeds.clone()).await;
        for (_, played) in &mut failed {
            played.found.retain(|(against, _)| held.contains(against));
        }
        failed.retain(|(_, played)| !played.found.is_empty());
        eprintln!(
            "{} histories in {:.0} s: {} answers, {} of them made for an earlier request; {} histories broke a promise",
            seeds.end - seeds.start,
            began.elapsed().as_secs_f32(),
            sum.given,
            sum.shared,
            failed.len()
        );
        failed.sort_by_key(|(seed, _)| *seed);
        for (seed, played) in failed.iter().take(20) {
            eprintln!("seed {seed}: {:?}", played.found.iter().map(|(against, _)| against).collect::<Vec<_>>());
        }
        if let Some((seed, played)) = failed.into_iter().min_by_key(|(seed, _)| History::of(*seed, promise.by).size()) {
            let (history, played) = shortened(&front, &api, &promise, History::of(seed, promise.by), played).await;
            let found: String = played.found.iter().map(|(against, text)| format!("\n{against:?}: {text}")).collect();
            panic!("seed {seed}:{found}\nin {history:#?}\n{}", front.log());
        }
        let panics = front.log().lines().filter(|line| line.contains("panicked")).count();
        assert_eq!(panics, 0, "{}", front.log());
    });
}

/// The histories that broke the promise, and the sums of all.
async fn all(
    front: &Rc<Front>,
    api: &Api,
    promise: Promise,
    seeds: std::ops::Range<u64>,
) -> (Vec<(u64, Played)>, Played) {
    let places = Rc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for seed in seeds {
        let (places, front, api) = (places.clone(), front.clone(), api.clone());
        playing.spawn_local(async move {
            let _place = places.acquire().await.expect("it is never closed");
            (seed, play(front.way, &api, &promise, seed as usize, &History::of(seed, promise.by)).await)
        });
    }
    let (mut failed, mut sum) = (Vec::new(), Played::default());
    while let Some(played) = playing.join_next().await {
        let (seed, played) = played.expect("no history panics");
        sum.given += played.given;
        sum.shared += played.shared;
        if !played.found.is_empty() {
            failed.push((seed, played));
        }
    }
    (failed, sum)
}

/// Removes from a history whatever the same finding does not need.
async fn shortened(
    front: &Front,
    api: &Api,
    promise: &Promise,
    mut history: History,
    mut played: Played,
) -> (History, Played) {
    let (against, _) = played.found[0];
    let (end, mut number) = (Instant::now() + SHRINKING, 1 << 32);
    'shorter: loop {
        for shorter in history.shorter() {
            if Instant::now() >= end {
                return (history, played);
            }
            number += 1;
            let again = play(front.way, api, promise, number, &shorter).await;
            if again.found.iter().any(|(found, _)| *found == against) {
                (history, played) = (shorter, again);
                continue 'shorter;
            }
        }
        return (history, played);
    }
}
