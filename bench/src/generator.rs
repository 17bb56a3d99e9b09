//! `cargo xtask bench generator`: `millstream bench` beside `wrk` and `oha`, loading one and the same server in turns.
//!
//! What counts is what a generator takes for itself: its CPU per answer, of all its threads, from start to end, and the
//! requests a second that this leaves for the server. The server is the bench's fast API on one thread, so that a core is
//! left to whoever loads it; its count of requests is beside each generator's own, for one that counts wrongly.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::process::waited_for_cpu_time;
use serde_json::Value;

use crate::peers::{self, Started};
use crate::product::find;
use crate::report::middle;
use crate::{Options, Programs, wrk};

/// What is asked for: 900 bytes of JSON.
const TARGET: &str = "/any?size=900";
/// Threads of each generator.
const THREADS: u32 = 2;

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generator {
    Millstream,
    Wrk,
    Oha,
}

/// One turn of a generator.
struct GeneratorTurn {
    /// Answers by its own count.
    answers: u64,
    /// Requests that the server saw.
    seen: u64,
    rate: f64,
    cpu: Duration,
}

impl GeneratorTurn {
    /// Microseconds an answer.
    fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers.max(1) as f64
    }
}

impl Generator {
    const ALL: [Generator; 3] = [Generator::Millstream, Generator::Wrk, Generator::Oha];

    fn name(self) -> &'static str {
        match self {
            Generator::Millstream => "millstream bench",
            Generator::Wrk => "wrk",
            Generator::Oha => "oha",
        }
    }

    /// The command, and what reads its output: answers, and requests a second.
    fn command(self, load: &Load, url: &str) -> Command {
        let Load { connections, seconds, .. } = load;
        let mut command = Command::new(load.program(self));
        match self {
            Generator::Millstream => {
                command.args(["bench", "-q", "--json", "-"]);
                command.arg(format!("-t{THREADS}")).arg(format!("-c{connections}"));
                command.arg(format!("-d{seconds}s"));
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
        }
        command.arg(url).stdin(Stdio::null());
        command
    }

    /// Answers by its own count, and a second.
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
        }
    }
}

/// What every turn has in common.
struct Load<'a> {
    connections: u32,
    seconds: u32,
    millstream: &'a Path,
}

impl Load<'_> {
    fn program(&self, generator: Generator) -> PathBuf {
        match generator {
            Generator::Millstream => self.millstream.to_owned(),
            Generator::Wrk => find("wrk").unwrap_or_default(),
            Generator::Oha => find("oha").unwrap_or_default(),
        }
    }
}

/// Everybody in every round; the table.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<String, String> {
    let millstream = programs.millstream.as_deref().ok_or("this is about Millstream itself")?;
    let load = Load { connections: options.connections, seconds: options.duration, millstream };
    if find("wrk").is_none() {
        return Err("wrk is not installed: apt-get install wrk".to_owned());
    }
    let is_here = |generator: &Generator| load.program(*generator).is_file();
    let generators: Vec<Generator> = Generator::ALL.into_iter().filter(is_here).collect();
    if !generators.contains(&Generator::Oha) {
        eprintln!("oha is not installed, so it takes no part: cargo install oha");
    }
    let server = peers::origin_on_threads(programs, 1)?;
    let mut series: Vec<Vec<GeneratorTurn>> = generators.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        for (generator, turns) in generators.iter().zip(&mut series) {
            let turn = turn(*generator, &load, &server)?;
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
    Ok(table(options, &generators, &series))
}

fn turn(generator: Generator, load: &Load, server: &Started) -> Result<GeneratorTurn, String> {
    let url = format!("http://127.0.0.1:{}{TARGET}", server.port);
    let said = |what: String| format!("{}: {what}", generator.name());
    let (cpu, seen) = (waited_for_cpu_time(), server.answered()?);
    let output = generator.command(load, &url).output().map_err(|error| said(error.to_string()))?;
    let (cpu, seen) = (waited_for_cpu_time() - cpu, server.answered()? - seen);
    let text = String::from_utf8_lossy(&output.stdout);
    let read = generator.read(&text);
    let (answers, rate) =
        read.ok_or_else(|| said(format!("{text}{}", String::from_utf8_lossy(&output.stderr))))?;
    Ok(GeneratorTurn { answers, seen, rate, cpu })
}

fn table(options: &Options, generators: &[Generator], series: &[Vec<GeneratorTurn>]) -> String {
    let median = |turns: &[GeneratorTurn], value: &dyn Fn(&GeneratorTurn) -> f64| {
        middle(turns.iter().map(value).collect())
    };
    let ours = &series[0];
    let (our_cost, our_rate) = (median(ours, &GeneratorTurn::cost), median(ours, &|turn| turn.rate));
    let mut text = format!(
        "### Load generators on one server\n\n`cargo xtask bench generator --rounds {} --duration {} --connections {}`: medians; \
         the server has one thread, each generator {THREADS}. The last two columns are the first row's figures by this row's.\n\n\
         | generator | requests/s | CPU µs per answer | answers counted, seen by the server | CPU, ours by its | requests/s, ours by its |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
        options.rounds, options.duration, options.connections
    );
    for (generator, turns) in generators.iter().zip(series) {
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
