//! The cache as a store, through its public door and without a network: what an entry takes, and who has to go.
//!
//! Numbers come from a child process (`bin/storage.rs`). Next: `storage/memory`, `storage/eviction`.

mod zone;
mod traces;
mod policies;
pub mod memory;
pub mod eviction;

use std::path::Path;
use std::process::Command;

/// Runs the child with one of its words and lets it print.
pub(crate) fn run(program: &Path, what: &str) -> Result<(), String> {
    let status = Command::new(program).arg(what).status().map_err(|error| format!("{what}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what}: {status}")) }
}
