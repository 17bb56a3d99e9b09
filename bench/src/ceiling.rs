//! `cargo xtask bench find-max`: how near `millstream bench --find-max` comes to a ceiling that is known, and whether the rate that it
//! reports holds.
//!
//! Two servers are token buckets: they let so many requests a second through. What comes beyond waits its turn in one, so that the load
//! falls behind, and is refused with 503 in the other, so that there are errors. The third has no ceiling but one that is asked for: its
//! answers take longer the more requests come, and a 99th percentile of [`LIMIT`] is reached at the rate that is called its ceiling.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::embedded::{GOOD, REFUSED, start};
use crate::epoll::Respond;
use crate::{Options, Programs, ours};

/// Requests a second.
const CEILINGS: [u32; 2] = [800, 5_000];
/// Seconds' worth of tokens in a full bucket. What a machine that stutters that long sends late arrives at
/// once, and is no sign of overload. With 4 ms, shared virtual machines reached a tenth of the ceiling.
const DEPTH: f64 = 0.025;
const TRIAL: &str = "-d2s";
/// Connections: more than the slowing server has under way at its higher ceiling, which is 250 (Little's law).
const CONNECTIONS: &str = "-c500";
/// The allowed relative error.
const NEAR: f64 = 0.05;
/// Further trials of each rate that was found, and how many of them have to hold.
const FURTHER: u32 = 10;
const HOLD: u32 = 8;
/// What the slowing server takes for a response at its ceiling. A shared machine adds up to 3 ms to one
/// response in a hundred, which moves the ceiling by 2 % of the rate; with a limit of 20 ms, by 5 %.
const LIMIT: Duration = Duration::from_millis(50);
/// Over how long it looks at the rate of requests, in seconds.
const MEMORY: f64 = 0.2;
/// Response time grows by this power of the rate: at half the ceiling it is an eighth of [`LIMIT`].
const POWER: i32 = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Beyond {
    Waits,
    Refused,
    Slows,
}

impl Beyond {
    const ALL: [Beyond; 3] = [Beyond::Waits, Beyond::Refused, Beyond::Slows];

    fn about(self) -> &'static str {
        match self {
            Beyond::Waits => "waits",
            Beyond::Refused => "gets a 503",
            Beyond::Slows => "takes long, as more and more do below it",
        }
    }

    /// The goal of a search, and the flags by which a single trial fails.
    fn goal(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Beyond::Waits | Beyond::Refused => (&[], &["--fail", "errors>0.1%"]),
            Beyond::Slows => (&["--p99", "50ms"], &["--fail", "errors>0.1%", "--fail", "p99>50ms"]),
        }
    }

    fn start(self, ceiling: u32) -> Result<u16, String> {
        match self {
            Beyond::Waits | Beyond::Refused => start(move || Bucket::full(ceiling, self == Beyond::Refused)),
            Beyond::Slows => start(move || Slowing::new(ceiling)),
        }
    }
}

struct Bucket {
    rate: f64,
    refuses: bool,
    /// Negative: so many requests wait.
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: u32, refuses: bool) -> Bucket {
        Bucket { rate: f64::from(rate), refuses, tokens: DEPTH * f64::from(rate), filled: Instant::now() }
    }

    /// How long the request waits; `None`: it is refused.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        let since = now.duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + since * self.rate).min(DEPTH * self.rate);
        if self.tokens < 1.0 && self.refuses {
            return None;
        }
        self.tokens -= 1.0;
        Some(Duration::from_secs_f64((-self.tokens / self.rate).max(0.0)))
    }
}

impl Respond for Bucket {
    fn respond(&mut self, _: &[u8], out: &mut Vec<u8>) -> Duration {
        match self.take(Instant::now()) {
            Some(wait) => {
                out.extend_from_slice(GOOD);
                wait
            }
            None => {
                out.extend_from_slice(REFUSED);
                Duration::ZERO
            }
        }
    }
}

/// Responds the slower, the more requests came recently.
struct Slowing {
    ceiling: f64,
    recent: f64,
    at: Instant,
}

impl Slowing {
    fn new(ceiling: u32) -> Slowing {
        Slowing { ceiling: f64::from(ceiling), recent: 0.0, at: Instant::now() }
    }

    fn take(&mut self, now: Instant) -> Duration {
        let since = now.duration_since(self.at).as_secs_f64();
        self.at = now;
        self.recent = self.recent * (-since / MEMORY).exp() + 1.0;
        LIMIT.mul_f64((self.recent / MEMORY / self.ceiling).powi(POWER))
    }
}

impl Respond for Slowing {
    fn respond(&mut self, _: &[u8], out: &mut Vec<u8>) -> Duration {
        out.extend_from_slice(GOOD);
        self.take(Instant::now())
    }
}

/// Every ceiling in every round; an error if one was missed or a rate did not hold.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let millstream = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let mut text = format!(
        "### The highest rate that holds, on a server with a known one\n\n`cargo xtask bench find-max --rounds {}`: \
         `millstream bench --find-max {CONNECTIONS} {TRIAL}`, and {FURTHER} further trials of each rate that was found.\n\n\
         | ceiling, requests/s | beyond it a request | found | off by at most | further trials that held |\n\
         | ---: | --- | --- | ---: | --- |\n",
        options.rounds
    );
    let mut is_right = true;
    for ceiling in CEILINGS {
        for (beyond, found) in Beyond::ALL.iter().zip(of_ceiling(millstream, options.rounds, ceiling)?) {
            let off = |(found, _): &(f64, u32)| (found / f64::from(ceiling) - 1.0).abs();
            let worst = found.iter().map(off).fold(0.0, f64::max);
            is_right &= worst <= NEAR && found.iter().all(|(_, held)| *held >= HOLD);
            let told = |one: fn(&(f64, u32)) -> String| found.iter().map(one).collect::<Vec<_>>().join(", ");
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {ceiling} | {} | {} | {:.1} % | {} |",
                beyond.about(),
                told(|(rate, _)| format!("{rate:.0}")),
                worst * 100.0,
                told(|(_, held)| held.to_string())
            );
        }
    }
    match is_right {
        true => Ok(text),
        false => Err(format!("{text}\nnot within {} %, or held less than {HOLD} times", NEAR * 100.0)),
    }
}

/// The rates found on each server, and how often they held. The servers run at the same time: they mostly
/// wait.
fn of_ceiling(millstream: &Path, rounds: usize, ceiling: u32) -> Result<Vec<Vec<(f64, u32)>>, String> {
    let one = |beyond: Beyond| {
        let round = |_| {
            let port = beyond.start(ceiling)?;
            let rate = search(millstream, beyond, port)?;
            let held = held(millstream, beyond, rate, port)?;
            eprintln!("{ceiling} {beyond:?}: {rate:.1}, held {held} times");
            Ok((rate, held))
        };
        (0..rounds).map(round).collect()
    };
    std::thread::scope(|scope| {
        let servers: Vec<_> = Beyond::ALL.iter().map(|beyond| scope.spawn(move || one(*beyond))).collect();
        servers.into_iter().map(|server| server.join().map_err(|_| "a search panicked".to_owned())?).collect()
    })
}

fn search(millstream: &Path, beyond: Beyond, port: u16) -> Result<f64, String> {
    let flags = [&["--find-max", CONNECTIONS, TRIAL], beyond.goal().0].concat();
    let told = ours::bench(millstream, &flags, port)?;
    told.report["mode"]["open"]["rate"]
        .as_f64()
        .ok_or_else(|| format!("no rate in the report\n{}", told.text))
}

fn held(millstream: &Path, beyond: Beyond, rate: f64, port: u16) -> Result<u32, String> {
    let rate = format!("{rate:.3}");
    let flags = [&["--rate", &rate, CONNECTIONS, TRIAL], beyond.goal().1].concat();
    let mut held = 0;
    for _ in 0..FURTHER {
        let report = ours::bench(millstream, &flags, port)?.report;
        let bounds = report["thresholds"].as_array().ok_or("no bounds in the report")?;
        // A bound is unknown where what is under way at the end could be what crosses it, which a search does not hold against a rate either.
        let is_kept = bounds.iter().all(|bound| bound["verdict"] != "failed");
        held += u32::from(is_kept && report["not_reached"].is_null());
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_its_rate_through_and_no_more() {
        for (refuses, passed) in [(false, 2_000), (true, 1_025)] {
            let mut bucket = Bucket::full(1_000, refuses);
            let began = bucket.filled;
            // Twice the rate for a second.
            let waits: Vec<_> =
                (1..=2_000).map(|number| bucket.take(began + Duration::from_micros(500) * number)).collect();
            let through = waits.iter().flatten().count();
            assert!(through.abs_diff(passed) <= 2, "{refuses}: {through}");
            // Half of what came is left over at the end: it waits a second, less what the bucket held.
            let last = waits.last().copied().flatten().unwrap_or_default().as_millis();
            assert!(refuses || last.abs_diff(975) <= 2, "{last}");
        }
    }

    #[test]
    fn a_slowing_server_takes_its_limit_at_its_ceiling_and_an_eighth_at_half_of_it() {
        for (gap, expected) in [(1_000, LIMIT), (2_000, LIMIT / 8)] {
            let mut server = Slowing::new(1_000);
            let began = server.at;
            let mut last = Duration::ZERO;
            for number in 1..=5_000 {
                last = server.take(began + Duration::from_micros(gap) * number);
            }
            assert!((last.as_secs_f64() / expected.as_secs_f64() - 1.0).abs() < 0.02, "{last:?}");
        }
    }
}
