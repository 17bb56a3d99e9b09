//! The flags of `millstream bench`: `ab`'s and `wrk`'s letters where they have one.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// `bench URL …` or `bench compare A B`.
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "A closed loop (the default, as wrk and ab) sends the next request when the answer is there: the server sets \
                  the pace.\nAn open loop (--rate, as wrk2) sends when a request is due, and latency counts from then: \
                  a server that stalls shows it.\n\nExit status: 0 measured, 1 wrong use or nothing could be measured, \
                  2 every answer was an error."
)]
pub struct Bench {
    #[command(subcommand)]
    #[allow(missing_docs)]
    pub what: Option<BenchVerb>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub load: Load,
}

/// What is done with runs that were written as JSON.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchVerb {
    /// Says whether two runs differ by more than noise
    Compare {
        /// The JSON of the first run
        before: PathBuf,
        /// The JSON of the second
        after: PathBuf,
    },
}

/// The load.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// What to ask for: http://host:port/path, or https; several are asked for in turn
    #[arg(required = true)]
    pub urls: Vec<String>,
    /// Connections held open at once
    #[arg(short = 'c', long, value_name = "N", default_value = "10", value_parser = count)]
    pub connections: u64,
    /// Threads (default: the cores, at most one for each connection)
    #[arg(short = 't', long, value_name = "N", value_parser = count)]
    pub threads: Option<u64>,
    /// How long to measure: 30s, 5m (default 10s; with -n until the requests are done)
    #[arg(short = 'd', long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// How many requests: 10k, 2m
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub requests: Option<u64>,
    /// Use connections again; that is the default, the letter is ab's
    #[arg(short = 'k', long, conflicts_with = "no_keep_alive")]
    pub keep_alive: bool,
    /// A new connection for each request
    #[arg(long)]
    pub no_keep_alive: bool,
    /// A field of each request, such as 'Authorization: Bearer …'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<(String, String)>,
    /// The method (default GET, or POST where there is a body)
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "", hide_default_value = true)]
    pub method: String,
    /// The body; @FILE sends a file
    #[arg(short = 'b', long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Requests on their way on one connection at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub pipeline: u64,
    /// An open loop: so many requests a second, whatever the server does
    #[arg(long, value_name = "N", value_parser = rate, conflicts_with = "find_max")]
    pub rate: Option<f64>,
    /// How the requests of an open loop are spread
    #[arg(long, value_name = "HOW", default_value = "constant")]
    pub arrivals: Spread,
    /// The same as --arrivals poisson
    #[arg(long, conflicts_with = "arrivals")]
    pub poisson: bool,
    /// Send for so long before anything is counted
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time_or_none)]
    pub warm_up: Duration,
    /// How long an answer may take, and a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// The status that every answer must have (default: any below 400)
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub status: Option<u16>,
    /// Ask for what an access log asked for (its GET and HEAD requests, in their order) at the server of the URL
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Search for the highest rate that holds; -d is the length of each trial (default 5s)
    #[arg(long, conflicts_with = "requests")]
    pub find_max: bool,
    /// With --find-max: the most that the 99th percentile of latency may be
    #[arg(long, value_name = "TIME", value_parser = time, requires = "find_max")]
    pub p99: Option<Duration>,
    /// With --find-max: the most that may be errors, e.g. 0.1%
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = share)]
    pub errors: f64,
    /// Write the figures as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A server's certificate must be one that the system trusts
    #[arg(long)]
    pub verify: bool,
    /// No progress on standard error
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Servers on the public internet are mine to load
    #[arg(long)]
    pub yes: bool,
}

/// How the requests of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// At equal distances
    Constant,
    /// As many independent clients would come
    Poisson,
}

/// `10`, `10k`, `2m`, `1g`: thousands, millions, thousands of millions.
fn count(text: &str) -> Result<u64, String> {
    let number = scaled(text).filter(|number| *number >= 1.0 && number.fract() == 0.0);
    number.map(|number| number as u64).ok_or_else(|| "write a whole number such as 200, 10k or 2m".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    scaled(text)
        .filter(|rate| *rate > 0.0)
        .ok_or_else(|| "write requests a second such as 500, 2.5k".to_owned())
}

fn scaled(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return None,
    };
    digits
        .parse::<f64>()
        .ok()
        .map(|number| number * unit)
        .filter(|number| number.is_finite() && *number <= 1e15)
}

/// As in an nginx.conf: `200ms`, `2s`, `1m30s`; a number alone is seconds.
fn time_or_none(text: &str) -> Result<Duration, String> {
    millstream_conf::value::duration(text).map_err(|_| "write a time such as 200ms, 30s or 5m".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    time_or_none(text).and_then(|time| match time {
        Duration::ZERO => Err("it has to be above zero".to_owned()),
        time => Ok(time),
    })
}

/// `0.1%`, or `0.001`.
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().ok().map(|number| number / whole);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share such as 0.1% or 0.001".to_owned())
}

fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write 'Name: value'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_that_wrk_knows() {
        assert_eq!(
            (count("200"), count("10k"), count("2M"), count("1.5k")),
            (Ok(200), Ok(10_000), Ok(2_000_000), Ok(1500))
        );
        assert_eq!((rate("0.5"), rate("2.5k")), (Ok(0.5), Ok(2500.0)));
        for wrong in ["", "k", "0", "-1", "1.5", "1x", "nan", "inf", "1e99g", "é"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert!(rate("0").is_err() && rate("nan").is_err());
    }

    #[test]
    fn times_and_shares_have_their_bounds() {
        assert_eq!(
            (time("1m30s"), time("250ms")),
            (Ok(Duration::from_secs(90)), Ok(Duration::from_millis(250)))
        );
        assert!(time("0").is_err() && time_or_none("0").is_ok() && time("soon").is_err());
        assert_eq!((share("0.1%"), share("0.5"), share("0")), (Ok(0.001), Ok(0.5), Ok(0.0)));
        assert!(
            share("101%").is_err() && share("2").is_err() && share("nan").is_err() && share("%").is_err()
        );
    }
}
