//! Directives that set fields of the answer.
//!
//! Names are checked here, so that no field can break an answer apart. Next: `millstream-server`'s `filter`.

use std::sync::Arc;

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::templates::{Templates, record};
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::reading::Reading;
use crate::template::{self, Template};
use crate::tree::{Directive, Word};

pub mod expires;

pub use expires::Expires;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTokens {
    Off,
    On,
    Build,
    /// Not sent if it evaluates to empty.
    Text(Template),
}

impl Templates for ServerTokens {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        if let ServerTokens::Text(text) = self {
            all.push(text);
        }
    }
}

record! {
    pub struct AddHeader {
        pub name: String,
        /// Not sent if it evaluates to empty.
        pub value: Template,
        /// On every status, not only 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308.
        pub always: bool,
    }
}

/// `add_header_inherit`, `add_trailer_inherit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inheritance {
    Off,
    /// A level that writes a field inherits none.
    #[default]
    On,
    /// Inherited fields follow the level's own.
    Merge,
}

#[derive(Debug, Clone, Default)]
pub struct AddedLevel {
    fields: Option<Vec<AddHeader>>,
    inheritance: Option<Inheritance>,
}

impl AddedLevel {
    pub(in crate::features) fn inherit(&mut self, above: &Self) {
        self.inheritance = self.inheritance.or(above.inheritance);
        match (self.inheritance.unwrap_or_default(), &mut self.fields) {
            (Inheritance::Off, _) => {}
            (Inheritance::On | Inheritance::Merge, own @ None) => own.clone_from(&above.fields),
            (Inheritance::On, Some(_)) => {}
            (Inheritance::Merge, Some(own)) => own.extend(above.fields.iter().flatten().cloned()),
        }
    }

    pub(in crate::features) fn in_force(&self) -> Arc<[AddHeader]> {
        self.fields.iter().flatten().cloned().collect()
    }

    pub(in crate::features) fn add(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        let written = added(directive, reading);
        self.fields.get_or_insert_default().extend(written);
    }

    pub(in crate::features) fn set_inheritance(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        use Inheritance::{Merge, Off, On};
        self.inheritance = reading.choice(&directive.args[0], &[("off", Off), ("on", On), ("merge", Merge)]);
    }
}

record! {
    pub struct AnswerHeaders {
        pub add: Arc<[AddHeader]>,
        pub expires: Expires,
        pub server_tokens: ServerTokens,
    }
}

#[derive(Debug, Clone, Default)]
pub struct HeadersLevel {
    add: AddedLevel,
    expires: Option<Expires>,
    server_tokens: Option<ServerTokens>,
}

impl Feature for HeadersLevel {
    type Settings = AnswerHeaders;

    fn inherit(&mut self, above: &Self) {
        self.add.inherit(&above.add);
        self.expires = self.expires.take().or_else(|| above.expires.clone());
        self.server_tokens = self.server_tokens.take().or_else(|| above.server_tokens.clone());
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> AnswerHeaders {
        AnswerHeaders {
            add: self.add.in_force(),
            expires: self.expires.clone().unwrap_or_default(),
            server_tokens: self.server_tokens.clone().unwrap_or(ServerTokens::On),
        }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("add_header", UP_TO_IF, (2, 3), "name value [always]", "",
        "Adds a field to the response if its value is not empty and the status is 200, 201, 204, 206, 301, 302, 303, 304, 307 or 308; with `always`, \
        for any status. These directives are inherited only if the current level has none, unless `add_header_inherit` is set.",
        Apply::Level(|l, d, r| l.headers.add.add(d, r))),
    once("add_header_inherit", UP_TO_IF, (1, 1), "off | on | merge", "on",
        "Sets how `add_header` directives are inherited from the previous level. `on`: only if the current level has none. `off`: not at all. \
        `merge`: they are appended to those of the current level. The directive itself is inherited.",
        Apply::Level(|l, d, r| l.headers.add.set_inheritance(d, r))),
    once("expires", UP_TO_IF, (1, 2), "[modified] time | @time | epoch | max | off", "off",
        "Sets Expires and Cache-Control in responses with status 200, 201, 204, 206, 301, 302, 303, 304, 307 or 308. The time is relative to now (a \
        negative time means `no-cache`), with `modified` relative to Last-Modified, and with `@` a time of day. `epoch` is a time in the past, `max` \
        is ten years. The parameter may be a variable.",
        Apply::Level(set_expires)).deciding(),
    once("server_tokens", HTTP_SERVER_LOCATION, (1, 1), "on | off | build | string", "on",
        "Shows the version in the Server field and in built-in error pages. A string, which may contain variables, replaces name and version. An \
        empty string removes the field, and the line in the pages.",
        Apply::Level(server_tokens)),
];

/// RFC 9110 §5.1; reports a word that is not.
pub(in crate::features) fn is_field_name(word: &Word, reading: &mut Reading<'_>) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !word.text.is_empty() && word.text.bytes().all(token) {
        return true;
    }
    reading
        .error(word.span, format!("\"{}\" is not a field name", word.text))
        .help("a field name has letters, digits and hyphens, and no colon after it");
    false
}

fn server_tokens(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let words = [("on", ServerTokens::On), ("off", ServerTokens::Off), ("build", ServerTokens::Build)];
    let known = words.iter().find(|(name, _)| *name == word.text).map(|(_, known)| known.clone());
    if known.is_none() && words.iter().any(|(name, _)| name.eq_ignore_ascii_case(&word.text)) {
        let message = format!("\"{}\" is sent as the name of the server", word.text);
        let help = format!("write server_tokens {};", word.text.to_ascii_lowercase());
        reading.diagnostics.warning(word.span, message).help(help);
    }
    level.headers.server_tokens = Some(known.unwrap_or_else(|| ServerTokens::Text(reading.template(word))));
}

fn set_expires(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (word, before) = directive.args.split_last().expect("the table asks for a word");
    if let Some(number) = before.first()
        && number.text.bytes().all(|byte| byte.is_ascii_digit())
        && let Some(unit) = ["year", "Month", "week", "day", "hour", "minute", "second"]
            .into_iter()
            .find(|unit| word.text.trim_end_matches('s').eq_ignore_ascii_case(unit))
    {
        // Of minutes and months the second has the great letter.
        let help = format!("write the time as one word, as in expires {}{};", number.text, &unit[..1]);
        reading.error(number.span, format!("invalid value \"{}\"", number.text)).help(help);
        return;
    }
    if let Some(word) = before.first()
        && reading.one_of(word, &["modified"]).is_none()
    {
        return;
    }
    let is_modified = !before.is_empty();
    level.headers.expires = if template::is_literal(&word.text) {
        reading.value(word.span, expires::parse(&word.text, is_modified))
    } else {
        Some(Expires::Variable(reading.template(word), is_modified))
    };
}

fn added(directive: &Directive, reading: &mut Reading<'_>) -> Option<AddHeader> {
    let always = match directive.args.get(2) {
        Some(word) => reading.one_of(word, &["always"]).is_some(),
        None => false,
    };
    let [name, word, ..] = &directive.args[..] else { return None };
    let field = field(name, word, reading);
    let value = reading.template(field.as_ref().map_or(word, |(_, value)| value));
    field.map(|(name, _)| AddHeader { name, value, always })
}

/// nginx adds the colon itself, so a colon written after the name starts the value.
pub(in crate::features) fn field(
    name: &Word,
    value: &Word,
    reading: &mut Reading<'_>,
) -> Option<(String, Word)> {
    let Some(bare) = name.text.strip_suffix(':') else {
        return is_field_name(name, reading).then(|| (name.text.clone(), value.clone()));
    };
    let bare = Reading::part(name, bare);
    if !is_field_name(&bare, reading) {
        return None;
    }
    let message = format!("the colon becomes part of the value: \"{}: : …\" is sent", bare.text);
    let help = format!("write {} without a colon", bare.text);
    reading.diagnostics.warning(name.span, message).help(help);
    Some((bare.text, Reading::part(value, format!(": {}", value.text))))
}
