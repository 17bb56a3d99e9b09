//! Compression with Zstandard (RFC 8878).
//!
//! Names and defaults are those of zstd-nginx-module. Next: `gzip`, whose conditions this one shares; `millstream-server`'s `filter/coding`.

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::gzip::{Precoded, media_types, precoded};
use super::level::settings;
use super::{Apply, MANY, Row, idle, often, once};

settings! {
    pub struct Zstd, ZstdLevel(place, reading) {
        enabled: bool = false,
        precoded: Precoded = Precoded::Off,
        level: u32 = 1,
        /// In bytes; compared with Content-Length only.
        min_length: u64 = 20,
        /// In addition to `text/html`, in lower case.
        types: Vec<String> = Vec::new(),
        any_type: bool = false,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("zstd", UP_TO_IF, (1, 1), "on | off", "off",
        "Compresses responses for clients that accept zstd. If a client accepts several codings equally, br is preferred to \
         zstd and zstd to gzip. A cached response is compressed once, and the result is stored.",
        Apply::Level(|l, d, r| l.zstd.enabled = r.flag(&d.args[0]))),
    once("zstd_static", HTTP_SERVER_LOCATION, (1, 1), "on | off | always", "off",
        "Sends the file with the additional suffix `.zst`, if it exists, instead of the requested file: with `on`, to clients that accept zstd; with \
        `always`, to all clients.",
        Apply::Level(|l, d, r| l.zstd.precoded = precoded(&d.args[0], r))),
    once("zstd_comp_level", HTTP_SERVER_LOCATION, (1, 1), "level", "1",
        "The compression level, 1 to 22.",
        Apply::Level(|l, d, r| l.zstd.level = r.number(&d.args[0], 1, 22).map(|level| level as u32))),
    once("zstd_min_length", HTTP_SERVER_LOCATION, (1, 1), "length", "20",
        "The minimum Content-Length of a response that is compressed.",
        Apply::Level(|l, d, r| l.zstd.min_length = r.size(&d.args[0]))),
    often("zstd_types", HTTP_SERVER_LOCATION, (1, MANY), "type …", "text/html",
        "Media types to compress in addition to `text/html`; `*` means all.",
        Apply::Level(|l, d, r| {
            let (list, any) = (l.zstd.types.get_or_insert_default(), l.zstd.any_type.get_or_insert_default());
            media_types((list, any), d, r);
        })),
    idle("zstd_buffers", HTTP_SERVER_LOCATION, (2, 2), "number size",
        "Buffers for compressed output.",
        "compressed output is stored whole in the cache, and otherwise streamed in blocks of limited size"),
];
