//! `add_before_body`, `add_after_body`: what other paths answer stands before and behind an answer.
//!
//! Next: `millstream-server`'s `filter/addition`.

use super::context::HTTP_SERVER_LOCATION;
use super::gzip::media_types;
use super::level::settings;
use super::phases::Phases;
use super::{Apply, MANY, Row, often, once};

settings! {
    pub struct Addition, AdditionLevel(place, reading) {
        /// Empty = nothing is added.
        before: Box<str> = "".into(),
        /// Empty = nothing is added.
        after: Box<str> = "".into(),
        /// In addition to `text/html`, in lower case.
        types: Vec<String> = Vec::new(),
        any_type: bool = false,
    }
    phases |made| Phases::FILTERS.only_if(made.is_there())
}

impl Addition {
    pub fn is_there(&self) -> bool {
        !(self.before.is_empty() && self.after.is_empty())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("add_before_body", HTTP_SERVER_LOCATION, (1, 1), "uri", "",
        "Adds the response to a subrequest before the body of a 200 response. The parameter is a path of the same server; an empty one disables this. \
        Such a response has no length and does not support ranges, and its ETag is weak. A cached response does not contain the addition.",
        Apply::Level(|l, d, _| l.addition.before = Some(d.args[0].text.as_str().into()))),
    once("add_after_body", HTTP_SERVER_LOCATION, (1, 1), "uri", "",
        "Adds the response to a subrequest after the body, like `add_before_body`.",
        Apply::Level(|l, d, _| l.addition.after = Some(d.args[0].text.as_str().into()))),
    often("addition_types", HTTP_SERVER_LOCATION, (1, MANY), "type …", "text/html",
        "Sets the media types of responses to which text is added, in addition to `text/html`; `*` means all.",
        Apply::Level(|l, d, r| {
            let (list, any) = (l.addition.types.get_or_insert_default(), l.addition.any_type.get_or_insert_default());
            media_types((list, any), d, r);
        })),
];
