//! `status_zone`: under which name requests are counted.
//!
//! A request counts twice: in its server's zone and in its location's. Without the directive both have names of their own, made of
//! the server's name and the location's path. Handed from location to location, not from the server.
//! Next: `millstream-telemetry`'s `metrics`.

use super::context::SERVER_LOCATION;
use super::templates::without_templates;
use super::{Apply, Feature, Level, Place, Row, once};
use crate::reading::Reading;
use crate::template;
use crate::tree::Directive;
use std::sync::Arc;

/// Where the requests of a server or location are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StatusZone {
    #[default]
    Unnamed,
    Off,
    Named(Arc<str>),
}

without_templates!(StatusZone);

#[derive(Debug, Clone, Default)]
pub struct StatusZoneLevel(Option<StatusZone>);

impl StatusZoneLevel {
    pub fn off() -> Self {
        StatusZoneLevel(Some(StatusZone::Off))
    }

    /// A server's zone, which its locations do not inherit.
    pub fn take(&mut self) -> StatusZone {
        self.0.take().unwrap_or_default()
    }
}

impl Feature for StatusZoneLevel {
    type Settings = StatusZone;

    fn inherit(&mut self, above: &Self) {
        if self.0.is_none() {
            self.0.clone_from(&above.0);
        }
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> StatusZone {
        self.0.clone().unwrap_or_default()
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("status_zone", SERVER_LOCATION, (1, 1), "name | off", "",
        "Sets the name under which requests are counted: on the `server` level those of the server, in a location those of the location and of inner \
        locations without a name. Requests with the same name are counted together. The default is the first name of the server; for a location, the \
        server and the path.",
        Apply::Level(status_zone)),
];

fn status_zone(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" {
        level.status_zone.0 = Some(StatusZone::Off);
    } else if template::is_literal(&word.text) {
        level.status_zone.0 = Some(StatusZone::Named(word.text.as_str().into()));
    } else {
        reading.without_variables(word, "a status_zone");
    }
}
