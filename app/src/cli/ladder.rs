//! The flags of `ladder` and `demo`.
//!
//! Plain data out of words; what they mean together is `crate::ladder`'s to say.

use super::value::{field, measurement, time, within};
use clap::Args;
use millstream_load::step;
use std::path::PathBuf;
use std::time::Duration;

/// Shortest service time of the simulated API.
const SHORTEST: Duration = Duration::from_millis(1);
const DEMO: Duration = Duration::from_secs(45);
const LONGEST: Duration = Duration::from_secs(3600);

/// `ladder URL`.
#[derive(Debug, Clone, Args)]
pub struct Ladder {
    /// A page of your API: http://host:port/path
    #[arg(required_unless_present = "print")]
    pub url: Option<String>,
    /// Add a request field, such as 'Authorization: Bearer …'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<(String, String)>,
    /// The method of the request
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// The body of the request
    #[arg(short = 'b', long, value_name = "TEXT", default_value = "")]
    pub body: String,
    /// Connections (default: 50, or fewer for a slow API)
    #[arg(short = 'c', long, value_name = "N", value_parser = within(1..=10_000_u32))]
    pub connections: Option<u32>,
    /// Rounds; the result is their median (default: 6, or 5 or 4 if 6 take longer than two minutes; fewer
    /// than 4 are inconclusive)
    #[arg(long, value_name = "N", value_parser = within(1..=100_u32))]
    pub rounds: Option<u32>,
    /// Duration of each measurement, at least 450ms (default: two minutes for everything)
    #[arg(short = 'd', long, value_name = "TIME", value_parser = measurement)]
    pub duration: Option<Duration>,
    /// Seed of the random order of the steps, to repeat a run (--json contains it)
    #[arg(long, value_name = "N", value_parser = within(0..=u64::MAX))]
    pub seed: Option<u64>,
    /// Mark the steps that this nginx.conf already has, and recommend the best step beyond them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Measure only these steps, by name or number: microcache,lock or 1-5
    #[arg(long, value_name = "STEPS")]
    pub steps: Option<String>,
    /// Also measure these servers, alternately: nginx, haproxy, varnish
    #[arg(long, value_name = "NAMES")]
    pub against: Option<String>,
    /// Cache responses without caching headers for this long, such as 1d (default: 1s)
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub valid: Option<String>,
    /// Write the figures as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write an HTML page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the configuration of a step and exit (with --against, of that server)
    #[arg(long, value_name = "STEP")]
    pub print: Option<String>,
    /// Report all figures and remarks
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Confirm that you may put load on this public address
    #[arg(long)]
    pub yes: bool,
}

/// `demo`.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Write the HTML page to this file (default: millstream-demo.html in the working directory, or else in
    /// the temporary directory)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the figures as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Report all figures and remarks
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Time that the simulated API takes for each request
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub service_time: Duration,
    /// Requests that the simulated API serves at the same time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1..=256_u32))]
    pub workers: u32,
    /// Approximate duration of the demo; at least 45s, for four rounds of all steps
    #[arg(short = 'd', long, value_name = "TIME", default_value = "45s", value_parser = demo_duration)]
    pub duration: Duration,
}

/// A shorter demo would take as long, because each step is measured four times for a minimum time.
fn demo_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| match time {
        time if time < DEMO => Err("a demo takes at least 45s, for four rounds of eleven steps".to_owned()),
        time => Ok(time),
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| match time {
        time if !(SHORTEST..=LONGEST).contains(&time) => Err("write a time from 1ms to 60m".to_owned()),
        time => Ok(time),
    })
}

/// A caching time that every server understands.
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
        assert!(demo_duration("15s").is_err_and(|why| why.starts_with("a demo takes at least 45s")));
        assert!(duration("0.5ms").is_err() && duration("2h").is_err());
        assert!(lifetime("1d").is_ok() && lifetime("1h30m").is_ok() && lifetime("0").is_err());
        assert!(lifetime("1x").is_err() && lifetime("1h 30m").is_err() && lifetime("1500ms").is_err());
    }
}
