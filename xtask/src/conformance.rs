//! `cargo xtask conformance`: the outside judges. Their tests are foreign and stay outside the tree; what passed once
//! must always pass, so the scores in `tests/conformance` only rise.
//!
//! The HTTP cache tests (cache-tests.fyi) judge the cache: the npm package in `target/`, or a clone of github.com/http-tests/cache-tests.
//! Each run has its own origin and its own server with `fair.conf`; a test must pass in every run. Next: `run`, which plays; `score`, which
//! compares; `suite` for nginx's own tests, `configurations` for foreign configurations, `contexts` for where directives are allowed.

mod install;
mod run;
mod score;
mod blockers;
mod suite;
mod configurations;
mod contexts;

use crate::tools::Ended;
use millstream_tests::workspace;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Instant;

const USAGE: &str = "cargo xtask conformance [OPTIONS]                      the HTTP cache tests
cargo xtask conformance --nginx-tests DIR [FILE.t…]      nginx's own tests; DIR: a clone of github.com/nginx/nginx-tests
cargo xtask conformance --configurations DIR [NAME…]     configurations of others; DIR: a folder for each
cargo xtask conformance --contexts                       every directive may stand where it may in nginx, and nowhere else

  --repository DIR  a clone of github.com/http-tests/cache-tests with its dependencies (npm install);
                    without it the npm package http-cache-tests is installed into target/
  --runs N          runs, at the same time; a test counts where it passes in all (default 3)
  --accept          writes the score that was reached into tests/conformance/score.json

  --nginx-tests:
  --jobs N          files at the same time (default: one for each core, at least 2)
  --update          raises the score that is kept in tests/conformance/nginx-tests.tsv

  --configurations:
  --probe           asks those that load, beside nginx, and compares the answers
  --update          keeps in tests/conformance/configurations.tsv which ones load now";

struct Options {
    repository: Option<PathBuf>,
    runs: usize,
    accept: bool,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [judge, rest @ ..] if judge == "--nginx-tests" => suite::run(&suite_of(rest)?),
        [judge, rest @ ..] if judge == "--configurations" => configurations::run(&configurations_of(rest)?),
        [judge] if judge == "--contexts" => contexts(),
        _ => judge(&read(arguments)?),
    }
}

/// Checks that every directive is allowed where nginx allows it.
pub(crate) fn contexts() -> Result<(), String> {
    contexts::check(&text_of(contexts::FACTS)?)
}

fn suite_of(arguments: &[String]) -> Result<suite::SuiteOptions, String> {
    let (clone, rest) = arguments.split_first().ok_or(USAGE)?;
    let jobs = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let mut options =
        suite::SuiteOptions { clone: PathBuf::from(clone), only: Vec::new(), jobs, update: false };
    let mut rest = rest.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--jobs" => options.jobs = number(rest.next(), 1..=64)?,
            "--update" => options.update = true,
            name if !name.starts_with('-') => options.only.push(name.to_owned()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn configurations_of(arguments: &[String]) -> Result<configurations::ConfigurationOptions, String> {
    let (folder, rest) = arguments.split_first().ok_or(USAGE)?;
    let mut options = configurations::ConfigurationOptions {
        folder: PathBuf::from(folder),
        only: Vec::new(),
        update: false,
        probe: false,
    };
    for argument in rest {
        match argument.as_str() {
            "--probe" => options.probe = true,
            "--update" => options.update = true,
            name if !name.starts_with('-') => options.only.push(name.to_owned()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn number(text: Option<&String>, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.and_then(|text| text.parse().ok()).filter(|number| range.contains(number));
    number.ok_or_else(|| USAGE.to_owned())
}

/// One run with the npm package; skipped with a message without node.
pub(crate) fn as_check() -> Result<Ended, String> {
    if let Err(missing) = install::tools() {
        return Ok(Ended::Skipped(missing));
    }
    judge(&Options { repository: None, runs: 1, accept: false }).map(|()| Ended::Passed)
}

fn read(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options { repository: None, runs: 3, accept: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--repository" => options.repository = Some(PathBuf::from(rest.next().ok_or(USAGE)?)),
            "--runs" => options.runs = number(rest.next(), 1..=20)?,
            "--accept" => options.accept = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn judge(options: &Options) -> Result<(), String> {
    install::tools()?;
    let (judge, tests) = match &options.repository {
        Some(folder) => ("repository", install::clone(folder)?),
        None => ("npm", install::package()?),
    };
    // Built before the clock runs.
    millstream_tests::server::binary();
    let kept = folder().join("score.json");
    let score = played(judge, &tests, options.runs)?;
    match score::compare(&kept, judge, &score, options.accept) {
        // The tests live on seconds: on a machine that has none to spare, what failed once is asked once more.
        Err(lost) if options.runs == 1 && !options.accept => {
            println!("{lost}\nonce more:");
            score::compare(&kept, judge, &played(judge, &tests, 1)?, false)
        }
        verdict => verdict,
    }
}

fn played(judge: &str, tests: &Path, runs: usize) -> Result<score::Score, String> {
    let began = Instant::now();
    let results = run::all(tests, runs)?;
    let told = run::told(tests, &results)?;
    let score = score::Score::of(&told);
    println!("{score}");
    for failed in told.iter().filter(|test| test.counts() && !test.passed()) {
        println!("  {failed}");
    }
    println!("{judge}: {runs} run(s) in {:.0} s", began.elapsed().as_secs_f32());
    Ok(score)
}

fn folder() -> PathBuf {
    workspace().join("tests/conformance")
}

fn text_of(name: &str) -> Result<String, String> {
    let path = folder().join(name);
    std::fs::read_to_string(&path).map_err(|error| told_of(&path, &error))
}

fn told_of(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
