//! `gunzip`: whether who takes no gzip gets a plain answer where there is only a coded one.
//!
//! Next: `millstream-server`'s `filter/gunzip`, which decodes.

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::phases::Phases;
use super::{Apply, Row, idle, once};

settings! {
    pub struct Gunzip, GunzipLevel(place, reading) {
        enabled: bool = false,
    }
    phases |made| Phases::FILTERS.only_if(made.enabled)
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("gunzip", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Decompresses gzip responses for clients that do not accept gzip. Such a response has no length and does not support ranges.",
        Apply::Level(|l, d, r| l.gunzip.enabled = r.flag(&d.args[0]))),
    idle("gunzip_buffers", HTTP_SERVER_LOCATION, (2, 2), "number size",
        "Buffers for decompressed output.",
        "decompressed output is sent in blocks of limited size"),
];
