//! The flags of `millstream bench`: `ab`'s and `wrk`'s letters where they have one.

use super::bound::{self, bound};
use super::value::{connect_to, count, factor, field, rate, share, stage, time, time_or_none, within};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use millstream_load::metric::Metric;
use millstream_load::plan::RateStage;
use millstream_load::target::ConnectTo;
use millstream_load::threshold::Threshold;
use std::path::PathBuf;
use std::time::Duration;

/// `bench URL …` or `bench compare A B`.
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "A closed loop (the default, as wrk and ab) sends the next request when the answer is there: the server sets \
                  the pace.\nAn open loop (--rate, as wrk2's -R) sends when a request is due, and latency counts from then: \
                  a server that stalls shows it.\n\nExit status: 0 measured, 1 wrong use or nothing could be measured, \
                  2 every answer was an error, 6 a --fail came true or cannot be judged, 130 stopped; \
                  of compare 3 better, 4 worse, 5 cannot be told."
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
                  better, 4 it is worse, 5 that cannot be told (too few runs, a closed loop against an open one, a run on both sides, no answer), 1 wrong use."
)]
pub struct Compare {
    /// The JSON of each run before the change; of two files without --with the second is after it
    #[arg(required = true, value_name = "FILE")]
    pub before: Vec<PathBuf>,
    /// The JSON of each run after the change: at least four of each side are needed to tell anything
    #[arg(long = "with", num_args = 1.., value_name = "FILE")]
    pub after: Vec<PathBuf>,
    /// What is judged; without it the rate, or in an open loop, which sets that itself, p99
    #[arg(long, value_name = "WHAT", value_parser = judged_by())]
    pub by: Option<Metric>,
    /// Write the comparison as JSON: a file, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The rate, or a percentile of latency.
fn judged_by() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(["rate", "p50", "p75", "p90", "p99", "p99.9"])
        .map(|name| bound::latency(&name).unwrap_or(Metric::Rate))
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
    /// The method (default GET, or POST where there is a body). One request asks before the load whether there is an answer; of a
    /// method that changes something none does where -n counts them. With --http2 a number is that of the streams
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// The body; @FILE sends a file, of up to 256 MB
    #[arg(short = 'b', long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Requests on their way on one connection at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub pipeline: u64,
    /// An open loop: so many requests a second, whatever the server does
    #[arg(short = 'R', long, value_name = "N", value_parser = rate, conflicts_with = "find_max")]
    pub rate: Option<f64>,
    /// An open loop in stages, TIME:RATE each: the rate goes in a straight line from that of the stage before, at first from 0, to
    /// RATE (as k6's ramping-arrival-rate); 0s:RATE jumps. Such as 10s:100,30s:1k
    #[arg(long, value_name = "STAGES", value_parser = stage, value_delimiter = ',', allow_hyphen_values = true,
          conflicts_with_all = ["rate", "find_max", "duration", "requests", "warm_up"])]
    pub stages: Vec<RateStage>,
    /// How the requests of an open loop are spread (default: constant)
    #[arg(long, value_name = "HOW")]
    pub arrivals: Option<ArrivalsOption>,
    /// The same as --arrivals poisson
    #[arg(long, conflicts_with = "arrivals")]
    pub poisson: bool,
    /// Send for so long before anything is counted; 0 counts from the first request (default: a tenth of the time, at most 1s; none
    /// with -n, --stages or --speed). With -n what is on its way then does not count
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    pub warm_up: Option<Duration>,
    /// How long an answer may take, and a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// The status that every answer must have, or several: 200,404 (default: any below 400)
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = within(100..=999_u16))]
    pub status: Vec<u16>,
    /// The body that every answer must have is that of the first, asked for before the load; others are errors
    #[arg(long, conflicts_with = "log")]
    pub same_body: bool,
    /// Ask for what an access log asked for (its GET and HEAD requests, in their order) at the server of the URL, which has
    /// no path then (-: standard input); a request that had a 4xx in the log may have it again
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// With --log: ask at the log's own moments, so many times as fast: an open loop
    #[arg(long, value_name = "FACTOR", value_parser = factor, requires = "log",
          conflicts_with_all = ["rate", "find_max", "stages", "requests", "warm_up"])]
    pub speed: Option<f64>,
    /// A file of values, CSV with names in its first line or JSON lines (.jsonl): {{name}} in the URL, in fields and in the body
    /// becomes the value of a row, each row in its turn; up to 200,000 rows and 64 MB
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    pub data_file: Option<PathBuf>,
    /// In which order its rows are taken
    #[arg(long, value_name = "HOW", default_value = "sequence", requires = "data_file")]
    pub data_order: DataOrder,
    /// Follow redirects to the same server; the latency is that of the whole way
    #[arg(short = 'L', long)]
    pub location: bool,
    /// With --location: so many redirects of one request at the most
    #[arg(long, value_name = "N", default_value_t = 50, requires = "location", value_parser = within(0..=u32::MAX))]
    pub max_redirs: u32,
    /// Connect to HOST2:PORT2 in place of a URL's HOST1:PORT1, each of which may be empty; as curl's
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = connect_to)]
    pub connect_to: Vec<ConnectTo>,
    /// Connect to this socket in the file system
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,
    /// Take any certificate; without it, it must be one that the system trusts (SSL_CERT_FILE names another list)
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// The run has failed where this holds, and the exit status is 6: p99>50ms, mean>20ms, errors>1%, errors>10, rate<500. May be
    /// given several times
    #[arg(long, value_name = "BOUND", value_parser = bound)]
    pub fail: Vec<Threshold>,
    /// Search for the highest rate that holds and confirm it by 15 further trials: 99 % of what was due had its answer when the trial
    /// ended, but for what is always on its way; -d is the length of each trial (default 5s), lengthened where a low rate takes more
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
    /// Write all latencies as a log of HdrHistogram (V2), or where the file ends in .hgrm as its percentiles
    #[arg(long, value_name = "FILE")]
    pub export_hdr: Option<PathBuf>,
    /// Write the figures in Prometheus's text format
    #[arg(long, value_name = "FILE")]
    pub export_prometheus: Option<PathBuf>,
    /// No progress on standard error; the report stays (as ab's and k6's -q)
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

/// In which order the rows of a data file are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataOrder {
    /// As they stand in the file, each thread from another place on
    Sequence,
    /// Each once in an order that looks random, and again; the same order in each run
    Random,
}
