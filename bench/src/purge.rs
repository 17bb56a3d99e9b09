//! `cargo xtask bench purge`: what a purge by tag among a million entries takes, and what others notice of it.
//!
//! The measuring is a program of its own, `bin/purge`, so that it is a release build. It runs no server: a purge that
//! has reached the cache is what is measured, and who looks up meanwhile is a thread with handles of its own.

use std::process::Command;

use crate::Programs;

pub(crate) fn run(programs: &Programs) -> Result<(), String> {
    let status = Command::new(&programs.purge).status().map_err(|error| format!("bench purge: {error}"))?;
    if status.success() { Ok(()) } else { Err("the purge did not do what it must".into()) }
}
