//! `autoindex`: whether a directory without an index is shown, and how.
//!
//! Next: `millstream-server`'s `content/autoindex`, which lists it.

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, Row, once};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoindexFormat {
    Html,
    Xml,
    Json,
    Jsonp,
}

without_templates!(AutoindexFormat);

settings! {
    pub struct Autoindex, AutoindexLevel(place, reading) {
        enabled: bool = false,
        format: AutoindexFormat = AutoindexFormat::Html,
        exact_size: bool = true,
        localtime: bool = false,
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("autoindex", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Lists the files of a directory without an `index` file. Names that begin with a dot are omitted. At most 100,000 files are listed; if there \
        are more, this is logged.",
        Apply::Level(|l, d, r| l.autoindex.enabled = r.flag(&d.args[0]))),
    once("autoindex_format", HTTP_SERVER_LOCATION, (1, 1), "html | xml | json | jsonp", "html",
        "Sets the format of the list. With `jsonp`, the query argument `callback` is the name of the function.",
        Apply::Level(|l, d, r| {
            use AutoindexFormat::{Html, Json, Jsonp, Xml};
            l.autoindex.format =
                r.choice(&d.args[0], &[("html", Html), ("xml", Xml), ("json", Json), ("jsonp", Jsonp)]);
        })),
    once("autoindex_exact_size", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Shows exact sizes in HTML lists; otherwise, sizes are rounded and shown with K, M or G.",
        Apply::Level(|l, d, r| l.autoindex.exact_size = r.flag(&d.args[0]))),
    once("autoindex_localtime", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Shows times in HTML lists in the local time zone instead of UTC.",
        Apply::Level(|l, d, r| l.autoindex.localtime = r.flag(&d.args[0]))),
];
