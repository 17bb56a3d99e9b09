//! Directives of ranges and conditional requests.
//!
//! Next: `millstream-server`'s `answer`, where parts are cut and conditions compared (RFC 9110 §13 and §14).

use super::{Apply, HTTP_SERVER_LOCATION, Row, once};
use crate::model::IfModifiedSince;

/// The rows of this family.
pub const ROWS: &[Row] = &[
    once(
        "max_ranges",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "number",
        "",
        "How many ranges one request may name; with more it gets the whole answer, with 0 no request gets a part.",
        Apply::Level(|l, d, r| {
            l.max_ranges = r.number(&d.args[0], 0, u64::from(u32::MAX)).map(|number| number as u32);
        }),
    ),
    once(
        "proxy_force_ranges",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "off",
        "Whether ranges of upstream answers are served whatever their Accept-Ranges says.",
        Apply::Level(|l, d, r| l.proxy_force_ranges = r.flag(&d.args[0])),
    ),
    once(
        "slice",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "size",
        "0",
        "Large answers are asked for and cached in pieces of this size; 0 = whole. The key must contain `$slice_range`, the upstream \
         be asked with `proxy_set_header Range $slice_range`, and `proxy_cache_valid` name 206 where answers say no lifetime \
         themselves.",
        Apply::Level(|l, d, r| l.slice = r.size(&d.args[0]).map(|size| (size, d.span))),
    ),
    once(
        "etag",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "on | off",
        "on",
        "Whether files get an ETag.",
        Apply::Level(|l, d, r| l.etag = r.flag(&d.args[0])),
    ),
    once(
        "if_modified_since",
        HTTP_SERVER_LOCATION,
        (1, 1),
        "off | exact | before",
        "exact",
        "How If-Modified-Since is compared with the time of last modification: not at all, the same moment, or that moment or a \
         later one.",
        Apply::Level(|l, d, r| {
            const CHOICES: [IfModifiedSince; 3] =
                [IfModifiedSince::Off, IfModifiedSince::Exact, IfModifiedSince::Before];
            l.if_modified_since =
                r.one_of(&d.args[0], &["off", "exact", "before"]).map(|index| CHOICES[index]);
        }),
    ),
];
