//! Who can stand in front of the API, and how each is told to do a step: program, arguments, and a text by a template.
//!
//! Pure: nothing is started here. A step that somebody cannot do is said in a sentence, never imitated. A template (`peer/*.in`) has the
//! lines of a configuration, each behind the condition on which it stands there ([`holds`]). Paths are relative to the directory that a
//! party is started in. Next: `ladder::stand` starts what a [`Launch`] says.

#[cfg(test)]
mod tests;

use crate::step::{Fact, MICRO, SecureOrigin, Step, StepSetting, holds, seconds};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    Millstream,
    /// nginx, on the same file but for a few words.
    Nginx,
    Haproxy,
    Varnish,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub file: &'static str,
    pub text: String,
    pub arguments: Vec<String>,
    /// Where it counts the requests that it passed on; `None`: every request is, for nothing is stored.
    pub reached: Option<Reached>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// A line of this file for each.
    Lines(&'static str),
    /// HAProxy's statistics on this socket.
    HaproxySocket(&'static str),
    /// `varnishstat` on this directory.
    Varnishstat(&'static str),
}

struct PartyRow {
    name: &'static str,
    title: &'static str,
    file: &'static str,
    template: &'static str,
    arguments: &'static str,
    reached: Reached,
    /// What it cannot, by the condition that holds of it: the end of a sentence that begins with its name.
    cannot: &'static [(&'static str, &'static str)],
    /// What is not quite the same as in the step's text, a sentence.
    notes: &'static [(&'static str, &'static str)],
}

/// A certificate in the directory; for whoever wants both in one file, it holds the key as well.
pub const CERTIFICATE: &str = "certificate.pem";
pub const KEY: &str = "key.pem";

const LOG: &str = "reached.log";
const SOCKET: &str = "haproxy.sock";

const MILLSTREAM: PartyRow = PartyRow {
    name: "millstream",
    title: "Millstream",
    file: "nginx.conf",
    template: include_str!("peer/nginx.conf.in"),
    // nginx takes paths from where it was built to live, so it is told another place: its working directory, which its
    // workers need not be able to find from the root.
    arguments: "-c nginx.conf -p ./",
    reached: Reached::Lines(LOG),
    cannot: &[],
    notes: &[],
};

/// In the order of [`Party`].
static PARTIES: [PartyRow; 4] = [
    MILLSTREAM,
    PartyRow { name: "nginx", title: "nginx", ..MILLSTREAM },
    PartyRow {
        name: "haproxy",
        title: "HAProxy",
        file: "haproxy.cfg",
        template: include_str!("peer/haproxy.cfg.in"),
        arguments: "-db -f haproxy.cfg",
        reached: Reached::HaproxySocket(SOCKET),
        cannot: &[
            ("micro lock", "has neither a lock nor stale responses in its cache"),
            ("buffered !tls", "writes no log file: its lines go to syslog"),
        ],
        notes: &[
            ("logged", "HAProxy writes no log file, so it does less work."),
            ("buffered", "HAProxy writes no log file, so it does less work."),
            ("cache !memory", "HAProxy's cache is in memory in every step."),
        ],
    },
    PartyRow {
        name: "varnish",
        title: "Varnish",
        file: "api.vcl",
        template: include_str!("peer/varnish.vcl.in"),
        // It looks for relative names elsewhere. Its jail would change users again and again, and with that lose the signal that
        // tells it of this program's end; and it would keep it out of a directory that is closed to others.
        arguments: "-j none -F -a 127.0.0.1:<port> -T none -s malloc,256m -p http_gzip_support=<gzip> -f <directory>/api.vcl \
                    -n <directory>/varnish",
        reached: Reached::Varnishstat("varnish"),
        cannot: &[
            ("secure", "does not support TLS to the API"),
            ("tls", "does not support TLS itself"),
            ("buffered", "writes no log file itself: its log is in memory, for varnishncsa to read"),
        ],
        notes: &[
            ("!cache", "Varnish passes every request; its log is always on, in memory."),
            ("!memory", "Varnish's cache is in memory in every step."),
        ],
    },
];

impl Party {
    pub const ALL: [Party; 4] = [Party::Millstream, Party::Nginx, Party::Haproxy, Party::Varnish];

    fn row(self) -> &'static PartyRow {
        &PARTIES[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The file of its program in `PATH`, or where systems put servers that users have no business with; [`Party::Millstream`] is
    /// whoever asks, and not looked for.
    pub fn program(self, path: Option<&OsStr>) -> Option<PathBuf> {
        let name = if self == Party::Varnish { "varnishd" } else { self.name() };
        let servers = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/nginx/sbin"].map(PathBuf::from);
        let folders = path.into_iter().flat_map(std::env::split_paths).chain(servers);
        folders.map(|folder| folder.join(name)).find(|file| file.is_file())
    }

    /// What is not quite the same as in a step's text when it does the step, if anything, one sentence. `is_secure`: the API
    /// speaks TLS. Errors: why it cannot do the step, as the end of a sentence that begins with its name.
    pub fn can(self, step: Step, is_secure: bool) -> Result<Option<&'static str>, &'static str> {
        let secure = is_secure.then_some(Fact::Secure);
        let facts: Vec<Fact> = step.entry().facts.iter().copied().chain(secure).collect();
        let first = |rows: &[(&str, &'static str)]| {
            rows.iter().find(|(condition, _)| holds(condition, &facts)).map(|(_, words)| *words)
        };
        match first(self.row().cannot) {
            _ if step == Step::Alone => Err("is not part of it"),
            Some(why) => Err(why),
            None => Ok(first(self.row().notes)),
        }
    }
}

/// Reads what `--against` names: parties separated by commas. Errors: a name that is none, with those there are.
pub fn parse(text: &str) -> Result<Vec<Party>, String> {
    let mut parties = Vec::new();
    for name in text.split(',').map(str::trim) {
        let found = Party::ALL.into_iter().skip(1).find(|party| party.name() == name);
        let party = found.ok_or_else(|| {
            format!("\"{name}\" is not a known peer; the peers are nginx, haproxy, varnish")
        })?;
        if !parties.contains(&party) {
            parties.push(party);
        }
    }
    Ok(parties)
}

/// How to start a party on a step in `directory`. Errors: see [`Party::can`].
pub fn launch(
    party: Party,
    step: Step,
    setting: &StepSetting<'_>,
    directory: &Path,
) -> Result<Launch, &'static str> {
    party.can(step, setting.secure.is_some())?;
    let (row, entry) = (party.row(), step.entry());
    let time = if step.has(Fact::Micro) { Some(MICRO) } else { setting.fallback };
    let time = time.filter(|_| step.has(Fact::Cache));
    let set = [
        (Fact::Kept, time.is_some()),
        (Fact::Aside, step.has(Fact::Micro) && setting.puts_aside),
        (Fact::Secure, setting.secure.is_some()),
        (Fact::Nginx, party == Party::Nginx),
    ];
    let set = set.into_iter().filter_map(|(fact, is_set)| is_set.then_some(fact));
    let facts: Vec<Fact> = entry.facts.iter().copied().chain(set).collect();
    // An IPv6 address stands in brackets, so the last colon is the port's.
    let (host, origin_port) = setting.origin.rsplit_once(':').unwrap_or((setting.origin, "80"));
    let secure = setting.secure.unwrap_or(SecureOrigin { name: "", host: "", authorities: Path::new("") });
    let values = [
        ("<api-name>", secure.name),
        ("<api-host>", secure.host),
        ("<authorities>", &secure.authorities.to_string_lossy()),
        ("<name>", entry.name),
        ("<title>", entry.title),
        ("<what>", entry.what),
        ("<port>", &setting.port.to_string()),
        ("<certificate>", CERTIFICATE),
        ("<key>", KEY),
        ("<reached>", LOG),
        ("<socket>", SOCKET),
        ("<gzip>", if step.has(Fact::Gzip) { "on" } else { "off" }),
        ("<time>", time.unwrap_or_default()),
        ("<seconds>", &time.and_then(seconds).unwrap_or_default().to_string()),
        ("<host>", host.trim_start_matches('[').trim_end_matches(']')),
        ("<origin-port>", origin_port),
        ("<origin>", setting.origin),
        ("<directory>", &directory.to_string_lossy()),
    ];
    let filled =
        |text: &str| values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    let lines = row.template.lines().filter_map(|line| line.split_once('|'));
    let lines = lines.filter(|(condition, _)| holds(condition, &facts));
    Ok(Launch {
        file: row.file,
        text: lines.map(|(_, line)| filled(line) + "\n").collect(),
        arguments: row.arguments.split_whitespace().map(filled).collect(),
        reached: step.has(Fact::Cache).then_some(row.reached),
    })
}
