//! The flags of `cargo xtask bench`, and their text for `--help`.

use std::path::PathBuf;

use crate::cases;

/// Clients of `stampede`: each is a loopback port and two open files.
const MOST_CLIENTS: u32 = 20_000;

/// Files of `warm`: each takes a disk block and an inode.
const MOST_FILES: u32 = 4_000_000;
/// Names of `index`: each takes 40 bytes of the disk.
const MOST_NAMES: u32 = 50_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Cases,
    Idle,
    Memory,
    Eviction,
    Stampede,
    Refresh,
    Purge,
    Warm,
    Index,
    Verdict,
    Generator,
    FindMax,
    Stall,
    Attack,
    Streams,
    Soak,
    WordPress,
    Watched,
    Http2,
    Grpc,
    Handshakes,
}

pub struct Options {
    /// Seconds of each run of `wrk`.
    pub duration: u32,
    /// Measurements of each server in each case; the median counts.
    pub rounds: usize,
    /// Keep-alive connections of `wrk`, unless the case has its own number.
    pub connections: u32,
    /// Empty: all.
    pub only: Vec<String>,
    /// Only Millstream and the floor: a quick look while tuning.
    pub skip_peers: bool,
    /// `--no-millstream` tries the bench on the peers alone.
    pub millstream: bool,
    /// Whether to use the binary of `cargo xtask dist`, which must exist.
    pub trained: bool,
    pub work: Work,
    pub clients: usize,
    pub files: u32,
    pub runs: u32,
    pub minutes: u32,
    pub nginx: Option<PathBuf>,
    pub json: Option<String>,
    pub markdown: Option<String>,
}

impl Options {
    /// Reads the arguments after `bench`; an error is a line for the user.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options {
            duration: 5,
            rounds: 3,
            connections: 200,
            only: Vec::new(),
            skip_peers: false,
            millstream: true,
            trained: false,
            work: Work::Cases,
            clients: 2000,
            files: 1_000_000,
            runs: 10,
            minutes: 20,
            nginx: None,
            json: None,
            markdown: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "idle" => options.work = Work::Idle,
                "memory" => options.work = Work::Memory,
                "eviction" => options.work = Work::Eviction,
                "stampede" => options.work = Work::Stampede,
                "refresh" => options.work = Work::Refresh,
                // It measures the cache alone.
                "purge" => (options.work, options.millstream) = (Work::Purge, false),
                "warm" => options.work = Work::Warm,
                "index" => (options.work, options.files) = (Work::Index, 10_000_000),
                "verdict" => options.work = Work::Verdict,
                "find-max" => options.work = Work::FindMax,
                "stall" => options.work = Work::Stall,
                "attack" => options.work = Work::Attack,
                "streams" => (options.work, options.clients) = (Work::Streams, 1_000),
                "soak" => options.work = Work::Soak,
                "wordpress" => options.work = Work::WordPress,
                "watched" => options.work = Work::Watched,
                "http2" => options.work = Work::Http2,
                "grpc" => options.work = Work::Grpc,
                "handshakes" => options.work = Work::Handshakes,
                "--minutes" => options.minutes = number(&value()?)?.clamp(1, 24 * 60),
                "generator" => options.work = Work::Generator,
                "--runs" => options.runs = number(&value()?)?.clamp(1, 1000),
                "--files" => {
                    let most = if options.work == Work::Index { MOST_NAMES } else { MOST_FILES };
                    options.files = number(&value()?)?.clamp(1, most);
                }
                "--clients" => options.clients = number(&value()?)?.clamp(1, MOST_CLIENTS) as usize,
                "--duration" => options.duration = number(&value()?)?.max(1),
                "--rounds" => options.rounds = number(&value()?)?.max(1) as usize,
                "--connections" => options.connections = number(&value()?)?.max(2),
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--skip-peers" => options.skip_peers = true,
                "--no-millstream" => options.millstream = false,
                "--trained" => options.trained = true,
                "--nginx" => options.nginx = Some(value()?.into()),
                "--json" => options.json = Some(value()?),
                "--markdown" => options.markdown = Some(value()?),
                _ => return Err(format!("unknown argument {argument}\n{}", usage())),
            }
        }
        let unknown = options.only.iter().find(|name| cases::named(name).is_none());
        if let Some(name) = unknown.filter(|_| options.work != Work::Attack) {
            return Err(format!("no case is called {name}\n{}", usage()));
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.trim_end_matches('s').parse().map_err(|_| format!("{text} is not a number"))
}

pub(crate) fn usage() -> String {
    let mut text = "cargo xtask bench [--duration SECONDS] [--rounds N] [--connections N] [--only CASE,…] [--skip-peers] \
                    [--no-millstream] [--trained] [--nginx PATH] [--json FILE] [--markdown FILE]\ncargo xtask bench idle | memory | eviction\n\
                    cargo xtask bench stampede [--clients N] [--rounds N] [--skip-peers] [--no-millstream] [--markdown FILE]\n\
                    cargo xtask bench refresh [--rounds N] [--skip-peers] [--no-millstream] [--markdown FILE]\n\
                    cargo xtask bench purge\n\
                    cargo xtask bench warm [--files N] [--rounds N] [--markdown FILE]\n\
                    cargo xtask bench index [--files N] [--markdown FILE]\n\
                    cargo xtask bench verdict [--runs N]\n\
                    cargo xtask bench find-max | stall [--rounds N] [--markdown FILE]\n\
                    cargo xtask bench attack [--only ATTACK,…] [--skip-peers] [--no-millstream] [--markdown FILE]\n\
                    cargo xtask bench streams [--clients N] [--markdown FILE]\n\
                    cargo xtask bench soak [--minutes N] [--markdown FILE]\n\
                    cargo xtask bench wordpress [--duration SECONDS] [--rounds N] [--nginx PATH] [--markdown FILE]\n\
                    cargo xtask bench watched [--trained] [--duration SECONDS] [--rounds N] [--nginx PATH] [--markdown FILE]\n\
                    cargo xtask bench http2 | grpc | handshakes [--trained] [--duration SECONDS] [--rounds N] [--nginx PATH] [--markdown FILE]\n\
                    cargo xtask bench generator [--duration SECONDS] [--rounds N] [--connections N] [--markdown FILE]\ncases:"
        .to_owned();
    for case in cases::ALL {
        text.push_str(&format!("\n  {:<12} {}", case.name, case.about));
    }
    text
}
