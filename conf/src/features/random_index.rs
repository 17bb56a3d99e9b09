//! `random_index`: a directory is answered with one of its files by chance.
//!
//! Next: `millstream-server`'s `content/random_index`, which chooses.

use super::context::LOCATION;
use super::level::settings;
use super::{Apply, Row, once};

settings! {
    pub struct RandomIndex, RandomIndexLevel(place, reading) {
        enabled: bool = false,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("random_index", LOCATION, (1, 1), "on | off", "off",
        "Responds to requests for a directory with one of its files, selected at random, before `index` is processed. Names that begin with a dot are \
        omitted. An empty directory is handled as if this directive were not set.",
        Apply::Level(|l, d, r| l.random_index.enabled = r.flag(&d.args[0]))),
];
