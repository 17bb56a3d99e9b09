//! `cargo xtask check licences`: what is in `Cargo.lock` by its licences and sources, and what is known against it.
//!
//! The rules stand in `deny.toml`. Licences, sources and bans are checked if cargo-deny is installed. Advisories come from the
//! network (the RustSec database, which cargo-audit reads as well): where that cannot be reached, they are skipped out loud.

use std::process::{Command, Stdio};

use crate::tools::{self, Ended};
use crate::tree;

/// cargo-deny's message if it cannot reach the database.
const UNREACHABLE: &str = "failed to fetch advisory database";

pub(crate) fn run() -> Result<Ended, String> {
    if !tools::is_there(cargo_deny().arg("--version")) {
        return Ok(Ended::Skipped("there is no cargo-deny: cargo install --locked cargo-deny".to_owned()));
    }
    said(cargo_deny().args(["check", "licenses", "bans", "sources"]))?;
    match said(cargo_deny().args(["check", "advisories"])) {
        Ok(()) => Ok(Ended::Passed),
        Err(message) if message.contains(UNREACHABLE) => {
            Ok(Ended::Skipped("advisories: their database cannot be reached from here".to_owned()))
        }
        Err(message) => Err(message),
    }
}

fn cargo_deny() -> Command {
    let mut command = tools::with_tools("cargo");
    command.arg("deny").current_dir(tree::root()).stdin(Stdio::null());
    // A database that is not there must not make git ask for a password.
    command.env("GIT_TERMINAL_PROMPT", "0");
    command
}

fn said(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cargo deny: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}
