//! `sub_filter`: texts in an answer that others take the place of.
//!
//! Next: `millstream-server`'s `filter/sub_filter`, which finds them.

use std::sync::Arc;

use super::context::HTTP_SERVER_LOCATION;
use super::gzip::media_types;
use super::level::settings;
use super::phases::Phases;
use super::templates::record;
use super::{Apply, Level, MANY, Row, often, once};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

record! {
    pub struct Substitution {
        /// Matched in any case.
        pub from: Template,
        pub to: Template,
    }
}

settings! {
    pub struct SubFilter, SubFilterLevel(place, reading) {
        list: Vec<Substitution> => Arc<[Substitution]> = Vec::new(),
        once: bool = true,
        last_modified: bool = false,
        /// In addition to `text/html`, in lower case.
        types: Vec<String> = Vec::new(),
        any_type: bool = false,
    }
    phases |made| Phases::FILTERS.only_if(!made.list.is_empty())
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("sub_filter", HTTP_SERVER_LOCATION, (2, 2), "text replacement", "",
        "Replaces a string in the bodies of responses. Both strings may contain variables. Case is ignored. If several match at the same position, \
        the first is used. Such a response has no length and does not support ranges. Responses with a Content-Encoding and partial responses (206) are not \
        processed. These directives are inherited only if the current level has none.",
        Apply::Level(sub_filter)),
    once("sub_filter_once", HTTP_SERVER_LOCATION, (1, 1), "on | off", "on",
        "Replaces only the first occurrence of each string.",
        Apply::Level(|l, d, r| l.sub_filter.once = r.flag(&d.args[0]))),
    once("sub_filter_last_modified", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Keeps Last-Modified, and the ETag as a weak one. If off, both are removed.",
        Apply::Level(|l, d, r| l.sub_filter.last_modified = r.flag(&d.args[0]))),
    often("sub_filter_types", HTTP_SERVER_LOCATION, (1, MANY), "type …", "text/html",
        "Sets the media types in which strings are replaced, in addition to `text/html`; `*` means all.",
        Apply::Level(|l, d, r| {
            let (list, any) = (l.sub_filter.types.get_or_insert_default(), l.sub_filter.any_type.get_or_insert_default());
            media_types((list, any), d, r);
        })),
];

/// Texts of one level: each is compared at every place of a body.
const MOST: usize = 255;

fn sub_filter(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let [from, to] = &directive.args[..] else { return };
    let list = level.sub_filter.list.get_or_insert_default();
    if from.text.is_empty() {
        reading.error(from.span, "empty search pattern").help("write the string to replace");
    } else if list.len() == MOST {
        reading
            .error(directive.span, format!("number of search patterns exceeds {MOST}"))
            .help("put some of them into another location");
    } else {
        list.push(Substitution { from: reading.template(from), to: reading.template(to) });
    }
}
