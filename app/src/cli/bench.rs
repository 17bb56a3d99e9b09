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
    after_help = "A closed loop (the default, as in wrk and ab) sends the next request when the response arrives: the server sets the pace.\nAn open \
    loop (--rate, as wrk2's -R) sends each request when it is due, and latency is measured from then: this exposes stalls of the server.\n\nExit status: 0 \
    measured, 1 usage error or nothing could be measured, 2 all responses were errors, 6 a --fail condition is true or cannot be evaluated, 130 \
    interrupted; for compare: 3 better, 4 worse, 5 inconclusive."
)]
pub struct Bench {
    #[command(subcommand)]
    pub what: Option<BenchVerb>,
    #[command(flatten)]
    pub load: Load,
}

/// What is done with runs that were written as JSON.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchVerb {
    /// Compare several runs before a change with several after it
    Compare(Compare),
}

/// A comparison.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Run both sides alternately, at least four times each.\n\nExit status: 0 no difference was found, 3 the second side is better, 4 it is \
    worse, 5 inconclusive (too few runs, a closed loop compared with an open one, the same run on both sides, no responses), 1 usage error."
)]
pub struct Compare {
    /// JSON files of the runs before the change (without --with: one before, one after)
    #[arg(required = true, value_name = "FILE")]
    pub before: Vec<PathBuf>,
    /// JSON files of the runs after the change; fewer than four on a side are inconclusive
    #[arg(long = "with", num_args = 1.., value_name = "FILE")]
    pub after: Vec<PathBuf>,
    /// Figure to compare (default: the rate, or p99 in an open loop)
    #[arg(long, value_name = "FIGURE", value_parser = judged_by())]
    pub by: Option<Metric>,
    /// Write the comparison as JSON: a file, or - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn judged_by() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(["rate", "p50", "p75", "p90", "p99", "p99.9"])
        .map(|name| bound::latency(&name).unwrap_or(Metric::Rate))
}

/// The load.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// URLs to request, in turn: http://host:port/path, or https. Several servers share the connections,
    /// so that in a closed loop the faster one gets more requests
    #[arg(required = true)]
    pub urls: Vec<String>,
    /// Connections (default: 10, or fewer with fewer requests). In an open loop this is the maximum:
    /// a connection is opened if a request is due and none is free (default: up to 10,000)
    #[arg(short = 'c', long, value_name = "N", value_parser = count)]
    pub connections: Option<u64>,
    /// Threads (default: one per core, at most one per connection)
    #[arg(short = 't', long, value_name = "N", value_parser = count)]
    pub threads: Option<u64>,
    /// Duration: 30s, 5m (default: 10s; with -n, until the requests are done)
    #[arg(short = 'd', long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Number of requests: 10k, 2m
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    pub requests: Option<u64>,
    /// Open a new connection for each request
    #[arg(long)]
    pub no_keep_alive: bool,
    /// Add a request field, such as 'Authorization: Bearer …'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<(String, String)>,
    /// Use HTTP/2: https by ALPN, http with prior knowledge
    #[arg(long, conflicts_with = "pipeline")]
    pub http2: bool,
    /// With --http2, concurrent streams per connection, up to 1000 and the server's limit (default: 1);
    /// also -m with a number, as in h2load
    #[arg(long, value_name = "N", value_parser = count, requires = "http2")]
    pub streams: Option<u64>,
    /// The method (default: GET, or POST with a body). One request before the load checks
    /// that the server responds, except for an unsafe method with -n. With --http2, a number sets the streams
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub method: Vec<String>,
    /// The body; @FILE sends a file of up to 256 MB
    #[arg(short = 'b', long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Pipelined requests per connection
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    pub pipeline: u64,
    /// Use an open loop: send this many requests/s, however fast the server is
    #[arg(short = 'R', long, value_name = "N", value_parser = rate, conflicts_with = "find_max")]
    pub rate: Option<f64>,
    /// Use an open loop in stages of TIME:RATE, such as 10s:100,30s:1k: the rate rises or falls linearly
    /// from that of the previous stage, initially from 0 (like k6's ramping-arrival-rate); 0s:RATE jumps
    #[arg(long, value_name = "STAGES", value_parser = stage, value_delimiter = ',', allow_hyphen_values = true,
          conflicts_with_all = ["rate", "find_max", "duration", "requests", "warm_up"])]
    pub stages: Vec<RateStage>,
    /// Distribution of the requests of an open loop (default: constant)
    #[arg(long, value_name = "DISTRIBUTION")]
    pub arrivals: Option<ArrivalsOption>,
    /// The same as --arrivals poisson
    #[arg(long, conflicts_with = "arrivals")]
    pub poisson: bool,
    /// Warm up before measuring (default: a tenth of the duration, at most 1s; 0 with -n, --stages or
    /// --speed). With -n, requests in progress at the end of the warm-up do not count
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    pub warm_up: Option<Duration>,
    /// Timeout for a response, and for a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub timeout: Duration,
    /// Count all statuses except these as errors: 200,404 (default: any below 400 is expected)
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = within(100..=999_u16))]
    pub status: Vec<u16>,
    /// Count bodies that differ from the first response as errors
    #[arg(long, conflicts_with = "log")]
    pub same_body: bool,
    /// Replay the GET and HEAD requests of an access log, in order, against the server in the URL,
    /// which must have no path (-: standard input). A 4xx that a request also got in the log is not an error
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// With --log, send the client address of each line as X-Forwarded-For; without -d or -n, the log is sent
    /// once
    #[arg(long, requires = "log")]
    pub log_clients: bool,
    /// With --log, send requests with the log's timing, this many times as fast (an open loop)
    #[arg(long, value_name = "FACTOR", value_parser = factor, requires = "log",
          conflicts_with_all = ["rate", "find_max", "stages", "requests", "warm_up"])]
    pub speed: Option<f64>,
    /// Replace {{name}} in URL, fields and body with the values of a CSV file with a header line, or of JSON
    /// lines (.jsonl), one row per request; up to 200,000 rows and 64 MB
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    pub data_file: Option<PathBuf>,
    /// Order of the rows
    #[arg(long, value_name = "ORDER", default_value = "sequence", requires = "data_file")]
    pub data_order: DataOrder,
    /// Follow redirects to the same server; the latency includes all of them
    #[arg(short = 'L', long)]
    pub location: bool,
    /// With --location, maximum redirects per request
    #[arg(long, value_name = "N", default_value_t = 50, requires = "location", value_parser = within(0..=u32::MAX))]
    pub max_redirs: u32,
    /// Connect to HOST2:PORT2 instead of HOST1:PORT1, as in curl; each may be empty
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = connect_to)]
    pub connect_to: Vec<ConnectTo>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,
    /// Accept any certificate (default: verify it with SSL_CERT_FILE or the system's authorities)
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Exit with status 6 if this holds: p99>50ms, mean>20ms, errors>1%, errors>10, rate<500
    /// (repeatable)
    #[arg(long, value_name = "BOUND", value_parser = bound)]
    pub fail: Vec<Threshold>,
    /// Search for the highest rate that holds, and confirm it in 15 further trials. A rate holds if 99 % of
    /// the due requests have a response when the trial ends, not counting those that are in progress at any
    /// time. -d is the duration of a trial (default: 5s, longer for a low rate)
    #[arg(long, conflicts_with = "requests")]
    pub find_max: bool,
    /// With --find-max, maximum 99th percentile of latency
    #[arg(long, value_name = "TIME", value_parser = time, requires = "find_max")]
    pub p99: Option<Duration>,
    /// With --find-max, maximum share of errors (default: 0.1%)
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "find_max")]
    pub errors: Option<f64>,
    /// Write the figures as JSON to this file (-: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write an HTML page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write all latencies as an HdrHistogram log (V2), or as percentiles if the file ends in .hgrm
    #[arg(long, value_name = "FILE")]
    pub export_hdr: Option<PathBuf>,
    /// Write the figures in Prometheus's text format to this file
    #[arg(long, value_name = "FILE")]
    pub export_prometheus: Option<PathBuf>,
    /// Print no progress on standard error (like -q of ab and k6)
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Confirm that you may put load on servers on the public internet
    #[arg(long)]
    pub yes: bool,
}

/// How the requests of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsOption {
    /// At equal intervals
    Constant,
    /// As from many independent clients
    Poisson,
}

/// In which order the rows of a data file are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataOrder {
    /// As in the file; each thread starts at a different row
    Sequence,
    /// Each row once in a pseudo-random order, then again; the same order in each run
    Random,
}
