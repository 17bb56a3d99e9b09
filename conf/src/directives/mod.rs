//! The table of directives: one row each, one file per family.
//!
//! A row says where a directive may stand, how many words it takes, what it means and how it is applied; the checks,
//! the suggestions and the manual all come from here. Next: the families; `block`, which checks a block against the
//! table.

pub mod log;
pub mod main;
pub mod events;
pub mod upstream;
pub mod listen;
pub mod location;
pub mod client;
pub mod headers;
pub mod gzip;
pub mod proxy_pass;
pub mod failures;
pub mod proxy;
pub mod ranges;
pub mod store;
pub mod cache_zone;
pub mod proxy_cache;
pub mod sharing;
pub mod purge;
pub mod api;
pub mod forwarded;
pub mod tls_ciphers;
pub mod tls;

use crate::inherit::Level;
use crate::model::{Main, Upstream};
use crate::reading::Reading;
use crate::tree::Directive;

use listen::ServerDraft;

/// A block that directives stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Context {
    /// The file itself.
    Main = 1,
    /// `events`.
    Events = 2,
    /// `http`.
    Http = 4,
    /// `server` in `http`.
    Server = 8,
    /// `location`.
    Location = 16,
    /// `upstream`.
    Upstream = 32,
}

/// A set of contexts, as the sum of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contexts(pub u8);

/// Only the file itself.
pub const MAIN: Contexts = Contexts(Context::Main as u8);
/// Only `events`.
pub const EVENTS: Contexts = Contexts(Context::Events as u8);
/// Only `http`.
pub const HTTP: Contexts = Contexts(Context::Http as u8);
/// Only `server`.
pub const SERVER: Contexts = Contexts(Context::Server as u8);
/// Only `location`.
pub const LOCATION: Contexts = Contexts(Context::Location as u8);
/// Only `upstream`.
pub const UPSTREAM: Contexts = Contexts(Context::Upstream as u8);
/// `http` and `server`.
pub const HTTP_SERVER: Contexts = Contexts(HTTP.0 | SERVER.0);
/// `server` and `location`.
pub const SERVER_LOCATION: Contexts = Contexts(SERVER.0 | LOCATION.0);
/// `http`, `server` and `location`.
pub const HTTP_SERVER_LOCATION: Contexts = Contexts(HTTP.0 | SERVER.0 | LOCATION.0);

impl Contexts {
    /// Whether a context is among them.
    pub const fn has(self, context: Context) -> bool {
        self.0 & context as u8 != 0
    }

    /// Their names, in order from the outermost.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Context, &str); 6] = [
            (Context::Main, "main"),
            (Context::Events, "events"),
            (Context::Http, "http"),
            (Context::Server, "server"),
            (Context::Location, "location"),
            (Context::Upstream, "upstream"),
        ];
        NAMES.into_iter().filter(move |(context, _)| self.has(*context)).map(|(_, name)| name)
    }
}

/// How many words a directive takes after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// At least.
    pub least: usize,
    /// At most; [`MANY`] = no bound.
    pub most: usize,
}

/// No bound on the number of words.
pub const MANY: usize = usize::MAX;

/// Whether a directive may stand twice in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Repeat {
    Once,
    Often,
}

/// What a directive does.
#[derive(Debug, Clone, Copy)]
pub enum Apply {
    /// A block that `configuration` reads itself.
    Block,
    /// `include`: spliced before the table is asked.
    Spliced,
    /// Accepted, and has no effect here; the text says why, as a sentence without a full stop.
    Idle(&'static str),
    /// Sets something of the main or events context.
    Main(fn(&mut Main, &Directive, &mut Reading<'_>)),
    /// Defines something for the whole http block, before anything else of it is read.
    Define(fn(&Directive, &mut Reading<'_>)),
    /// Sets something of the server block itself.
    Server(fn(&mut ServerDraft, &Directive, &mut Reading<'_>)),
    /// Sets something that levels inherit.
    Level(fn(&mut Level, &Directive, &mut Reading<'_>)),
    /// Sets something of an upstream.
    Upstream(fn(&mut Upstream, &Directive, &mut Reading<'_>)),
}

/// One directive.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Where it may stand.
    pub contexts: Contexts,
    /// How many words it takes.
    pub words: Words,
    /// Whether it may be repeated.
    pub repeat: Repeat,
    /// Its words as the manual shows them.
    pub syntax: &'static str,
    /// What holds where it is not written, as one would write it; empty = nothing.
    pub default: &'static str,
    /// What it means, in full sentences.
    pub doc: &'static str,
    /// What it does.
    pub apply: Apply,
}

impl Row {
    /// Whether it ends with a block and not with a semicolon.
    pub fn takes_block(&self) -> bool {
        matches!(self.apply, Apply::Block) || self.name == "types"
    }
}

/// The families in the order of the manual.
pub const FAMILIES: &[(&str, &[Row])] = &[
    ("Process", main::ROWS),
    ("Events", events::ROWS),
    ("Listening and choosing a server", listen::ROWS),
    ("Locations and fixed answers", location::ROWS),
    ("Client side", client::ROWS),
    ("Fields of the answer", headers::ROWS),
    ("Proxying", proxy::ROWS),
    ("Upstream groups", upstream::ROWS),
    ("Cache zones", cache_zone::ROWS),
    ("Cache", proxy_cache::ROWS),
    ("What the cache shares", sharing::ROWS),
    ("Purging", purge::ROWS),
    ("API", api::ROWS),
    ("Proxies in front", forwarded::ROWS),
    ("Ranges and conditional requests", ranges::ROWS),
    ("Answers kept as files", store::ROWS),
    ("Compression", gzip::ROWS),
    ("Logs", log::ROWS),
    ("TLS", tls::ROWS),
];

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|(_, rows)| rows.iter())
}

/// The row of a directive in a context.
pub fn find(name: &str, context: Context) -> Option<&'static Row> {
    rows().find(|row| row.name == name && row.contexts.has(context))
}

/// Builds a row that may stand once; the words of `syntax` are shown, `least` and `most` are checked.
const fn once(
    name: &'static str,
    contexts: Contexts,
    (least, most): (usize, usize),
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
    apply: Apply,
) -> Row {
    Row { name, contexts, words: Words { least, most }, repeat: Repeat::Once, syntax, default, doc, apply }
}

/// Builds a row that may be repeated.
const fn often(
    name: &'static str,
    contexts: Contexts,
    words: (usize, usize),
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
    apply: Apply,
) -> Row {
    let row = once(name, contexts, words, syntax, default, doc, apply);
    Row { repeat: Repeat::Often, ..row }
}

/// Builds the row of a directive that is accepted and idle.
const fn idle(
    name: &'static str,
    contexts: Contexts,
    words: (usize, usize),
    syntax: &'static str,
    doc: &'static str,
    why: &'static str,
) -> Row {
    once(name, contexts, words, syntax, "", doc, Apply::Idle(why))
}

/// The same for one that may be repeated.
const fn idle_often(
    name: &'static str,
    contexts: Contexts,
    words: (usize, usize),
    syntax: &'static str,
    doc: &'static str,
    why: &'static str,
) -> Row {
    often(name, contexts, words, syntax, "", doc, Apply::Idle(why))
}
