//! Runs one leaf so many times: `instructions NAME ITERATIONS`; `instructions list` prints the names.
//!
//! It does nothing else, so that what a profiler counts beside the leaf is small and the same every time.

use std::io::Write;
use std::process::ExitCode;

use millstream_benches::leaves;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => {
            let mut out = std::io::stdout().lock();
            let written = leaves().try_for_each(|leaf| writeln!(out, "{}", leaf.name));
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        [name, iterations] => match (leaves().find(|leaf| leaf.name == name), iterations.parse()) {
            (Some(leaf), Ok(times)) => {
                (leaf.run)(times);
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    let _ = writeln!(std::io::stderr(), "usage: instructions NAME ITERATIONS | instructions list");
    ExitCode::FAILURE
}
