//! `add_trailer`: fields behind the body of a chunked answer.
//!
//! Next: `millstream-server`'s `filter/trailers`, which writes them.

use std::sync::Arc;

use super::context::UP_TO_IF;
use super::headers::{AddHeader, AddedLevel};
use super::phases::Phases;
use super::templates::record;
use super::{Apply, Feature, Place, Row, often, once};
use crate::reading::Reading;

record! {
    pub struct Trailers {
        pub add: Arc<[AddHeader]>,
    }
}

#[derive(Debug, Clone, Default)]
pub struct TrailersLevel {
    add: AddedLevel,
}

impl Feature for TrailersLevel {
    type Settings = Trailers;

    fn inherit(&mut self, above: &Self) {
        self.add.inherit(&above.add);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Trailers {
        Trailers { add: self.add.in_force() }
    }

    fn phases(made: &Trailers) -> Phases {
        Phases::FILTERS.only_if(!made.add.is_empty())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("add_trailer", UP_TO_IF, (2, 3), "name value [always]", "",
        "Adds a field after the body if its value is not empty by then, for the statuses of `add_header`; with `always`, for any status. Such a \
        response is chunked. HTTP/1.0 clients and partial responses (206) get no trailer fields. These directives are inherited only if the current \
        level has none, unless `add_trailer_inherit` is set.",
        Apply::Level(|l, d, r| l.trailers.add.add(d, r))),
    once("add_trailer_inherit", UP_TO_IF, (1, 1), "off | on | merge", "on",
        "Sets how `add_trailer` directives are inherited from the previous level, as `add_header_inherit` does for `add_header`.",
        Apply::Level(|l, d, r| l.trailers.add.set_inheritance(d, r))),
];
