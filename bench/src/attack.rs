//! `cargo xtask bench attack`: what one hostile client costs everybody else, beside nginx in the same run.
//!
//! Each attack is bounded in time and in number, goes to servers that are started for it, and has a bar that Millstream must
//! keep; one that is not kept fails the command. `--only tokens,posts` runs some of them. A figure of CPU or latency says
//! something of an optimised build alone: `MILLSTREAM_BINARY` names one.

mod subject;
mod tokens;
mod resets;
mod readers;
mod paces;
mod posts;
mod stalls;
mod drips;
mod heads;
mod pipe;

use std::fmt::Write;
use std::path::Path;

use crate::Options;
use crate::product::{Product, find};

use subject::Bench;

struct Finding {
    figures: String,
    holds: bool,
}

struct Attack {
    name: &'static str,
    about: &'static str,
    bar: &'static str,
    measure: fn(&Bench) -> Result<Finding, String>,
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "tokens",
        about: "requests of 28 KB whose Connection lists thousands of tokens, up to 1,000 a second",
        bar: "under 1 ms of CPU each, others' p99 under 10 ms",
        measure: tokens::measure,
    },
    Attack {
        name: "resets",
        about: "30,000 HTTP/2 streams a second over four connections, each reset at once, a hit for every two",
        bar: "others' p99 under 50 ms",
        measure: resets::measure,
    },
    Attack {
        name: "stored",
        about: "500 readers that read slowly, of answers of 1 MB each",
        bar: "memory= + 64 MiB + 64 KiB a reader",
        measure: readers::stored,
    },
    Attack {
        name: "chunked",
        about: "500 readers that read slowly, of chunked answers of 20 MB each",
        bar: "memory= + 64 MiB + 64 KiB a reader",
        measure: readers::chunked,
    },
    Attack {
        name: "large",
        about: "60 readers that read slowly, of answers of 30 MB each, with default options",
        bar: "memory= + 64 MiB + 64 KiB a reader",
        measure: readers::large,
    },
    Attack {
        name: "paces",
        about: "clients of different paces on one chunked answer of 20 MB",
        bar: "everybody gets all of it",
        measure: paces::measure,
    },
    Attack {
        name: "posts",
        about: "20 POSTs a second against a URL that is hot",
        bar: "seven tenths of the requests/s, two requests a second more at the API",
        measure: posts::measure,
    },
    Attack {
        name: "interim",
        about: "20 clients that read none of the API's interim answers, send_timeout 2s",
        bar: "no connection held after 10 s",
        measure: stalls::interim,
    },
    Attack {
        name: "stalls",
        about: "20 clients that read nothing of 50 MB, send_timeout 2s",
        bar: "no connection held after 10 s",
        measure: stalls::bodies,
    },
    Attack {
        name: "drips",
        about: "heads of a request and of an answer that come a byte every half second, timeouts of 3 s",
        bar: "ended within 5 s",
        measure: drips::measure,
    },
    Attack {
        name: "heads",
        about: "slow heads on all connections that there may be; 20 new clients, one after the other",
        bar: "half of them answered within a second",
        measure: heads::measure,
    },
    Attack {
        name: "pipe",
        about: "a log to a pipe that nobody reads",
        bar: "answers go on, connections close, QUIT ends it within 10 s",
        measure: pipe::measure,
    },
];

pub(crate) fn run(options: &Options, millstream: Option<&Path>) -> Result<String, String> {
    let unknown = options.only.iter().find(|name| !ATTACKS.iter().any(|attack| attack.name == name.as_str()));
    if let Some(name) = unknown {
        let names: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
        return Err(format!("no attack is called {name}; there are {}", names.join(", ")));
    }
    let nginx = find("nginx").filter(|_| !options.skip_peers);
    let benches: Vec<Bench> = [(Product::Nginx, nginx.as_deref()), (Product::Millstream, millstream)]
        .into_iter()
        .filter_map(|(product, binary)| Some(Bench { product, binary: binary?.to_owned() }))
        .collect();
    let mut text = "### attacks\n\n`cargo xtask bench attack`\n\n| attack | server | measured | bar | |\n| --- | --- | --- | --- | --- |\n".to_owned();
    let mut broken = Vec::new();
    let chosen =
        |attack: &&Attack| options.only.is_empty() || options.only.iter().any(|name| name == attack.name);
    for attack in ATTACKS.iter().filter(chosen) {
        for bench in &benches {
            eprintln!("{}: {} ({})", bench.product.name(), attack.about, attack.name);
            let finding = (attack.measure)(bench)
                .unwrap_or_else(|error| Finding { figures: format!("not measured: {error}"), holds: false });
            let is_ours = bench.product == Product::Millstream;
            if is_ours && !finding.holds {
                broken.push(attack.name);
            }
            let verdict = match (is_ours, finding.holds) {
                (false, _) => "",
                (true, true) => "pass",
                (true, false) => "**FAIL**",
            };
            eprintln!("    {} {verdict}", finding.figures);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {}: {} | {} | {} | {} | {verdict} |",
                attack.name,
                attack.about,
                bench.product.name(),
                finding.figures,
                attack.bar
            );
        }
    }
    if broken.is_empty() { Ok(text) } else { Err(format!("{text}\nnot kept: {}", broken.join(", "))) }
}
