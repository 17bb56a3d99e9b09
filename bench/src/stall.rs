//! `cargo xtask bench stall`: what a server that stalls for a second looks like to an open and to a closed loop.
//!
//! With requests due at a constant rate over a time D, of which the server stalls for S, those due x into the stall wait
//! S - x. So the share of requests that take longer than L is (S - L) / D, and the percentile at a share p is
//! S - (1 - p) D where that is above zero. A request that is given up after a timeout T has waited T: with T below S the
//! percentile is the lesser of that and T. A closed loop sends nothing while it waits: one request for each connection is late, whatever
//! was due. What an open loop says must be near what is computed; else this fails.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::embedded::{GOOD, start};
use crate::epoll::Respond;
use crate::{Options, Programs, ours};

/// Measured seconds; the stall, and its start after the first request.
const MEASURED: f64 = 5.0;
const STALL: f64 = 1.0;
const BEFORE: Duration = Duration::from_secs(2);
const TIMEOUT: f64 = 0.3;
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Tolerance in milliseconds: a request is due each 5 ms, so percentiles are known to a few of these, and a
/// busy machine is later.
const BESIDE: f64 = 100.0;

/// A loop: its name, its flags, and its timeout in seconds; `None`: nothing is computed.
const LOOPS: [(&str, &[&str], Option<f64>); 3] = [
    ("open loop", &["--rate=200"], Some(STALL)),
    ("open loop, --timeout 300ms", &["--rate=200", "--timeout=300ms"], Some(TIMEOUT)),
    ("closed loop", &["-c10"], None),
];

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

/// The computed percentile in milliseconds if a request waits for at most so many seconds.
fn expected(percentile: f64, most: f64) -> f64 {
    (STALL - (1.0 - percentile / 100.0) * MEASURED).clamp(0.0, most) * 1000.0
}

/// The table, with the report's own remark on each loop; an error if an open loop differs from what is
/// computed.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let millstream = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let mut text = format!(
        "### A server that stalls for {STALL} s, seen by an open and a closed loop\n\n`cargo xtask bench stall --rounds {}`: \
         {MEASURED} s, latency in milliseconds.\n\n| | p50 | p90 | p99 | p99.9 | it says |\n\
         | --- | ---: | ---: | ---: | ---: | --- |\n",
        options.rounds
    );
    let row = |what: &str, values: &[f64], said: &str| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
        format!("| {what} | {} | {said} |\n", values.join(" | "))
    };
    let mut wrong = Vec::new();
    for (name, flags, most) in LOOPS {
        let computed = most.map(|most| PERCENTILES.map(|percentile| expected(percentile, most)));
        text.push_str(
            &computed.map_or_else(String::new, |values| row(&format!("computed, {name}"), &values, "")),
        );
        for _ in 0..options.rounds {
            let port = start(|| Stalling { began: None })?;
            let (latency, said) = measure(millstream, port, flags)?;
            text.push_str(&row(&format!("measured, {name}"), &latency, &said));
            wrong.extend(computed.and_then(|computed| beside(name, &computed, &latency)));
        }
    }
    if wrong.is_empty() { Ok(text) } else { Err(format!("{text}\n{}", wrong.join("\n"))) }
}

/// Describes percentiles that differ from the computed ones.
fn beside(name: &str, computed: &[f64], measured: &[f64]) -> Option<String> {
    let is_near =
        computed.iter().zip(measured).all(|(computed, measured)| (computed - measured).abs() <= BESIDE);
    (!is_near).then(|| format!("{name}: {computed:.0?} ms were computed, and it says {measured:.0?}"))
}

/// Percentiles in milliseconds, and the line about the loop.
fn measure(millstream: &Path, port: u16, loop_flags: &[&str]) -> Result<(Vec<f64>, String), String> {
    let measured = format!("-d{MEASURED}s");
    let flags = [&[measured.as_str(), "--warm-up=0"], loop_flags].concat();
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

#[cfg(test)]
mod tests {
    use super::{beside, expected};

    #[test]
    fn a_percentile_without_the_stall_in_it_is_wrong() {
        let computed = [expected(50.0, 1.0), expected(99.0, 1.0)];
        assert_eq!(computed.map(f64::round), [0.0, 950.0]);
        assert_eq!(expected(99.0, 0.3), 300.0);
        assert_eq!(beside("open", &computed, &[0.2, 903.0]), None);
        assert!(beside("open", &computed, &[0.2, 4.0]).is_some_and(|wrong| wrong.starts_with("open: ")));
    }
}
