//! `cargo xtask test`, what a stranger runs: all unit tests and scenarios, in one build. `cargo xtask check`: everything else that has to pass.
//!
//! Each check runs even if one before it failed. `measuring` is the last one: it judges times and has the machine to itself.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::tools::{Ended, cargo, folder, is_there, with_tools};
use crate::{archive, chart, conformance, deny, tidy, tree};

const FUZZ_SECONDS: u32 = 15;

/// Scenarios wait more than they work, so more of them run than there are cores.
const TEST_THREADS: &str = "6";

type Check = fn() -> Result<Ended, String>;

const CHECKS: [(&str, Check); 12] = [
    ("fmt", || cargo(&["fmt", "--all", "--check", "--", "-l"], &[]).map(passed)),
    ("clippy", || clippy().map(passed)),
    ("tidy", || tidy::run().map(passed)),
    ("contexts", || conformance::contexts().map(passed)),
    ("docs", || {
        let words = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
        cargo(&words, &[("RUSTDOCFLAGS", "-D warnings")]).map(passed)
    }),
    ("licences", deny::run),
    ("chart", chart::check),
    ("static", archive::check),
    ("fuzz", fuzz),
    ("loom", || loom().map(passed)),
    ("cache-tests", conformance::as_check),
    ("measuring", || {
        let words = ["test", "--workspace", "--no-fail-fast", "--test", "measuring"];
        cargo(&words, &[("RUST_TEST_THREADS", "1")]).map(passed)
    }),
];

pub(crate) fn test() -> Result<(), String> {
    cargo(&["test", "--workspace", "--no-fail-fast"], &[("RUST_TEST_THREADS", TEST_THREADS)])
}

pub(crate) fn check(names: &[String]) -> Result<(), String> {
    let known = CHECKS.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("there is no check {unknown:?}; the checks are {}", known.join(", ")));
    }
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("==> {name}");
        let started = Instant::now();
        let (ended, seconds) = (check(), started.elapsed().as_secs_f32());
        eprintln!("    {}", summary(name, &ended, seconds));
        failed.extend(ended.is_err().then_some(name));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// The last line of a check, below its output if it failed. A skipped check has not passed.
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

/// `--all-targets` leaves out what no plain `cargo test` runs.
fn clippy() -> Result<(), String> {
    for targets in [["--all-targets"].as_slice(), &["--test=measuring"], &LOOM] {
        let words =
            [&["clippy", "--workspace"], targets, &["--keep-going", "--quiet", "--", "-D", "warnings"]];
        cargo(&words.concat(), &[])?;
    }
    Ok(())
}

const LOOM: [&str; 2] = ["--test=loom", "--features=millstream-cache/loom"];
/// Who tries the orders, optimised: a third of the time.
const LOOM_OPTIMISED: [&str; 3] = ["loom", "generator", "millstream-cache"];

/// The line for a key under loom, in every order in which threads may take its locks. Some ninety seconds.
fn loom() -> Result<(), String> {
    let optimised = LOOM_OPTIMISED.map(|name| format!("--config=profile.dev.package.{name}.opt-level=1"));
    let optimised = optimised.each_ref().map(String::as_str);
    // The whole workspace, so that dependencies have the features that they are built with already.
    cargo(&[&["test", "--workspace", "--quiet"], LOOM.as_slice(), &optimised].concat(), &[])
}

/// A short run of every target under `fuzz/`; skipped with a message without nightly or `cargo-fuzz`.
fn fuzz() -> Result<Ended, String> {
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

/// A fuzzer prints the input and the place last.
fn tail(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Cargo of the nightly toolchain, whatever toolchain runs this program.
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
        let told = summary("fuzz", &Ok(Ended::Skipped("no nightly toolchain".to_owned())), 0.0);
        assert_eq!(told, "fuzz: SKIPPED: no nightly toolchain");
        assert_eq!(summary("tidy", &Ok(Ended::Passed), 2.4), "tidy: passed in 2 s");
        assert_eq!(summary("tidy", &Err("why".to_owned()), 2.4), "why\n    tidy: FAILED after 2 s");
    }
}
