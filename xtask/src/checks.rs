//! `cargo xtask test`, the one test command: every check in turn, none kept back by one that failed before it.
//!
//! The tests come last, so that what a reader sees at the end is cargo's own summary.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::tools::{folder, is_there, with_tools};
use crate::{conformance, deny, tidy, tree};

/// Seconds that each fuzz target runs.
const FUZZ_SECONDS: u32 = 15;

/// Runs everything; the error names what failed.
pub(crate) fn run() -> Result<(), String> {
    let mut failed = Vec::new();
    step("formatting", &mut failed, || cargo(&["fmt", "--all", "--check", "--", "-l"], &[]));
    step("clippy", &mut failed, || {
        cargo(
            &["clippy", "--workspace", "--all-targets", "--keep-going", "--quiet", "--", "-D", "warnings"],
            &[],
        )
    });
    step("tidy", &mut failed, tidy::run);
    step("documentation", &mut failed, || {
        cargo(
            &["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        )
    });
    step("licences and sources", &mut failed, deny::run);
    step("fuzzing", &mut failed, fuzz);
    step("loom", &mut failed, loom);
    step("HTTP cache tests", &mut failed, conformance::as_check);
    // The scenarios wait more than they work, so more of them than cores run at a time.
    eprintln!("==> tests");
    if let Err(message) = cargo(&["test", "--workspace", "--no-fail-fast"], &[("RUST_TEST_THREADS", "6")]) {
        eprintln!("{message}");
        failed.push("tests");
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// The line for a key under loom: every order in which threads may take its locks. Some ten seconds, and as long to build.
pub(crate) fn loom() -> Result<(), String> {
    cargo(&["test", "-p", "millstream-cache", "--features", "loom", "--test", "loom", "--quiet"], &[])
}

fn step(name: &'static str, failed: &mut Vec<&'static str>, check: impl FnOnce() -> Result<(), String>) {
    eprintln!("==> {name}");
    let began = Instant::now();
    match check() {
        Ok(()) => eprintln!("    {name}: passed in {:.0} s", began.elapsed().as_secs_f32()),
        Err(message) => {
            eprintln!("{message}\n    {name}: FAILED after {:.0} s", began.elapsed().as_secs_f32());
            failed.push(name);
        }
    }
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
pub(crate) fn fuzz() -> Result<(), String> {
    let folder = tree::root().join("fuzz");
    if !folder.join("Cargo.toml").exists() {
        eprintln!("    SKIPPED: there is no fuzz/Cargo.toml");
        return Ok(());
    }
    if !is_there(&mut nightly(&["--version"])) {
        eprintln!("    SKIPPED: no nightly toolchain; rustup toolchain install nightly --profile minimal");
        return Ok(());
    }
    if !is_there(&mut nightly(&["fuzz", "--version"])) && !install_cargo_fuzz() {
        eprintln!("    SKIPPED: cargo-fuzz cannot be installed here; cargo install cargo-fuzz");
        return Ok(());
    }
    let list = nightly(&["fuzz", "list"]).output().map_err(|error| error.to_string())?;
    let built = nightly(&["fuzz", "build"]).output().map_err(|error| error.to_string())?;
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
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

fn start_fuzzing(target: &str) -> Result<Child, String> {
    let seconds = format!("-max_total_time={FUZZ_SECONDS}");
    // What a run finds interesting is kept for the next one, but not in the sources.
    let corpus = millstream_tests::target_directory().join("fuzz-corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    nightly(&["fuzz", "run", target, &corpus.to_string_lossy(), "--", &seconds, "-verbosity=0"])
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
    let mut install = nightly(&["install", "--locked", "--quiet", "cargo-fuzz", "--root"]);
    install.arg(folder()).status().is_ok_and(|status| status.success())
        && is_there(&mut nightly(&["fuzz", "--version"]))
}
