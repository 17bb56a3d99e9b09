//! The flags of `cargo xtask bench`, and their text for `--help`.

use crate::cases;

/// What to measure and for how long.
pub struct Options {
    /// Seconds of each run of `wrk`.
    pub duration: u32,
    /// How often each server is measured on each case; the median counts.
    pub rounds: usize,
    /// Keep-alive connections of `wrk`, where the case does not say otherwise.
    pub connections: u32,
    /// Names of cases; empty means all.
    pub only: Vec<String>,
    /// Only Millstream and the floor: for a quick look while tuning.
    pub skip_peers: bool,
    /// Whether Millstream itself is measured (`--no-millstream` tries the bench on the peers alone).
    pub millstream: bool,
    /// The memory of idle connections instead of the cases.
    pub idle: bool,
    /// `memory` or `eviction`: the cache as a store instead of the cases.
    pub storage: Option<&'static str>,
    /// Where to write the results as JSON.
    pub json: Option<String>,
    /// Where to write the results as Markdown.
    pub markdown: Option<String>,
}

impl Options {
    /// Reads the arguments after `bench`; an error is a line for the user, `--help` included.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options {
            duration: 5,
            rounds: 3,
            connections: 200,
            only: Vec::new(),
            skip_peers: false,
            millstream: true,
            idle: false,
            storage: None,
            json: None,
            markdown: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "idle" => options.idle = true,
                "memory" => options.storage = Some("memory"),
                "eviction" => options.storage = Some("eviction"),
                "--duration" => options.duration = number(&value()?)?.max(1),
                "--rounds" => options.rounds = number(&value()?)?.max(1) as usize,
                "--connections" => options.connections = number(&value()?)?.max(2),
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--skip-peers" => options.skip_peers = true,
                "--no-millstream" => options.millstream = false,
                "--json" => options.json = Some(value()?),
                "--markdown" => options.markdown = Some(value()?),
                _ => return Err(format!("unknown argument {argument}\n{}", usage())),
            }
        }
        if let Some(name) = options.only.iter().find(|name| cases::named(name).is_none()) {
            return Err(format!("no case is called {name}\n{}", usage()));
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.trim_end_matches('s').parse().map_err(|_| format!("{text} is not a number"))
}

fn usage() -> String {
    let mut text = "cargo xtask bench [--duration SECONDS] [--rounds N] [--connections N] [--only CASE,…] [--skip-peers] \
                    [--no-millstream] [--json FILE] [--markdown FILE]\ncargo xtask bench idle | memory | eviction\ncases:"
        .to_owned();
    for case in cases::ALL {
        text.push_str(&format!("\n  {:<12} {}", case.name, case.about));
    }
    text
}
