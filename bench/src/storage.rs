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

/// `cargo xtask bench memory`: each kind of fields in its own process, so that none reuses another's memory.
pub(crate) fn memory(program: &Path) -> Result<(), String> {
    println!("{}", memory::heading());
    memory::KINDS.iter().try_for_each(|(name, _)| run(program, &["memory", name]))
}

pub(crate) fn eviction(program: &Path) -> Result<(), String> {
    run(program, &["eviction"])
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let status = Command::new(program).args(arguments).status();
    let status = status.map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", arguments.join(" "))) }
}
