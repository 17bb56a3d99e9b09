//! The steps of the ladder: a table, lowest first, of what each adds to the one before.
//!
//! Plain data; nothing is started or measured here. A step is a set of [`Fact`]s, of which `peer` makes the complete text that runs,
//! and that `--print` shows.

pub mod running;
#[cfg(test)]
mod tests;

use serde::Deserialize as _;
use serde::de::value::{Error, StrDeserializer};
use std::path::Path;

/// The table: step, its name on the command line and in JSON, its title, what its proxy has, the condition on which a configuration has
/// what is new in it, and what that is.
macro_rules! steps {
    ($($(#[$about:meta])* $step:ident, $name:literal, $title:literal, [$($fact:ident),*], $news:literal, $what:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub enum Step {
            $($(#[$about])* #[serde(rename = $name)] $step,)*
        }

        impl Step {
            pub const ALL: [Step; 11] = [$(Step::$step),*];
        }

        static STEPS: [Entry; 11] =
            [$(Entry { name: $name, title: $title, what: $what, facts: &[$(Fact::$fact),*], news: $news }),*];
    };
}

steps! {
    Alone, "alone", "the API alone", [], "",
        "Nothing is in front of the API: the baseline for all comparisons.";
    Proxied, "proxied", "proxied, no keep-alive", [Gzip, Logged], "",
        "A proxy that opens a connection to the API for every request, as nginx did by default before 1.29.7.";
    KeepAlive, "keepalive", "keep-alive", [KeepAlive, Gzip, Logged], "keepalive",
        "Connections to the API are kept open and reused.";
    Quiet, "quiet", "compression, log off", [KeepAlive], "!gzip !logged !buffered",
        "No access log, no compression.";
    Microcache, "microcache", "microcache 1 s", [KeepAlive, Cache, Micro], "cache",
        "A response that may be shared, or that has no caching headers, is stored for a second.";
    Lock, "lock", "lock, stale while updating", [KeepAlive, Cache, Micro, Lock], "lock",
        "One request fetches a new response; meanwhile, the others get the old one, or wait for the new one.";
    Headers, "headers", "as the API's headers allow", [KeepAlive, Cache, Lock], "cache !micro",
        "Responses are stored for as long as the API's own Cache-Control or Expires allows.";
    Memory, "memory", "in memory", [KeepAlive, Cache, Lock, Memory], "memory",
        "The cache is in memory instead of files.";
    Log, "log", "buffered access log", [KeepAlive, Cache, Lock, Memory, Buffered], "buffered",
        "The access log is on again, written in pieces of 256 KiB.";
    Tls, "tls", "over TLS", [KeepAlive, Cache, Lock, Memory, Buffered, Tls], "tls",
        "Clients connect over TLS and keep their connections open.";
    Http2, "http2", "over HTTP/2", [KeepAlive, Cache, Lock, Memory, Buffered, Tls, Http2], "http2",
        "Clients connect over TLS and HTTP/2: the same number of concurrent requests, several on each connection.";
}

/// What lines of a proxy's configuration depend on. Templates and tables have these words in lower case, see [`crate::peer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fact {
    KeepAlive,
    /// Answers are compressed for who asks for it.
    Gzip,
    Logged,
    /// Each request is logged, in pieces of 256 KiB that are ten seconds old at the most.
    Buffered,
    Cache,
    Memory,
    /// One request fetches for all, and the old answer is given meanwhile.
    Lock,
    /// An answer that says nothing about it is stored for a second all the same.
    Micro,
    Tls,
    Http2,
    /// Set: a time for which answers are stored that say nothing about it.
    Kept,
    /// Set: the microcache puts the API's own word aside.
    Aside,
    Secure,
    Nginx,
}

/// Whether all words of a condition hold: `cache !memory` where the one is among the facts and the other is not.
pub fn holds(condition: &str, facts: &[Fact]) -> bool {
    let is_there = |word: &str| fact(word).is_some_and(|fact| facts.contains(&fact));
    condition.split_whitespace().all(|word| match word.strip_prefix('!') {
        Some(word) => !is_there(word),
        None => is_there(word),
    })
}

fn fact(word: &str) -> Option<Fact> {
    Fact::deserialize(StrDeserializer::<Error>::new(word)).ok()
}

/// What the text of a step depends on besides the step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepSetting<'a> {
    pub port: u16,
    /// The API: `host:port`.
    pub origin: &'a str,
    /// How TLS is spoken to it; `None`: it is not.
    pub secure: Option<SecureOrigin<'a>>,
    /// For how long an answer is kept that says nothing about it, in the steps that go by the API's headers too; `None`:
    /// there the API's word alone counts. In nginx's notation.
    pub fallback: Option<&'a str>,
    /// Whether the microcache's steps put the API's own word aside: for an API that is known to allow its answers to be
    /// shared for longer than [`MICRO`], which would hide what a second brings.
    pub puts_aside: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct SecureOrigin<'a> {
    /// The name that its certificate has, or the address.
    pub name: &'a str,
    /// What it gets as `Host`.
    pub host: &'a str,
    /// The file of the authorities that it is judged by.
    pub authorities: &'a Path,
}

/// How long the microcache keeps what says nothing about it.
pub const MICRO: &str = "1s";

#[derive(Debug)]
pub struct Entry {
    pub name: &'static str,
    pub title: &'static str,
    pub what: &'static str,
    pub facts: &'static [Fact],
    /// The condition on which a configuration has what is new in it, see [`holds`].
    pub news: &'static str,
}

impl Step {
    pub fn entry(self) -> &'static Entry {
        &STEPS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.entry().name
    }

    pub fn has(self, fact: Fact) -> bool {
        self.entry().facts.contains(&fact)
    }

    /// Whether it adds to what is served and is no attempt at speed (a log, TLS, HTTP/2): a loss is then its price.
    pub fn is_service(self) -> bool {
        matches!(self, Step::Log | Step::Tls | Step::Http2)
    }
}

/// Reads what `--steps` names: names separated by commas, `FROM-TO` for a stretch, in any order. Errors: a name that is
/// none, with those there are.
pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut chosen = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (find(from)?, find(to)?);
        if from > to {
            return Err(format!("\"{part}\": {} comes after {}", from.name(), to.name()));
        }
        chosen.extend(Step::ALL.into_iter().filter(|step| (from..=to).contains(step)));
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// The step of a name or of a number, 1 for the first. Errors: a name that is none, with those there are.
pub fn find(name: &str) -> Result<Step, String> {
    let name = name.trim();
    let by_number = || Step::ALL.get(name.parse::<usize>().ok()?.checked_sub(1)?).copied();
    let found = Step::ALL.into_iter().find(|step| step.name() == name).or_else(by_number);
    found.ok_or_else(|| {
        let names = Step::ALL.map(Step::name).join(", ");
        format!("unknown step \"{name}\"; the steps are {names}")
    })
}

/// Seconds of a time in nginx's notation: `90`, `1s`, `5m`, `1h30m`.
pub fn seconds(time: &str) -> Option<u64> {
    millstream_conf::value::duration(time).ok().map(|time| time.as_secs())
}
