//! Programs that tasks want and a machine seldom has: where they are looked for, and where they are installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::tree;

pub(crate) enum Ended {
    Passed,
    /// All of it or the named part was skipped, and why.
    Skipped(String),
}

/// Where missing tools are installed: inside `target/`, not among the user's own.
pub(crate) fn folder() -> PathBuf {
    millstream_tests::target_directory().join("tools")
}

/// Also finds programs installed in [`folder`].
pub(crate) fn with_tools(program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{}", folder().join("bin").display()));
    command
}

pub(crate) fn is_there(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

pub(crate) fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).envs(environment.iter().copied()).current_dir(tree::root());
    succeed(&mut command, &format!("cargo {}", arguments.join(" ")))
}

/// Runs a command without input; the error begins with the name.
pub(crate) fn succeed(command: &mut Command, name: &str) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
