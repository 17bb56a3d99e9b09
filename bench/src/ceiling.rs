//! `cargo xtask bench find-max`: how near `millstream bench --find-max` comes to a ceiling that is known.
//!
//! The server is a token bucket: it lets so many requests a second through. What comes beyond waits its turn in one case, so
//! that the load falls behind, and is refused with 503 in the other, so that there are errors.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::embedded::{GOOD, REFUSED, start};
use crate::epoll::Respond;
use crate::{Options, Programs, ours};

/// Ceilings, requests a second.
const CEILINGS: [u32; 2] = [800, 5_000];
/// Seconds' worth of tokens that a full bucket holds: what a machine that stutters for so long makes late comes at once, and
/// is no sign of a load that is too high. With 4 ms, shared virtual machines were found to hold a tenth of the ceiling.
const DEPTH: f64 = 0.025;
/// The length of a trial, and connections.
const TRIAL: &str = "-d2s";
const CONNECTIONS: &str = "-c50";
/// How near is near enough.
const NEAR: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Beyond {
    Waits,
    Refused,
}

/// Tokens come at a rate and are taken one a request.
struct Bucket {
    rate: f64,
    beyond: Beyond,
    /// Below zero: so many wait.
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: u32, beyond: Beyond) -> Bucket {
        Bucket { rate: f64::from(rate), beyond, tokens: DEPTH * f64::from(rate), filled: Instant::now() }
    }

    /// How long the request waits; none: it is refused.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        let since = now.duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + since * self.rate).min(DEPTH * self.rate);
        if self.tokens < 1.0 && self.beyond == Beyond::Refused {
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

/// Every ceiling in every round; the table, or an error where one was missed.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let millstream = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let mut text = format!(
        "### The highest rate that holds, on a server with a known one\n\n`cargo xtask bench find-max --rounds {}`: \
         `millstream bench --find-max {CONNECTIONS} {TRIAL}`.\n\n\
         | ceiling, requests/s | beyond it a request | found | off by at most |\n| ---: | --- | --- | ---: |\n",
        options.rounds
    );
    let mut is_near = true;
    for ceiling in CEILINGS {
        for beyond in [Beyond::Waits, Beyond::Refused] {
            let mut found = Vec::new();
            for _ in 0..options.rounds {
                let port = start(move || Bucket::full(ceiling, beyond))?;
                found.push(search(millstream, port)?);
                eprintln!("{ceiling} {beyond:?}: {:?}", found.last());
            }
            let off = |found: &f64| (found / f64::from(ceiling) - 1.0).abs();
            let worst = found.iter().map(off).fold(0.0, f64::max);
            is_near &= worst <= NEAR;
            let beyond = if beyond == Beyond::Waits { "waits" } else { "gets a 503" };
            let found: Vec<String> = found.iter().map(|rate| format!("{rate:.0}")).collect();
            // Writing to a String cannot fail.
            let _ =
                writeln!(text, "| {ceiling} | {beyond} | {} | {:.1} % |", found.join(", "), worst * 100.0);
        }
    }
    if is_near { Ok(text) } else { Err(format!("{text}\nnot within {} %", NEAR * 100.0)) }
}

/// The rate that was found.
fn search(millstream: &Path, port: u16) -> Result<f64, String> {
    let told = ours::bench(millstream, &["--find-max", CONNECTIONS, TRIAL], port)?;
    told.report["mode"]["open"]["rate"]
        .as_f64()
        .ok_or_else(|| format!("no rate in the report\n{}", told.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_its_rate_through_and_no_more() {
        for (beyond, passed) in [(Beyond::Waits, 2_000), (Beyond::Refused, 1_025)] {
            let mut bucket = Bucket::full(1_000, beyond);
            let began = bucket.filled;
            // Twice the rate for a second.
            let waits: Vec<_> =
                (1..=2_000).map(|number| bucket.take(began + Duration::from_micros(500) * number)).collect();
            let through = waits.iter().flatten().count();
            assert!(through.abs_diff(passed) <= 2, "{beyond:?}: {through}");
            // Half of what came is left over at the end: it waits a second, less what the bucket held.
            let last = waits.last().copied().flatten().unwrap_or_default().as_millis();
            assert!(beyond == Beyond::Refused || last.abs_diff(975) <= 2, "{last}");
        }
    }
}
