//! Programs that tasks want and a machine seldom has: where they are looked for, and where they are installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::tree;

/// How a check ended that found nothing wrong.
pub(crate) enum Ended {
    /// It looked at all there is.
    Passed,
    /// It, or the part of it that is named, did not look, and why.
    Skipped(String),
}

/// Where tools are installed that the user has not: inside `target/`, not among the user's own.
pub(crate) fn folder() -> PathBuf {
    millstream_tests::target_directory().join("tools")
}

/// A program that finds what is installed in [`folder`] as well.
pub(crate) fn with_tools(program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{}", folder().join("bin").display()));
    command
}

/// Whether a command can be run, as its exit status says.
pub(crate) fn is_there(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs cargo in the workspace.
///
/// # Errors
/// It failed, or cannot be started.
pub(crate) fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).envs(environment.iter().copied()).current_dir(tree::root()).stdin(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {}: {status}", arguments.join(" "))),
        Err(error) => Err(format!("cargo: {error}")),
    }
}
