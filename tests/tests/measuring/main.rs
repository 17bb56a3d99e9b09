//! Measuring, as its users see it: figures, verdicts and reports of the real binary.
//!
//! What is judged here is how fast something was, so that nothing else may run meanwhile: `cargo xtask check measuring` runs these by
//! themselves, one after the other, and `cargo test` runs them only when they are named (`--test measuring`).

#[macro_use]
extern crate millstream_tests;

mod bench;
mod demands;
mod http2;
mod inputs;
mod capacity;
mod ladder;
mod following;
mod reports;
mod first_paint;

use millstream_tests::server::binary;
use std::process::{Command, Stdio};

/// So wide that no line of a report is broken.
const WIDE: &str = "10000";

fn millstream() -> Command {
    let mut command = Command::new(binary());
    command.env("COLUMNS", WIDE);
    command
}

type Ended = (i32, String, String);

fn bench(arguments: &[&str]) -> Ended {
    run(&["bench", "-q"], arguments)
}

fn compare(arguments: &[&str]) -> Ended {
    run(&["bench", "compare"], arguments)
}

fn run(command: &[&str], arguments: &[&str]) -> Ended {
    let mut command_line = millstream();
    command_line.args(command).args(arguments).stdin(Stdio::null());
    let output = command_line.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Joined, since line breaks do not matter.
fn in_one_line(told: &str) -> String {
    told.split_whitespace().collect::<Vec<_>>().join(" ")
}
