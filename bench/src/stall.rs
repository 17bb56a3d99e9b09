//! `cargo xtask bench stall`: what a server that stalls for a second looks like to an open and to a closed loop.
//!
//! With requests due at a constant rate over a time D, of which the server stalls for S, those due x into the stall wait
//! S - x. So the share of requests that take longer than L is (S - L) / D, and the percentile at a share p is
//! S - (1 - p) D where that is above zero. What is waited for no longer than T counts with that time, so no percentile is above
//! T, and those that are there are known to be at least so much. A closed loop sends nothing while it waits: one request for each connection is
//! late, whatever was due.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::embedded::{GOOD, start};
use crate::epoll::Respond;
use crate::{Options, Programs, ours};

/// Requests due a second, and connections.
const RATE: u32 = 200;
const CONNECTIONS: u32 = 10;
/// How long is measured, in seconds; the stall, and when it begins after the first request.
const MEASURED: f64 = 5.0;
const STALL: f64 = 1.0;
const BEFORE: Duration = Duration::from_secs(2);
/// How long an answer is waited for: less than the stall, whose requests are given up and count with that time.
const TIMEOUT: f64 = 0.3;
/// Percentiles that are told.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Answers at once, but for the stall.
struct Stalling {
    began: Option<Instant>,
}

impl Respond for Stalling {
    fn respond(&mut self, _: &[u8], out: &mut Vec<u8>) -> Duration {
        out.extend_from_slice(GOOD);
        let since = self.began.get_or_insert_with(Instant::now).elapsed();
        let end = BEFORE + Duration::from_secs_f64(STALL);
        if since < BEFORE { Duration::ZERO } else { end.saturating_sub(since) }
    }
}

/// Milliseconds.
fn expected(percentile: f64) -> f64 {
    ((STALL - (1.0 - percentile / 100.0) * MEASURED) * 1000.0).clamp(0.0, TIMEOUT * 1000.0)
}

/// Both loops; the table, with what the report said of itself.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let millstream = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let open = format!("--rate={RATE}");
    let mut text = format!(
        "### A server that stalls for {STALL} s, seen by an open and a closed loop\n\n`cargo xtask bench stall --rounds {}`: \
         {CONNECTIONS} connections of the closed loop, {MEASURED} s, a timeout of {TIMEOUT} s, latency in milliseconds.\n\n| | p50 | p90 | p99 | p99.9 | it says |\n\
         | --- | ---: | ---: | ---: | ---: | --- |\n| computed, open loop |",
        options.rounds
    );
    // Writing to a String cannot fail.
    for percentile in PERCENTILES {
        let _ = write!(text, " {:.0} |", expected(percentile));
    }
    text.push_str(" |\n");
    for _ in 0..options.rounds {
        for (name, flag) in [("open", Some(open.as_str())), ("closed", None)] {
            let port = start(|| Stalling { began: None })?;
            let (latency, said) = measure(millstream, port, flag)?;
            let _ = write!(text, "| measured, {name} loop |");
            for value in latency {
                let _ = write!(text, " {value:.1} |");
            }
            let _ = writeln!(text, " {said} |");
        }
    }
    Ok(text)
}

/// Latency at the percentiles in milliseconds, and the line about the loop.
fn measure(millstream: &Path, port: u16, flag: Option<&str>) -> Result<(Vec<f64>, String), String> {
    let (measured, timeout) = (format!("-d{MEASURED}s"), format!("--timeout={TIMEOUT}s"));
    let connections = format!("-c{CONNECTIONS}");
    let mut flags = vec![measured.as_str(), timeout.as_str(), "--warm-up=0"];
    // An open loop has as many connections as it takes.
    flags.extend(flag.or(Some(connections.as_str())));
    let told = ours::bench(millstream, &flags, port)?;
    let said = told
        .text
        .lines()
        .find(|line| line.contains("latency counts from"))
        .unwrap_or("nothing")
        .trim()
        .to_owned();
    let latency: Option<Vec<f64>> = PERCENTILES.iter().map(|percentile| told.latency(*percentile)).collect();
    Ok((latency.ok_or("no percentiles in the report")?, said))
}
