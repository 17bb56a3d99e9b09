//! `error_page`: what is answered in place of a failure.
//!
//! Next: `millstream-server`'s `drive`, which goes there.

use std::sync::Arc;

use super::context::UP_TO_IF;
use super::level::level;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, MANY, Place, Row, often};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::{Directive, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPageStatus {
    Keep,
    Is(u16),
    /// `=`: the status of the page itself.
    FromPage,
}

record! {
    pub struct ErrorPage {
        /// 300–599.
        pub status: u16,
        pub answer: ErrorPageStatus,
        /// A path (internal redirect), `@name`, or a URL with scheme (redirect to the client).
        pub uri: Template,
    }
}

without_templates!(ErrorPageStatus);

level! {
    pub struct ErrorPageLevel {
        pages: Vec<ErrorPage>,
    }
}

impl Feature for ErrorPageLevel {
    type Settings = Arc<[ErrorPage]>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Arc<[ErrorPage]> {
        self.pages.clone().unwrap_or_default().into()
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("error_page", UP_TO_IF, (2, MANY), "code … [=[status]] uri", "",
        "Sets the URI, named location or URL that is shown for a status of 300 or higher. `=200` changes the status; `=` alone uses the status of the \
        page. These directives are inherited only if the current level has none.",
        Apply::Level(error_page)),
];

fn error_page(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (uri, rest) = directive.args.split_last().expect("the table asks for two words");
    let (answer, codes) = match rest.split_last() {
        Some((word, codes)) if word.text.starts_with('=') => (answer_status(word, reading), codes),
        _ => (Some(ErrorPageStatus::Keep), rest),
    };
    if codes.is_empty() {
        reading
            .error(directive.span, "error_page names no status")
            .help("write the statuses first, as in error_page 500 502 /error.html;");
    }
    let uri = reading.template(uri);
    for word in codes {
        let Some(status) = reading.number(word, 300, 599).map(|status| status as u16) else { continue };
        if status == 499 {
            reading
                .error(word.span, "invalid value \"499\"")
                .help("499 means that the client has disconnected; it cannot receive a page");
            continue;
        }
        let answer = match (answer, status) {
            // nginx's own numbers for kinds of 400 never leave the server.
            (Some(ErrorPageStatus::Keep), 494..=497) => ErrorPageStatus::Is(400),
            (Some(answer), _) => answer,
            (None, _) => continue,
        };
        level.error_pages.pages.get_or_insert_default().push(ErrorPage { status, answer, uri: uri.clone() });
    }
}

fn answer_status(word: &Word, reading: &mut Reading<'_>) -> Option<ErrorPageStatus> {
    let text = &word.text[1..];
    if text.is_empty() {
        return Some(ErrorPageStatus::FromPage);
    }
    match reading.number(&Reading::part(word, text), 0, 999)? {
        0 => Some(ErrorPageStatus::FromPage),
        1..=199 => {
            reading
                .error(word.span, format!("a final response cannot have the status \"{text}\""))
                .help("after a 1xx response, a client waits for the final one");
            None
        }
        status => Some(ErrorPageStatus::Is(status as u16)),
    }
}
