//! Directives for compression.
//!
//! Next: `millstream-server`'s `filter`, which compresses; a cached answer is compressed once and kept.

use super::{Apply, HTTP_SERVER_LOCATION, MANY, Row, idle, often, once};
use crate::inherit::Level;
use crate::model::{GzipHttpVersion, GzipProxied};
use crate::reading::Reading;
use crate::tree::Directive;

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "gzip",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether answers are compressed for clients that accept gzip. A cached answer is compressed once and the result kept.",
        Apply::Level(|l, d, r| l.gzip = r.flag(&d.args[0])),
    ),
    once(
        "gzip_comp_level",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "level",
        "1",
        "How hard to compress, 1 to 9.",
        Apply::Level(|l, d, r| l.gzip_comp_level = r.number(&d.args[0], 1, 9).map(|level| level as u32)),
    ),
    once(
        "gzip_min_length",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "length",
        "20",
        "Answers whose Content-Length is smaller stay as they are.",
        Apply::Level(|l, d, r| l.gzip_min_length = r.size(&d.args[0])),
    ),
    often(
        "gzip_types",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "type …",
        "text/html",
        "The media types that are compressed beside `text/html`; `*` is any.",
        Apply::Level(gzip_types),
    ),
    once(
        "gzip_vary",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether `Vary: Accept-Encoding` is added where an answer could be compressed.",
        Apply::Level(|l, d, r| l.gzip_vary = r.flag(&d.args[0])),
    ),
    often(
        "gzip_proxied",
        HTTP_SERVER_LOCATION,
        (1, MANY),
        "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | any …",
        "off",
        "Which answers are compressed for requests that came through another proxy (those with a Via field).",
        Apply::Level(gzip_proxied),
    ),
    once(
        "gzip_http_version",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "1.0 | 1.1",
        "1.1",
        "The lowest HTTP version of a request whose answer is compressed.",
        Apply::Level(|l, d, r| {
            const CHOICES: [GzipHttpVersion; 2] = [GzipHttpVersion::Http10, GzipHttpVersion::Http11];
            l.gzip_http_version = r.one_of(&d.args[0], &["1.0", "1.1"]).map(|index| CHOICES[index]);
        }),
    ),
    idle(
        "gzip_buffers",
        HTTP_SERVER_LOCATION,
        (2, 2),
        "number size",
        "Buffers for compressed output.",
        "compressed output is kept whole where it is cached and streamed in bounded pieces where not",
    ),
    idle(
        "gzip_window",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "The window of the compressor.",
        "the compressor's own window of 32k is used",
    ),
    idle(
        "gzip_hash",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "Memory of the compressor.",
        "the compressor's own choice is used",
    ),
];

fn gzip_types(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let list = level.gzip_types.get_or_insert_default();
    for word in &directive.args {
        let media_type = word.text.to_ascii_lowercase();
        if media_type == "*" {
            list.any = true;
        } else if media_type == "text/html" || list.types.contains(&media_type) {
            reading
                .diagnostics
                .warning(word.span, format!("duplicate MIME type \"{media_type}\""))
                .help("remove it; text/html is always compressed");
        } else {
            list.types.push(media_type);
        }
    }
}

fn gzip_proxied(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    const WORDS: [&str; 9] =
        ["off", "expired", "no-cache", "no-store", "private", "no_last_modified", "no_etag", "auth", "any"];
    let mut proxied = level.gzip_proxied.unwrap_or_default();
    let mut off = false;
    for word in &directive.args {
        match reading.one_of(word, &WORDS) {
            Some(0) => off = true,
            Some(1) => proxied.expired = true,
            Some(2) => proxied.no_cache = true,
            Some(3) => proxied.no_store = true,
            Some(4) => proxied.private = true,
            Some(5) => proxied.no_last_modified = true,
            Some(6) => proxied.no_etag = true,
            Some(7) => proxied.auth = true,
            Some(_) => proxied.any = true,
            None => {}
        }
    }
    // `off` wins over every other word.
    level.gzip_proxied = Some(if off { GzipProxied::default() } else { proxied });
}
