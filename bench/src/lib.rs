//! The side-by-side benchmark: Millstream, nginx, HAProxy and Varnish on the same work, in one run, on one machine.
//!
//! A number from here is only worth something beside its peers of the same run: rounds are interleaved, so that a noisy
//! minute hits all alike, and every answer is checked before it is measured. CPU per request comes from `/proc` of every
//! process of a server; `wrk` and the origin are not in it. Read `cases` for what is measured, `peers` for how each server
//! is set up, `rounds` for the measuring itself. `cargo xtask bench` is the door.

pub mod epoll;
pub mod canned;
pub mod storage;
mod wrk;
mod source;
mod product;
mod cases;
mod options;
mod peers;
mod beside;
mod h2load;
mod http2;
mod grpc;
mod handshakes;
pub mod training;
mod rounds;
mod report;
mod idle;
mod stampede;
mod refresh;
mod purge;
mod warm;
mod index;
mod generator;
mod embedded;
mod ours;
mod ceiling;
mod stall;
mod attack;
mod streams;
mod soak;
mod wordpress;
mod watched;
pub mod verdict;

use std::path::PathBuf;
use std::process::Command;

pub use options::{Options, Work};

/// Runs `cargo xtask bench ARGUMENTS`; an error is a line for the user.
pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        println!("{}", options::usage());
        return Ok(());
    }
    let options = Options::parse(arguments)?;
    match options.work {
        Work::Memory => return storage::memory(&storage_program()?),
        Work::Eviction => return storage::eviction(&storage_program()?),
        _ => {}
    }
    if let Work::Attack | Work::Streams | Work::Soak | Work::Index | Work::Handshakes = options.work {
        let millstream = millstream(&options)?;
        let text = match options.work {
            Work::Attack => attack::run(&options, millstream.as_deref())?,
            Work::Streams => streams::run(&options, &millstream.ok_or("this is about Millstream itself")?)?,
            Work::Handshakes => {
                handshakes::run(&options, &millstream.ok_or("this is about Millstream itself")?)?
            }
            Work::Index => index::run(&options, &millstream.ok_or("this is about Millstream itself")?)?,
            _ => soak::run(&options, &millstream.ok_or("this is about Millstream itself")?)?,
        };
        return print(&options, &text);
    }
    let programs = build(&options)?;
    let markdown = match options.work {
        Work::Idle => return idle::run(&options, &programs),
        Work::Purge => return purge::run(&programs),
        Work::Stampede => stampede::run(&options, &programs)?,
        Work::Refresh => refresh::run(&options, &programs)?,
        Work::Warm => warm::run(&options, &programs)?,
        Work::FindMax => ceiling::run(&options, &programs)?,
        Work::Stall => stall::run(&options, &programs)?,
        Work::WordPress => wordpress::run(&options, &programs)?,
        Work::Watched => watched::run(&options, &programs)?,
        Work::Grpc => grpc::run(&options, &programs)?,
        Work::Http2 => http2::run(&options, &programs)?,
        Work::Generator => generator::run(&options, &programs)?,
        Work::Verdict => return verdict::run(&options, &programs),
        _ => {
            let results = rounds::run(&options, &programs)?;
            if let Some(path) = &options.json {
                write(path, &report::json(&options, &results))?;
            }
            report::markdown(&options, &results)
        }
    };
    print(&options, &markdown)
}

fn print(options: &Options, markdown: &str) -> Result<(), String> {
    println!("{markdown}");
    match &options.markdown {
        Some(path) => write(path, markdown),
        None => Ok(()),
    }
}

fn write(path: &str, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}

struct Programs {
    millstream: Option<PathBuf>,
    /// From `--nginx`, or on the path.
    nginx: Option<PathBuf>,
    origin: PathBuf,
    floor: PathBuf,
    purge: PathBuf,
    verdict: PathBuf,
}

/// Builds with the `release` profile; returns the folder with the programs.
pub fn build_to_measure(arguments: &[&str]) -> Result<PathBuf, String> {
    let target = millstream_tests::target_directory();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--quiet"]).args(arguments);
    cargo.env("CARGO_TARGET_DIR", &target).current_dir(millstream_tests::workspace());
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(target.join("release")) } else { Err("the build failed".to_owned()) }
}

fn storage_program() -> Result<PathBuf, String> {
    Ok(build_to_measure(&["-p", "millstream-bench", "--bin", "storage"])?.join("storage"))
}

/// Where `cargo xtask dist` puts its result.
pub fn trained_binary() -> PathBuf {
    millstream_tests::target_directory().join("trained/millstream")
}

/// An existing Millstream: that of `MILLSTREAM_BINARY` or of `--trained`.
fn ready(options: &Options) -> Result<Option<PathBuf>, String> {
    if let Some(named) = std::env::var_os("MILLSTREAM_BINARY") {
        return Ok(Some(named.into()));
    }
    let trained = trained_binary();
    match options.trained {
        true if trained.is_file() => Ok(Some(trained)),
        true => Err(format!("{} is not there: cargo xtask dist", trained.display())),
        false => Ok(None),
    }
}

/// An existing Millstream or a new build; `None` with `--no-millstream`.
fn millstream(options: &Options) -> Result<Option<PathBuf>, String> {
    if !options.millstream {
        return Ok(None);
    }
    if let Some(ready) = ready(options)? {
        return Ok(Some(ready));
    }
    Ok(Some(build_to_measure(&["-p", "millstream"])?.join("millstream")))
}

/// Builds all programs of a comparison; Millstream only if none exists.
fn build(options: &Options) -> Result<Programs, String> {
    let ready = ready(options)?;
    let mut arguments = vec!["-p", "millstream-bench", "--bins"];
    if ready.is_none() && options.millstream {
        arguments.extend(["-p", "millstream"]);
    }
    let folder = build_to_measure(&arguments)?;
    let millstream = options.millstream.then(|| ready.unwrap_or_else(|| folder.join("millstream")));
    let program = |name| folder.join(name);
    Ok(Programs {
        millstream,
        nginx: options.nginx.clone().or_else(|| product::find("nginx")),
        origin: program("origin"),
        floor: program("floor"),
        purge: program("purge"),
        verdict: program("verdict"),
    })
}
