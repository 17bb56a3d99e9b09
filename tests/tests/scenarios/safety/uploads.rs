//! The property of request bodies, tried on the real binary with random sites, bodies and framings:
//!
//! **An application that answers 2xx has seen every byte of the body, or the client got an error.**
//!
//! A site is many random routes: servers that answer, fail, close or refuse, over HTTP, FastCGI, uwsgi and SCGI, buffered and streamed, which
//! lead on to one another by further servers, `error_page` and `X-Accel-Redirect`. Clients upload over HTTP/1.1 and HTTP/2 in random pieces, and
//! some leave. A body that is cut and looks whole is a failure whatever the client is told. Where every step keeps the body, the
//! upload must succeed, so that a server that refuses everything does not pass.
//!
//! A failure names its seed; `MILLSTREAM_SEED=7` plays that upload alone, `MILLSTREAM_HISTORIES=5000` as many as that.

mod applications;
mod site;
mod upload;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use millstream_tests::server::Server;
use rustix::process::Signal;

use super::random::Random;
use applications::{Applications, Seen};
use site::Site;
use upload::{Outcome, Upload};

const PER_SITE: u64 = 100;
const AT_ONCE: usize = 6;

#[test]
fn an_application_that_answers_2xx_has_seen_every_byte_or_the_client_got_an_error() {
    skip_on_nginx!("it sends an empty body in place of one that was too large");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let histories = number("MILLSTREAM_HISTORIES").unwrap_or(200);
    let seeds = number("MILLSTREAM_SEED").map_or(0..histories, |seed| seed..seed + 1);
    let (began, mut sum) = (Instant::now(), Sum::default());
    let mut from = seeds.start;
    while from < seeds.end {
        let next = ((from / PER_SITE + 1) * PER_SITE).min(seeds.end);
        play(from..next, &mut sum);
        from = next;
    }
    eprintln!(
        "{} uploads in {:.0} s: {} succeeded, {} of them by another server than the first",
        seeds.end - seeds.start,
        began.elapsed().as_secs_f32(),
        sum.succeeded,
        sum.moved,
    );
}

#[derive(Default)]
struct Sum {
    succeeded: u64,
    moved: u64,
}

fn play(seeds: Range<u64>, sum: &mut Sum) {
    let site = Site::of(seeds.start / PER_SITE);
    let applications = Applications::start();
    let mut server = Server::start(&site.configuration(&applications), &[]);
    let (next, played) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let mut random = Random::new(seed);
                    let route = random.below(site.routes.len());
                    let upload = Upload::of(seed, &mut random);
                    let outcome = upload.send(server.port(), &site.path(route), &mut random);
                    played.lock().unwrap_or_else(PoisonError::into_inner).push((route, upload, outcome));
                }
            });
        }
    });
    assert!(server.stop(Signal::QUIT).is_some_and(|status| status.success()), "{}", server.log());
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    let mut played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    played.sort_by_key(|(_, upload, _)| upload.seed);
    for (route, upload, outcome) in played {
        let seen = applications.seen(upload.seed);
        if let Err(what) = judge(&site, route, &upload, &outcome, &seen) {
            panic!(
                "seed {}: {what}\n{upload:?} came to {outcome:?}; the applications: {seen:#?}\n{}",
                upload.seed,
                site.text(route, &applications)
            );
        }
        sum.succeeded += u64::from(outcome.is_success());
        sum.moved += u64::from(outcome.is_success() && seen.len() > 1);
    }
}

fn judge(
    site: &Site,
    route: usize,
    upload: &Upload,
    outcome: &Outcome,
    seen: &[Seen],
) -> Result<(), &'static str> {
    let (route, whole) = (&site.routes[route], upload.digest());
    let is_too_large = route.limit.is_some_and(|limit| upload.size > limit);
    for seen in seen.iter().filter(|seen| seen.digest != whole) {
        if !seen.digest.is_empty() {
            return Err("an application was given a part of the body as if it were the whole");
        }
        // What was too large, or passed on already, is not there for a page.
        let is_for_page = seen.method == "GET" && route.has_page();
        if outcome.is_success() && !(is_for_page && (is_too_large || route.accelerates_streamed())) {
            return Err("an application was given no body, and the client no error");
        }
        if !is_for_page && !is_too_large {
            return Err("an application was given no body");
        }
    }
    let Outcome::Answered(status @ 200..=299, text) = outcome else {
        return match route.must_answer() {
            _ if is_too_large || upload.leaves.is_some() => Ok(()),
            Some(is_told) if is_told => Err("it must succeed"),
            Some(_)
                if !route.is_cached() && !seen.iter().any(|seen| seen.is_answer && seen.digest == whole) =>
            {
                Err("an application must have answered")
            }
            _ => Ok(()),
        };
    };
    let is_page = route.has_page() && text.as_str() == format!("GET {}", applications::digest(b""));
    let is_right =
        text.ends_with(&whole.to_string()) || is_page && (is_too_large || route.accelerates_streamed());
    if *status == 200 && is_right { Ok(()) } else { Err("the client was answered for another body") }
}
