//! Compression with Brotli (RFC 7932).
//!
//! Names and defaults are those of ngx_brotli. Next: `gzip`, whose conditions this one shares; `millstream-server`'s `filter/coding`.

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::gzip::{Precoded, media_types, precoded};
use super::level::settings;
use super::{Apply, Level, MANY, Row, idle, often, once};
use crate::reading::Reading;
use crate::tree::Directive;

settings! {
    pub struct Brotli, BrotliLevel(place, reading) {
        enabled: bool = false,
        precoded: Precoded = Precoded::Off,
        level: u32 = 6,
        /// In bytes; compared with Content-Length only.
        min_length: u64 = 20,
        /// In addition to `text/html`, in lower case.
        types: Vec<String> = Vec::new(),
        any_type: bool = false,
        /// As a power of two, default 19 (512k).
        window: u32 = 19,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("brotli", UP_TO_IF, (1, 1), "on | off", "off",
        "Compresses responses for clients that accept br. If a client accepts several codings equally, br is preferred to \
         zstd and zstd to gzip. A cached response is compressed once, and the result is stored.",
        Apply::Level(|l, d, r| l.brotli.enabled = r.flag(&d.args[0]))),
    once("brotli_static", HTTP_SERVER_LOCATION, (1, 1), "on | off | always", "off",
        "Sends the file with the additional suffix `.br`, if it exists, instead of the requested file: with `on`, to clients that accept br; with \
        `always`, to all clients.",
        Apply::Level(|l, d, r| l.brotli.precoded = precoded(&d.args[0], r))),
    once("brotli_comp_level", HTTP_SERVER_LOCATION, (1, 1), "level", "6",
        "The compression level, 0 to 11.",
        Apply::Level(|l, d, r| l.brotli.level = r.number(&d.args[0], 0, 11).map(|level| level as u32))),
    once("brotli_min_length", HTTP_SERVER_LOCATION, (1, 1), "length", "20",
        "The minimum Content-Length of a response that is compressed.",
        Apply::Level(|l, d, r| l.brotli.min_length = r.size(&d.args[0]))),
    often("brotli_types", HTTP_SERVER_LOCATION, (1, MANY), "type …", "text/html",
        "Media types to compress in addition to `text/html`; `*` means all.",
        Apply::Level(|l, d, r| {
            let (list, any) = (l.brotli.types.get_or_insert_default(), l.brotli.any_type.get_or_insert_default());
            media_types((list, any), d, r);
        })),
    once("brotli_window", HTTP_SERVER_LOCATION, (1, 1), "size", "512k",
        "The window of the compressor: a power of two from 1k to 16m. Clients need the same amount of memory. An encoder uses at most 64 MiB; if a \
        high level would use more, the window is smaller.",
        Apply::Level(window)),
    idle("brotli_buffers", HTTP_SERVER_LOCATION, (2, 2), "number size",
        "Buffers for compressed output.",
        "compressed output is stored whole in the cache, and otherwise streamed in blocks of limited size"),
];

fn window(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let Some(size) = reading.size(word) else { return };
    if size.is_power_of_two() && (1 << 10..=1 << 24).contains(&size) {
        level.brotli.window = Some(size.trailing_zeros());
    } else {
        reading
            .error(word.span, format!("invalid window \"{}\"", word.text))
            .help("write a power of two from 1k to 16m, as 512k");
    }
}
