//! `cargo xtask test`, the one test command: every check in turn, none kept back by one that failed before it.
//!
//! The tests come last, so that what a reader sees at the end is cargo's own summary.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::tools::{Ended, folder, is_there, with_tools};
use crate::{conformance, deny, tidy, tree};

/// Seconds that each fuzz target runs.
const FUZZ_SECONDS: u32 = 15;

/// A check; the error is what is wrong.
type Check = fn() -> Result<Ended, String>;

/// All checks but the tests, the quickest first.
const CHECKS: [(&str, Check); 9] = [
    ("formatting", || cargo(&["fmt", "--all", "--check", "--", "-l"], &[]).map(passed)),
    ("clippy", || clippy().map(passed)),
    ("tidy", || tidy::run().map(passed)),
    ("contexts of directives", || conformance::contexts().map(passed)),
    ("documentation", || {
        let words = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
        cargo(&words, &[("RUSTDOCFLAGS", "-D warnings")]).map(passed)
    }),
    ("licences and sources", deny::run),
    ("fuzzing", fuzz),
    ("loom", || loom().map(passed)),
    ("HTTP cache tests", conformance::as_check),
];

/// What cargo is told to run, and how many tests at a time. Scenarios wait more than they work, so more of them than cores
/// run; those that judge figures have the machine to themselves.
const TESTS: [(&str, &[&str], &str); 2] = [("tests", &[], "6"), ("measuring", &["--test", "measuring"], "1")];

/// Runs everything; the error names what failed.
pub(crate) fn run() -> Result<(), String> {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        eprintln!("==> {name}");
        let began = Instant::now();
        let (ended, seconds) = (check(), began.elapsed().as_secs_f32());
        eprintln!("    {}", summary(name, &ended, seconds));
        failed.extend(ended.is_err().then_some(name));
    }
    for (name, target, threads) in TESTS {
        eprintln!("==> {name}");
        let arguments = [&["test", "--workspace", "--no-fail-fast"], target].concat();
        if let Err(message) = cargo(&arguments, &[("RUST_TEST_THREADS", threads)]) {
            eprintln!("{message}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// The last line of a check, behind what it said if it failed. What was not looked at has not passed.
fn summary(name: &str, ended: &Result<Ended, String>, seconds: f32) -> String {
    match ended {
        Ok(Ended::Passed) => format!("{name}: passed in {seconds:.0} s"),
        Ok(Ended::Skipped(why)) => format!("{name}: SKIPPED: {why}"),
        Err(message) => format!("{message}\n    {name}: FAILED after {seconds:.0} s"),
    }
}

fn passed((): ()) -> Ended {
    Ended::Passed
}

/// For a check that is run by itself: a line where it was skipped.
pub(crate) fn tell(ended: Ended) {
    if let Ended::Skipped(why) = ended {
        eprintln!("SKIPPED: {why}");
    }
}

/// `--all-targets` leaves out what no plain `cargo test` runs.
fn clippy() -> Result<(), String> {
    for targets in ["--all-targets", "--test=measuring"] {
        cargo(&["clippy", "--workspace", targets, "--keep-going", "--quiet", "--", "-D", "warnings"], &[])?;
    }
    Ok(())
}

/// The line for a key under loom: every order in which threads may take its locks. Some ten seconds, and as long to build.
pub(crate) fn loom() -> Result<(), String> {
    cargo(&["test", "-p", "millstream-cache", "--features", "loom", "--test", "loom", "--quiet"], &[])
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).envs(environment.iter().copied()).current_dir(tree::root()).stdin(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {}: {status}", arguments.join(" "))),
        Err(error) => Err(format!("cargo: {error}")),
    }
}

/// A short run of every target under `fuzz/`. Without a nightly toolchain or `cargo-fuzz` it is skipped, out loud.
pub(crate) fn fuzz() -> Result<Ended, String> {
    let skipped = |why: &str| Ok(Ended::Skipped(why.to_owned()));
    let folder = tree::root().join("fuzz");
    if !folder.join("Cargo.toml").exists() {
        return skipped("there is no fuzz/Cargo.toml");
    }
    if !is_there(&mut nightly(&["--version"])) {
        return skipped("no nightly toolchain; rustup toolchain install nightly --profile minimal");
    }
    if !is_there(&mut nightly(&["fuzz", "--version"])) && !install_cargo_fuzz() {
        return skipped("cargo-fuzz cannot be installed here; cargo install cargo-fuzz");
    }
    let list = nightly(&["fuzz", "list"]).output().map_err(|error| error.to_string())?;
    let built = nightly(&["fuzz", "build", "--dev"]).output().map_err(|error| error.to_string())?;
    if !list.status.success() || !built.status.success() {
        return Err(tail(&[list.stderr, built.stderr].concat()));
    }
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    // Side by side: each target is one thread.
    let runs: Result<Vec<(&str, Child)>, String> =
        list.split_whitespace().map(|target| Ok((target, start_fuzzing(target)?))).collect();
    let mut findings = Vec::new();
    for (target, run) in runs? {
        let output = run.wait_with_output().map_err(|error| error.to_string())?;
        if output.status.success() {
            eprintln!("    {target}: {FUZZ_SECONDS} s without a finding");
        } else {
            findings.push(format!("{target}:\n{}", tail(&output.stderr)));
        }
    }
    if findings.is_empty() { Ok(Ended::Passed) } else { Err(findings.join("\n")) }
}

fn start_fuzzing(target: &str) -> Result<Child, String> {
    let seconds = format!("-max_total_time={FUZZ_SECONDS}");
    // What a run finds interesting is kept for the next one, but not in the sources.
    let corpus = millstream_tests::target_directory().join("fuzz-corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    nightly(&["fuzz", "run", "--dev", target, &corpus.to_string_lossy(), "--", &seconds, "-verbosity=0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{target}: {error}"))
}

/// The last lines of what a program said: where a fuzzer puts the input and the place.
fn tail(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Cargo of the nightly toolchain; the toolchain that runs this program must not decide which one the child takes.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = with_tools("cargo");
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    command.arg("+nightly").args(arguments).current_dir(tree::root()).stdin(Stdio::null());
    command
}

fn install_cargo_fuzz() -> bool {
    eprintln!("    installing cargo-fuzz into {}", folder().display());
    let mut install = nightly(&["install", "--locked", "--quiet", "--debug", "cargo-fuzz", "--root"]);
    install.arg(folder()).status().is_ok_and(|status| status.success())
        && is_there(&mut nightly(&["fuzz", "--version"]))
}

#[cfg(test)]
mod tests {
    use super::{Ended, summary};

    #[test]
    fn what_was_skipped_has_not_passed() {
        let told = summary("fuzzing", &Ok(Ended::Skipped("no nightly toolchain".to_owned())), 0.0);
        assert_eq!(told, "fuzzing: SKIPPED: no nightly toolchain");
        assert_eq!(summary("tidy", &Ok(Ended::Passed), 2.4), "tidy: passed in 2 s");
        assert_eq!(summary("tidy", &Err("why".to_owned()), 2.4), "why\n    tidy: FAILED after 2 s");
    }
}
