//! The flags of `ladder` and `demo`.
//!
//! Plain data out of words; what they mean together is `crate::ladder`'s to say.

use super::value::{field, measurement, time, within};
use clap::Args;
use millstream_load::step;
use std::path::PathBuf;
use std::time::Duration;

/// The shortest service time of a made-up API.
const SHORTEST: Duration = Duration::from_millis(1);
/// The shortest demo.
const DEMO: Duration = Duration::from_secs(45);
/// The longest.
const LONGEST: Duration = Duration::from_secs(3600);

/// `ladder URL`.
#[derive(Debug, Clone, Args)]
pub struct Ladder {
    /// A page of your API: http://host:port/path
    #[arg(required_unless_present = "print")]
    pub url: Option<String>,
    /// A field of the request, such as 'Authorization: Bearer …'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<(String, String)>,
    /// The method of the request
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// The body of the request
    #[arg(short = 'b', long, value_name = "TEXT", default_value = "")]
    pub body: String,
    /// Connections held open at once (without it as many as fit how slow the API is, 50 at the most)
    #[arg(short = 'c', long, value_name = "N", value_parser = within(1..=10_000_u32))]
    pub connections: Option<u32>,
    /// How often each step is measured; the result is the median (without it 6 times, or 4 where more would take longer than two minutes; fewer than 4 tell nothing)
    #[arg(long, value_name = "N", value_parser = within(1..=100_u32))]
    pub rounds: Option<u32>,
    /// How long each time, such as 2s, and 450ms or more (without it so long that the whole stays within two minutes)
    #[arg(short = 'd', long, value_name = "TIME", value_parser = measurement)]
    pub duration: Option<Duration>,
    /// The order in which the steps are measured, for a run that is to be repeated (without it another one each time; --json tells it)
    #[arg(long, value_name = "N", value_parser = within(0..=u64::MAX))]
    pub seed: Option<u64>,
    /// Your own nginx.conf: the steps that it has are marked, and what is recommended is the best beyond them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which steps, by name or number: microcache,lock or 1-5
    #[arg(long, value_name = "STEPS")]
    pub steps: Option<String>,
    /// Who else does the same in turns: nginx, haproxy, varnish
    #[arg(long, value_name = "NAMES")]
    pub against: Option<String>,
    /// For how long an answer is kept whose API says nothing about caching, such as 1d (1s otherwise)
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub valid: Option<String>,
    /// Write the figures as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the picture to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the configuration of a step and end (with --against, theirs)
    #[arg(long, value_name = "STEP")]
    pub print: Option<String>,
    /// Load an address of the public internet: only what is yours
    #[arg(long)]
    pub yes: bool,
}

/// `demo`.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Where the picture is written (default: millstream-demo.html here, or if that cannot be written, with the temporary files)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the figures as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How long the simulated API works on each request
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub service_time: Duration,
    /// How many requests it works on at once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1..=256_u32))]
    pub workers: u32,
    /// How long the whole takes, about; 45s is the least, for four rounds of all steps
    #[arg(short = 'd', long, value_name = "TIME", default_value = "45s", value_parser = demo_duration)]
    pub duration: Duration,
}

/// The length of a demo: what is shorter would take as long, as each step is measured four times for as long as tells anything.
fn demo_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| match time {
        time if time < DEMO => Err("a demo takes 45s at the least: four rounds of eleven steps".to_owned()),
        time => Ok(time),
    })
}

/// A length of measuring.
fn duration(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| match time {
        time if !(SHORTEST..=LONGEST).contains(&time) => Err("it has to be between 1ms and 60m".to_owned()),
        time => Ok(time),
    })
}

/// A lifetime that every party can be told.
fn lifetime(text: &str) -> Result<String, String> {
    match step::seconds(text) {
        // Not everybody takes a blank in it, or thousandths.
        Some(seconds) if seconds > 0 && !text.contains(' ') && !text.contains("ms") => Ok(text.to_owned()),
        _ => Err("write seconds, or a time such as 30s, 5m or 1h30m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lifetimes_have_bounds() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(demo_duration("45s"), Ok(DEMO));
        assert!(demo_duration("15s").is_err_and(|why| why.starts_with("a demo takes 45s at the least")));
        assert!(duration("0.5ms").is_err() && duration("2h").is_err());
        assert!(lifetime("1d").is_ok() && lifetime("1h30m").is_ok() && lifetime("0").is_err());
        assert!(lifetime("1x").is_err() && lifetime("1h 30m").is_err() && lifetime("1500ms").is_err());
    }
}
