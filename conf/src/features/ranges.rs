//! Directives of ranges and conditional requests.
//!
//! Next: `millstream-server`'s `content`, where parts are cut and conditions compared (RFC 9110 §13 and §14).

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, Row, once};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfModifiedSince {
    Off,
    /// Equal.
    #[default]
    Exact,
    /// Not later than the request's.
    Before,
}

without_templates!(IfModifiedSince);

settings! {
    pub struct Ranges, RangesLevel(place, reading) {
        /// Requests with more ranges get the whole response; `None` = no limit by the user, 0 = no ranges.
        max: Option<u32> = None,
        etag: bool = true,
        if_modified_since: IfModifiedSince = IfModifiedSince::Exact,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("max_ranges", HTTP_SERVER_LOCATION, (1, 1), "number", "",
        "The maximum number of ranges in a request; if there are more, the whole response is sent. 0 disables ranges.",
        Apply::Level(|l, d, r| {
            l.ranges.max = r.number(&d.args[0], 0, u64::from(u32::MAX)).map(|number| Some(number as u32));
        })),
    once("etag", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Adds an ETag to responses that are served from files.",
        Apply::Level(|l, d, r| l.ranges.etag = r.flag(&d.args[0]))),
    once("if_modified_since", HTTP_SERVER_LOCATION, (1, 1), "off | exact | before", "exact",
        "Sets how If-Modified-Since is compared with the time of modification. `off`: not at all. `exact`: the times must be equal. `before`: the \
        time of modification must not be later.",
        Apply::Level(|l, d, r| {
            use IfModifiedSince::{Before, Exact, Off};
            l.ranges.if_modified_since = r.choice(&d.args[0], &[("off", Off), ("exact", Exact), ("before", Before)]);
        })),
];
