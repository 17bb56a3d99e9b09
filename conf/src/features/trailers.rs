//! `add_trailer`: fields behind the body of a chunked answer.
//!
//! Next: `millstream-server`'s `filter/trailers`, which writes them.

use std::sync::Arc;

use super::context::UP_TO_IF;
use super::headers::{AddHeader, added};
use super::level::settings;
use super::phases::Phases;
use super::{Apply, Row, often};

settings! {
    /// What follows the body of a location's answers.
    pub struct Trailers, TrailersLevel(place, reading) {
        /// `add_trailer`s in force.
        add: Vec<AddHeader> => Arc<[AddHeader]> = Vec::new(),
    }
    phases |made| Phases::FILTERS.only_if(!made.add.is_empty())
}

/// The rows of this feature.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("add_trailer", UP_TO_IF, (2, 3), "name value [always]", "",
        "Adds a field behind the body, where its value is not empty then, on the statuses of `add_header`, with `always` on every \
        status. Such an answer is chunked; HTTP/1.0 clients and parts of an answer (206) get none. A level that writes one has \
        none of the level above.",
        Apply::Level(|l, d, r| {
            let written = added(d, r);
            l.trailers.add.get_or_insert_default().extend(written);
        })),
];
