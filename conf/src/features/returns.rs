//! `return`: a fixed answer.
//!
//! Next: `millstream-server`'s `answer/fixed`.

use super::context::SERVER_LOCATION;
use super::templates::{Templates, record};
use super::{Apply, Feature, Level, Place, Row, often};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

/// What a `return` sends.
#[derive(Debug, Clone)]
pub enum ReturnBody {
    /// Nothing of its own: the built-in page of the status.
    None,
    /// Text with the default type.
    Text(Template),
    /// A Location for 301, 302, 303, 307, 308; empty where none was written, as in nginx.
    Url(Template),
}

impl Templates for ReturnBody {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            ReturnBody::None => {}
            ReturnBody::Text(text) | ReturnBody::Url(text) => all.push(text),
        }
    }
}

record! {
    /// A `return`.
    pub struct Return {
        /// The status, 0–999; 444 closes the connection without an answer.
        pub status: u16,
        /// What goes with it.
        pub body: ReturnBody,
    }
}

/// What one level says of it, which stays where it was written.
#[derive(Debug, Clone, Default)]
pub struct ReturnLevel(Option<Return>);

impl Feature for ReturnLevel {
    type Settings = Option<Return>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<Return> {
        self.0.clone()
    }
}

/// The rows of this feature.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("return", SERVER_LOCATION, (1, 2), "code [text] | code URL | URL", "",
        "Answers at once. A URL goes with 301, 302, 303, 307 and 308 (left out, it is empty); without a text the statuses from 400 on \
        get their built-in page or `error_page`, others an empty body. 444 closes the connection without an answer. In a server it \
        comes before any location. Of several the first is taken.",
        Apply::Level(returns)),
];

fn returns(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    let second = directive.args.get(1);
    let is_code = !first.text.is_empty() && first.text.bytes().all(|byte| byte.is_ascii_digit());
    let looks_like_url = ["http://", "https://", "$scheme"].iter().any(|start| first.text.starts_with(start));
    let parsed = if is_code {
        reading.number(first, 0, 999).map(|status| (status as u16, second))
    } else if second.is_none() && looks_like_url {
        Some((302, Some(first)))
    } else {
        reading.error(first.span, format!("invalid return code \"{}\"", first.text)).help(
            "write return 200 \"text\"; or return 301 https://example.com/; or return https://example.com/;",
        );
        None
    };
    let Some((status, text)) = parsed else { return };
    let text = text.map_or_else(|| Template::literal(""), |word| reading.template(word));
    let is_empty = text.parts.is_empty();
    // Without a text nginx sends the built-in page from 400 on, an empty Location with a redirect, and an empty body else.
    let body = match status {
        301 | 302 | 303 | 307 | 308 => ReturnBody::Url(text),
        0..200 | 204 | 304 | 400.. if is_empty => ReturnBody::None,
        _ => ReturnBody::Text(text),
    };
    // The second `return` of a block is never reached, in nginx as here.
    level.returns.0.get_or_insert(Return { status, body });
}
