//! Programs that tasks want and a machine seldom has: where they are looked for, and where they are installed.

use std::path::PathBuf;
use std::process::Command;

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
