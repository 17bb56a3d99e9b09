//! Compression: which answers, and how. Whether one client takes it is not decided here.
//!
//! Next: `millstream-server`'s `filter/gzip`, which compresses; a cached answer is compressed once and kept.

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, Level, MANY, Row, idle, often, once};
use crate::reading::{Reading, Switch};
use crate::regular_expression::Regex;
use crate::tree::{Directive, Word};

/// The lowest HTTP version of a request whose response is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GzipHttpVersion {
    Http10,
    Http11,
}

/// Which responses to requests with `Via` are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GzipProxied {
    pub any: bool,
    pub expired: bool,
    pub no_cache: bool,
    pub no_store: bool,
    pub private: bool,
    pub no_last_modified: bool,
    pub no_etag: bool,
    pub auth: bool,
}

/// `gzip_static` and the like: whether precompressed files are served instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precoded {
    Off,
    /// For clients that accept the coding.
    On,
    Always,
}

without_templates!(GzipHttpVersion, GzipProxied, Precoded);

settings! {
    pub struct Gzip, GzipLevel(place, reading) {
        enabled: bool = false,
        precoded: Precoded = Precoded::Off,
        /// 1–9.
        level: u32 = 1,
        /// In bytes; compared with Content-Length only.
        min_length: u64 = 20,
        /// In addition to `text/html`, in lower case.
        types: Vec<String> = Vec::new(),
        any_type: bool = false,
        vary: bool = false,
        proxied: GzipProxied = GzipProxied::default(),
        http_version: GzipHttpVersion = GzipHttpVersion::Http11,
        /// User-Agents that get no gzip.
        disable: Vec<Regex> = Vec::new(),
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("gzip", UP_TO_IF, (1, 1), "on | off", "off",
        "Compresses responses for clients that accept gzip. A cached response is compressed once, and the result is stored.",
        Apply::Level(|l, d, r| l.gzip.enabled = r.flag(&d.args[0]))),
    once("gzip_static", HTTP_SERVER_LOCATION, (1, 1), "on | off | always", "off",
        "Sends the file with the additional suffix `.gz`, if it exists, instead of the requested file: with `on`, to clients that accept gzip; with \
        `always`, to all clients.",
        Apply::Level(|l, d, r| l.gzip.precoded = precoded(&d.args[0], r))),
    once("gzip_comp_level", HTTP_SERVER_LOCATION, (1, 1), "level", "1",
        "The compression level, 1 to 9.",
        Apply::Level(|l, d, r| l.gzip.level = r.number(&d.args[0], 1, 9).map(|level| level as u32))),
    once("gzip_min_length", HTTP_SERVER_LOCATION, (1, 1), "length", "20",
        "The minimum Content-Length of a response that is compressed.",
        Apply::Level(|l, d, r| l.gzip.min_length = r.size(&d.args[0]))),
    often("gzip_types", HTTP_SERVER_LOCATION, (1, MANY), "type …", "text/html",
        "Media types to compress in addition to `text/html`; `*` means all.",
        Apply::Level(|l, d, r| {
            let (list, any) = (l.gzip.types.get_or_insert_default(), l.gzip.any_type.get_or_insert_default());
            media_types((list, any), d, r);
        })),
    once("gzip_vary", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Adds `Vary: Accept-Encoding` to responses that can be compressed, in any format.",
        Apply::Level(|l, d, r| l.gzip.vary = r.flag(&d.args[0]))),
    often("gzip_proxied", HTTP_SERVER_LOCATION, (1, MANY),
        "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any …", "off",
        "Compresses responses to requests that came through another proxy (with a Via field) in these cases.",
        Apply::Level(gzip_proxied)),
    once("gzip_http_version", HTTP_SERVER_LOCATION, (1, 1), "1.0 | 1.1", "1.1",
        "The minimum HTTP version of a request for its response to be compressed.",
        Apply::Level(|l, d, r| {
            use GzipHttpVersion::{Http10, Http11};
            l.gzip.http_version = r.choice(&d.args[0], &[("1.0", Http10), ("1.1", Http11)]);
        })),
    often("gzip_disable", HTTP_SERVER_LOCATION, (1, MANY), "regex …", "",
        "Disables gzip for clients whose User-Agent matches one of the case-insensitive regular expressions. `msie6` stands for Internet Explorer 4 \
        to 6.",
        Apply::Level(gzip_disable)),
    idle("gzip_buffers", HTTP_SERVER_LOCATION, (2, 2), "number size",
        "Buffers for compressed output.",
        "compressed output is stored whole in the cache, and otherwise streamed in blocks of limited size"),
    idle("gzip_window", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The window size of the compressor.",
        "the compressor's default of 32k is used"),
    idle("gzip_hash", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The memory of the compressor.",
        "the compressor's default is used"),
];

/// In addition to `text/html`, and whether any type is compressed.
pub(super) fn media_types(
    (list, any): (&mut Vec<String>, &mut bool),
    directive: &Directive,
    reading: &mut Reading<'_>,
) {
    for word in &directive.args {
        let media_type = word.text.to_ascii_lowercase();
        if media_type == "*" {
            *any = true;
        } else if media_type == "text/html" || list.contains(&media_type) {
            reading
                .diagnostics
                .warning(word.span, format!("duplicate MIME type \"{media_type}\""))
                .help("remove it; text/html is among them in any case");
        } else {
            list.push(media_type);
        }
    }
}

pub(super) fn precoded(word: &Word, reading: &mut Reading<'_>) -> Option<Precoded> {
    use Precoded::{Always, Off, On};
    reading.choice(word, &[("off", Off), ("on", On), ("always", Always)])
}

/// nginx's `msie6`: Internet Explorer 4 to 6, except 6 with the security of Windows XP SP2.
const MSIE6: &str = r"MSIE (?:[45]\.|6\.(?!.*SV1))";

fn gzip_disable(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let list = level.gzip.disable.get_or_insert_default();
    for word in &directive.args {
        let source = if &*word.text == "msie6" { MSIE6 } else { &word.text };
        list.extend(reading.regex(word, source, true));
    }
}

fn gzip_proxied(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const WORDS: [(&str, Switch<GzipProxied>); 9] = [
        ("off", |_| {}),
        ("expired", |proxied| proxied.expired = true),
        ("no-cache", |proxied| proxied.no_cache = true),
        ("no-store", |proxied| proxied.no_store = true),
        ("private", |proxied| proxied.private = true),
        ("no_last_modified", |proxied| proxied.no_last_modified = true),
        ("no_etag", |proxied| proxied.no_etag = true),
        ("auth", |proxied| proxied.auth = true),
        ("any", |proxied| proxied.any = true),
    ];
    let mut proxied = level.gzip.proxied.unwrap_or_default();
    for word in &directive.args {
        reading.choice(word, &WORDS).into_iter().for_each(|switch_on| switch_on(&mut proxied));
    }
    // `off` wins over every other word.
    let off = directive.args.iter().any(|word| word.text.eq_ignore_ascii_case("off"));
    level.gzip.proxied = Some(if off { GzipProxied::default() } else { proxied });
}
