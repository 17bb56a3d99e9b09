//! `status_zone`: under which name requests are counted.
//!
//! Handed from location to location, not from the server, which counts those of no location of its own. Next:
//! `millstream-telemetry`'s `metrics`.

use super::context::SERVER_LOCATION;
use super::{Apply, Feature, Level, Place, Row, once};
use crate::reading::Reading;
use crate::template;
use crate::tree::Directive;

/// What one level says of it: an index, or that it is `off`.
#[derive(Debug, Clone, Default)]
pub struct StatusZoneLevel(Option<Option<u32>>);

impl StatusZoneLevel {
    /// That of a server, which its locations do not inherit.
    pub fn take(&mut self) -> Option<u32> {
        self.0.take().flatten()
    }
}

impl Feature for StatusZoneLevel {
    type Settings = Option<u32>;

    fn inherit(&mut self, above: &Self) {
        self.0 = self.0.or(above.0);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<u32> {
        self.0.flatten()
    }
}

/// The rows of this feature.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("status_zone", SERVER_LOCATION, (1, 1), "name | off", "",
        "Counts the requests under this name. Nested locations count where their outer one does, unless they say `off`.",
        Apply::Level(status_zone)),
];

fn status_zone(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" {
        level.status_zone.0 = Some(None);
    } else if template::is_literal(&word.text) {
        level.status_zone.0 = Some(Some(reading.declared.status_zone(&word.text)));
    } else {
        reading.without_variables(word, "a status_zone");
    }
}
