//! The flags of `millstream capacity`.

use super::value::{field, measurement, time_or_none, within};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `capacity URL URL …`.
#[derive(Debug, Clone, Args)]
pub struct Capacity {
    /// The servers: http://host:port/path, with the same path
    #[arg(required_unless_present = "sleep", conflicts_with = "sleep")]
    pub urls: Vec<String>,
    /// Use embedded servers that only sleep; the report has a row for each time, e.g. 200ms,70ms,2ms,0
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = time_or_none)]
    pub sleep: Vec<Duration>,
    /// Number of embedded servers
    #[arg(long, value_name = "N", default_value_t = 2, requires = "sleep", value_parser = within(1..=16_u16))]
    pub servers: u16,
    /// Requests that each embedded server serves at the same time
    #[arg(long, value_name = "N", default_value_t = 32, requires = "sleep", value_parser = within(1..=256_u16))]
    pub at_once: u16,
    /// Connections for each server; with a list (16,64,256), the report has a row for each number
    #[arg(short = 'c', long, value_name = "N", value_delimiter = ',', default_value = "32", value_parser = within(1..=10_000_u32))]
    pub connections: Vec<u32>,
    /// Threads of the load generator (default: one per core, at most 4)
    #[arg(short = 't', long, value_name = "N", value_parser = within(1..=64_u32))]
    pub threads: Option<u32>,
    /// Duration of each run, at least 450ms
    #[arg(short = 'd', long, value_name = "TIME", default_value = "1200ms", value_parser = measurement)]
    pub duration: Duration,
    /// Warm-up before each run
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = time_or_none)]
    pub warm_up: Duration,
    /// Rounds, in random order; the result is their median (fewer than 4 are inconclusive)
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1..=99_u32))]
    pub rounds: u32,
    /// Seed of the random order, to repeat a run (--json contains it)
    #[arg(long, value_name = "N", value_parser = within(0..=u64::MAX))]
    pub seed: Option<u64>,
    /// Worker threads of the proxy: a number or auto
    #[arg(long, value_name = "N", default_value = "auto", value_parser = workers)]
    pub workers: String,
    /// Add a request field, such as 'Authorization: Bearer …'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<(String, String)>,
    /// Write the figures as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write an HTML page with a chart to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Report all figures and remarks
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Print no progress on standard error
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Confirm that you may put load on servers on the public internet
    #[arg(long)]
    pub yes: bool,
}

fn workers(text: &str) -> Result<String, String> {
    let is_number = text.parse::<u16>().is_ok_and(|number| number > 0);
    if text == "auto" || is_number { Ok(text.to_owned()) } else { Err("write a number or auto".to_owned()) }
}
