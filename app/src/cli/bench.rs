//! The flags of `millstream bench`: `ab`'s and `wrk`'s letters where they have one.

use super::value::{count, field, rate, share, time, time_or_none};
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
    /// Says whether something changed: several runs of the one against several of the other
    Compare(Compare),
}

/// A comparison.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Run both sides in turns, four times each or more.\n\nExit status: 0 no difference was found, 3 the second side is \
                  better, 4 it is worse, 5 that cannot be told, 1 wrong use."
)]
pub struct Compare {
    /// The JSON of each run before the change; of two files without --with the second is after it
    #[arg(required = true, value_name = "FILE")]
    pub before: Vec<PathBuf>,
    /// The JSON of each run after the change: four of each side are the fewest that tell something
    #[arg(long = "with", num_args = 1.., value_name = "FILE")]
    pub after: Vec<PathBuf>,
    /// What is judged; without it the rate, or in an open loop, which sets that itself, p99
    #[arg(long, value_name = "WHAT")]
    pub by: Option<JudgedBy>,
    /// Write the comparison as JSON: a file, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What a comparison is judged by.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum JudgedBy {
    /// Answers as expected per second
    Rate,
    /// The median of latency
    P50,
    /// Its 75th percentile
    P75,
    /// Its 90th percentile
    P90,
    /// Its 99th percentile
    P99,
    /// Its 99.9th percentile
    #[value(name = "p99.9")]
    P999,
}

/// The load.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// What to ask for: http://host:port/path, or https. Several of one server are asked for in turn; several servers
    /// share the connections, so that in a closed loop the faster one answers more
    #[arg(required = true)]
    pub urls: Vec<String>,
    /// Connections held open at once (default: 10, or with fewer requests as many); in an open loop the most that there may be,
    /// each opened when a request is due and none is free (default: as many as it takes, up to 10,000)
    #[arg(short = 'c', long, value_name = "N", value_parser = count)]
    pub connections: Option<u64>,
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
    /// Speak HTTP/2: https by ALPN, http with prior knowledge
    #[arg(long, conflicts_with = "pipeline")]
    pub http2: bool,
    /// With --http2: streams of one connection at once, up to 1000 and to what the server allows (default: 1); -m with a number
    /// says the same, as h2load's
    #[arg(long, value_name = "N", value_parser = count, requires = "http2")]
    pub streams: Option<u64>,
    /// The method (default GET, or POST where there is a body); with --http2 a number is that of the streams
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// The body; @FILE sends a file, of up to 256 MB
    #[arg(short = 'b', long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Requests on their way on one connection at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub pipeline: u64,
    /// An open loop: so many requests a second, whatever the server does
    #[arg(long, value_name = "N", value_parser = rate, conflicts_with = "find_max")]
    pub rate: Option<f64>,
    /// How the requests of an open loop are spread (default: constant)
    #[arg(long, value_name = "HOW")]
    pub arrivals: Option<ArrivalsOption>,
    /// The same as --arrivals poisson
    #[arg(long, conflicts_with = "arrivals")]
    pub poisson: bool,
    /// Send for so long before anything is counted
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time_or_none)]
    pub warm_up: Duration,
    /// How long an answer may take, and a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// The status that every answer must have, or several: 200,404 (default: any below 400)
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..=999))]
    pub status: Vec<u16>,
    /// The body that every answer must have is that of the first, asked for before the load; others are errors
    #[arg(long, conflicts_with = "log")]
    pub same_body: bool,
    /// Ask for what an access log asked for (its GET and HEAD requests, in their order) at the server of the URL, which has
    /// no path then (-: standard input); a request that had a 4xx in the log may have it again
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Search for the highest rate that holds: 99 % of what was due had its answer when the trial ended, but for what is always
    /// on its way; -d is the length of each trial (default 5s)
    #[arg(long, conflicts_with = "requests")]
    pub find_max: bool,
    /// With --find-max: the most that the 99th percentile of latency may be
    #[arg(long, value_name = "TIME", value_parser = time, requires = "find_max")]
    pub p99: Option<Duration>,
    /// With --find-max: the most that may be errors (default: 0.1%)
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "find_max")]
    pub errors: Option<f64>,
    /// Write the figures as JSON to this file (-: standard output)
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
pub enum ArrivalsOption {
    /// At equal distances
    Constant,
    /// As many independent clients would come
    Poisson,
}
