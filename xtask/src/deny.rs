//! `cargo xtask deny`: what is in `Cargo.lock` by its licences and sources, and what is known against it.
//!
//! The rules stand in `deny.toml`. Licences, sources and bans are a check of `cargo xtask test` where cargo-deny is installed. Advisories come from the
//! network (the RustSec database, which cargo-audit reads as well): where that cannot be reached, they are skipped out loud.

use std::process::{Command, Stdio};

use crate::{tools, tree};

/// What cargo-deny says where it cannot have the database.
const UNREACHABLE: &str = "failed to fetch advisory database";

/// Checks what can be checked here.
///
/// # Errors
/// A licence, a source or a crate that may not be there, or an advisory.
pub(crate) fn run() -> Result<(), String> {
    if !tools::is_there(cargo_deny().arg("--version")) {
        eprintln!("    SKIPPED: there is no cargo-deny: cargo install --locked cargo-deny");
        return Ok(());
    }
    said(cargo_deny().args(["check", "licenses", "bans", "sources"]))?;
    match said(cargo_deny().args(["check", "advisories"])) {
        Ok(()) => eprintln!("    no advisory is against what is in Cargo.lock"),
        Err(message) if message.contains(UNREACHABLE) => {
            eprintln!("    SKIPPED: advisories: their database cannot be reached from here");
        }
        Err(message) => return Err(message),
    }
    Ok(())
}

fn cargo_deny() -> Command {
    let mut command = tools::with_tools("cargo");
    command.arg("deny").current_dir(tree::root()).stdin(Stdio::null());
    // A database that is not there must not make git ask for a password.
    command.env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// Runs it; the error is what it said.
fn said(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cargo deny: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}
