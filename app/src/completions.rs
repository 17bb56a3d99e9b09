//! `millstream completions SHELL`: the script that makes a shell complete the command line, made of the line itself.
//!
//! It prints and never writes a file; where a shell looks for it is for packages to know (`xtask/src/package.rs`).

use crate::cli;
use clap_complete::{Shell, generate};
use std::io::Write;
use std::process::ExitCode;

pub fn print(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    generate(shell, &mut cli::described(), "millstream", &mut script);
    // A closed pipe on standard output is the reader's wish.
    _ = std::io::stdout().write_all(&script);
    ExitCode::SUCCESS
}
