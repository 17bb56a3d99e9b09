//! `cargo xtask bench generator`: `millstream bench` beside `wrk` and `oha`, and over HTTP/2 beside `h2load`, loading one and the
//! same server in turns.
//!
//! What counts is what a generator takes for itself: its CPU per answer, of all its threads, from start to end, and the
//! requests a second that this leaves for the server. The server is the bench's fast API on one thread, so that a core is
//! left to whoever loads it; its count of requests is beside each generator's own, for one that counts wrongly.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::prefix::Prefix;
use millstream_tests::process::waited_for_cpu_time;
use millstream_tests::workspace;
use serde_json::Value;

use crate::peers::{self, Started};
use crate::product::{Product, find};
use crate::report::middle;
use crate::{Options, Programs, h2load, http2, wrk};

const TARGET: &str = "/any?size=900";
const THREADS: u32 = 2;
/// Connections over HTTP/2, and streams of each.
const CONNECTIONS: u32 = 50;
const STREAMS: u32 = 20;
const COUNT: &str = "/count";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generator {
    Millstream,
    Wrk,
    Oha,
    H2load,
}

struct GeneratorTurn {
    answers: u64,
    seen: u64,
    rate: f64,
    cpu: Duration,
}

impl GeneratorTurn {
    /// Microseconds of CPU per response.
    fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers.max(1) as f64
    }
}

impl Generator {
    fn name(self) -> &'static str {
        match self {
            Generator::Millstream => "millstream bench",
            Generator::Wrk => "wrk",
            Generator::Oha => "oha",
            Generator::H2load => "h2load",
        }
    }

    fn command(self, load: &Load, url: &str) -> Command {
        let Load { connections, streams, seconds, .. } = load;
        let mut command = Command::new(load.program(self));
        match self {
            Generator::Millstream => {
                // All CPU time of the process is told, so all answers are counted, as the others do.
                command.args(["bench", "-q", "--warm-up", "0", "--json", "-"]);
                command.arg(format!("-t{THREADS}")).arg(format!("-c{connections}"));
                command.arg(format!("-d{seconds}s"));
                if let Some(streams) = streams {
                    command.arg("--http2").arg(format!("-m{streams}"));
                }
            }
            Generator::Wrk => {
                command.arg(format!("-t{THREADS}")).arg(format!("-c{connections}")).arg("--latency");
                command.arg(format!("-d{seconds}s"));
            }
            Generator::Oha => {
                // Its threads are the runtime's: as many as there are cores, unless the environment says otherwise.
                command.env("TOKIO_WORKER_THREADS", THREADS.to_string());
                command.args(["--no-tui", "--output-format", "json", "-c", &connections.to_string()]);
                command.args(["-z", &format!("{seconds}s")]);
            }
            Generator::H2load => {
                command.arg(format!("-t{THREADS}")).arg(format!("-c{connections}"));
                command.arg(format!("-m{}", streams.unwrap_or(1))).arg(format!("-D{seconds}"));
            }
        }
        command.arg(url).stdin(Stdio::null());
        command
    }

    /// Responses by its own count, and their rate per second.
    fn read(self, output: &str) -> Option<(u64, f64)> {
        match self {
            Generator::Millstream => {
                let report: Value = serde_json::from_str(output).ok()?;
                Some((report["counts"]["answers"].as_u64()?, report["requests_per_second"].as_f64()?))
            }
            Generator::Wrk => wrk::parse(output).map(|run| (run.requests, run.requests_per_second)),
            Generator::Oha => {
                let report: Value = serde_json::from_str(output).ok()?;
                let statuses = report["statusCodeDistribution"].as_object()?;
                let answers = statuses.values().filter_map(Value::as_u64).sum();
                Some((answers, report["summary"]["requestsPerSec"].as_f64()?))
            }
            Generator::H2load => h2load::parse(output).map(|run| (run.requests, run.requests_per_second)),
        }
    }
}

struct Load<'a> {
    connections: u32,
    /// `None`: HTTP/1.1.
    streams: Option<u32>,
    seconds: u32,
    millstream: &'a Path,
}

impl Load<'_> {
    fn program(&self, generator: Generator) -> PathBuf {
        match generator {
            Generator::Millstream => self.millstream.to_owned(),
            other => find(other.name()).unwrap_or_default(),
        }
    }
}

struct Contest<'a> {
    about: String,
    load: Load<'a>,
    generators: Vec<Generator>,
    server: Started,
    seen: fn(&Started) -> Result<u64, String>,
}

pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let millstream = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    if find("wrk").is_none() {
        return Err("wrk is not installed: apt-get install wrk".to_owned());
    }
    let load =
        Load { connections: options.connections, streams: None, seconds: options.duration, millstream };
    let mut generators = vec![Generator::Millstream, Generator::Wrk, Generator::Oha];
    if find("oha").is_none() {
        eprintln!("oha is not installed, so it takes no part: cargo install oha");
        generators.pop();
    }
    let server = peers::origin_on_threads(programs, 1)?;
    let about = format!("{} connections", options.connections);
    let mut text = carry_out(options, &Contest { about, load, generators, server, seen: Started::answered })?;
    if !h2load::is_here() {
        eprintln!("h2load is not installed, so HTTP/2 is left out: apt-get install nghttp2-client");
        return Ok(text);
    }
    // The bench's own API has no HTTP/2: the cache of one worker answers.
    let api = peers::origin(programs)?;
    let files = Prefix::new();
    let server = peers::on_nginx_file(Product::Millstream, millstream, &counting(&files)?, api.port)?;
    let contest = Contest {
        about: format!("{CONNECTIONS} connections of HTTP/2 with {STREAMS} streams each"),
        load: Load {
            connections: CONNECTIONS,
            streams: Some(STREAMS),
            seconds: options.duration,
            millstream,
        },
        generators: vec![Generator::Millstream, Generator::H2load],
        server,
        seen: counted,
    };
    text.push('\n');
    text.push_str(&carry_out(options, &contest)?);
    Ok(text)
}

/// The bench's HTTP/2 file, with a page that reports the number of requests.
fn counting(files: &Prefix) -> Result<String, String> {
    let text = std::fs::read_to_string(workspace().join(http2::FILE)).map_err(|error| error.to_string())?;
    let page = format!("location = {COUNT} {{ stub_status; access_log off; }}\n        location / {{");
    let path = files.write("counting.conf", text.replace("location / {", &page));
    Ok(path.to_str().unwrap_or_default().to_owned())
}

/// That number, without the requests for the page itself.
fn counted(server: &Started) -> Result<u64, String> {
    let said = |what: String| format!("{COUNT}: {what}");
    let mut client = Client::connect(server.port).map_err(|error| said(error.to_string()))?;
    let text = client.get(COUNT).map_err(|error| said(error.to_string()))?.text();
    // The numbers stand below a line of their names; the last is that of the requests.
    let mut lines = text.lines().skip_while(|line| !line.contains("requests"));
    let count = lines.nth(1).and_then(|line| line.split_whitespace().nth(2)?.parse().ok());
    count.ok_or_else(|| said(format!("no count in {text}")))
}

fn carry_out(options: &Options, contest: &Contest) -> Result<String, String> {
    let mut series: Vec<Vec<GeneratorTurn>> = contest.generators.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        for (generator, turns) in contest.generators.iter().zip(&mut series) {
            let turn = turn(*generator, contest)?;
            eprintln!(
                "{round}/{} {:<16} {:>9.0} requests/s {:>6.2} µs",
                options.rounds,
                generator.name(),
                turn.rate,
                turn.cost()
            );
            turns.push(turn);
        }
    }
    Ok(table(options, contest, &series))
}

fn turn(generator: Generator, contest: &Contest) -> Result<GeneratorTurn, String> {
    let Contest { load, server, seen: count, .. } = contest;
    let url = format!("http://127.0.0.1:{}{TARGET}", server.port);
    let said = |what: String| format!("{}: {what}", generator.name());
    let (cpu, seen) = (waited_for_cpu_time(), count(server)?);
    let output = generator.command(load, &url).output().map_err(|error| said(error.to_string()))?;
    let (cpu, seen) = (waited_for_cpu_time() - cpu, count(server)? - seen);
    let text = String::from_utf8_lossy(&output.stdout);
    let read = generator.read(&text);
    let (answers, rate) =
        read.ok_or_else(|| said(format!("{text}{}", String::from_utf8_lossy(&output.stderr))))?;
    Ok(GeneratorTurn { answers, seen, rate, cpu })
}

fn table(options: &Options, contest: &Contest, series: &[Vec<GeneratorTurn>]) -> String {
    let median = |turns: &[GeneratorTurn], value: &dyn Fn(&GeneratorTurn) -> f64| {
        middle(turns.iter().map(value).collect())
    };
    let ours = &series[0];
    let (our_cost, our_rate) = (median(ours, &GeneratorTurn::cost), median(ours, &|turn| turn.rate));
    let mut text = format!(
        "### Load generators on one server, {}\n\n`cargo xtask bench generator --rounds {} --duration {} --connections {}`: medians; \
         the server has one thread, each generator {THREADS}. The last two columns are the first row's figures by this row's.\n\n\
         | generator | requests/s | CPU µs per answer | answers counted, seen by the server | CPU, ours by its | requests/s, ours by its |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
        contest.about, options.rounds, options.duration, options.connections
    );
    for (generator, turns) in contest.generators.iter().zip(series) {
        let (cost, rate) = (median(turns, &GeneratorTurn::cost), median(turns, &|turn| turn.rate));
        let sum = |value: fn(&GeneratorTurn) -> u64| turns.iter().map(value).sum::<u64>();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {rate:.0} | {cost:.2} | {}, {} | {:.2} | {:.2} |",
            generator.name(),
            sum(|turn| turn.answers),
            sum(|turn| turn.seen),
            our_cost / cost,
            our_rate / rate
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Generator;

    #[test]
    fn each_report_gives_its_answers_and_its_rate() {
        let ours = r#"{"counts":{"answers":7},"requests_per_second":3.5}"#;
        assert_eq!(Generator::Millstream.read(ours), Some((7, 3.5)));
        let oha = r#"{"summary":{"requestsPerSec":3.5},"statusCodeDistribution":{"200":5,"503":2},"errorDistribution":{"aborted due to deadline":3}}"#;
        assert_eq!(Generator::Oha.read(oha), Some((7, 3.5)));
        assert_eq!(Generator::Oha.read("{}"), None);
    }
}
