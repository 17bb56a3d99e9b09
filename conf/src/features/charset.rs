//! `charset`: what a text answer says of its characters, and into what they are converted.
//!
//! Before: `charset_map`, the conversions; next: `millstream-server`'s `filter/charset`.

use std::sync::Arc;

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::level::level;
use super::phases::Phases;
use super::templates::record;
use super::{Apply, Feature, Level, MANY, Place, Row, once};
use crate::reading::Reading;
use crate::source::Span;
use crate::template::{self, Template};
use crate::tree::{Directive, Word};

record! {
    pub struct Charset {
        /// `None` = off.
        pub name: Option<Template>,
        pub source: Option<Template>,
        pub overrides: bool,
        /// In lower case; `None` = every type.
        pub types: Option<Arc<[Box<str>]>>,
        /// Whether there is any `charset_map`.
        pub converts: bool,
    }
}

level! {
    pub struct CharsetLevel {
        /// The inner `None` is `off`.
        name: Option<Template>,
        source: (Template, Span),
        overrides: bool,
        /// The inner `None` is every type.
        types: Option<Arc<[Box<str>]>>,
    }
}

impl Feature for CharsetLevel {
    type Settings = Charset;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, reading: &mut Reading<'_>) -> Charset {
        let name = self.name.clone().flatten();
        if let (Some(name), Some((source, span))) = (&name, &self.source) {
            is_known(source, name, *span, reading);
        }
        Charset {
            converts: !reading.declared.conversions.is_empty(),
            name,
            source: self.source.as_ref().map(|(source, _)| source.clone()),
            overrides: self.overrides.unwrap_or(false),
            types: self
                .types
                .clone()
                .unwrap_or_else(|| Some(DEFAULT_TYPES.iter().map(|name| Box::from(*name)).collect())),
        }
    }

    fn phases(charset: &Charset) -> Phases {
        Phases::FILTERS.only_if(charset.converts)
    }
}

const DEFAULT_TYPES: [&str; 6] = [
    "text/html",
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("charset", UP_TO_IF, (1, 1), "charset | off", "off",
        "Adds `; charset=` to the Content-Type of responses, except with status 301 and 302. If the charset of a response is known, from \
        `source_charset` or its Content-Type, and there is a matching `charset_map`, the text is converted. The parameter may be a variable.",
        Apply::Level(|l, d, r| {
            if d.args[0].text == "off" {
                l.charset.name = Some(None);
            } else if let Some(name) = name(&d.args[0], r) {
                l.charset.name = Some(Some(name));
            }
        })),
    once("source_charset", UP_TO_IF, (1, 1), "charset", "",
        "Sets the charset of responses that do not specify one. If it differs from `charset`, they are converted with a `charset_map`. The parameter \
        may be a variable.",
        Apply::Level(|l, d, r| l.charset.source = name(&d.args[0], r).map(|name| (name, d.args[0].span)))),
    once("override_charset", UP_TO_IF, (1, 1), "on | off", "off",
        "Also converts responses that specify their own charset, from that charset.",
        Apply::Level(|l, d, r| l.charset.overrides = r.flag(&d.args[0]))),
    once("charset_types", HTTP_SERVER_LOCATION, (1, MANY), "type … | *",
        "text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml",
        "Sets the media types to which `charset` applies, in addition to text/html.",
        Apply::Level(charset_types)),
];

fn charset_types(level: &mut Level, directive: &Directive, _: &mut Reading<'_>) {
    let all = directive.args.iter().any(|word| word.text == "*");
    let named = directive.args.iter().map(|word| Box::from(word.text.to_ascii_lowercase()));
    level.charset.types = Some((!all).then(|| named.chain([Box::from("text/html")]).collect()));
}

fn name(word: &Word, reading: &mut Reading<'_>) -> Option<Template> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    let is_name = !word.text.is_empty() && word.text.bytes().all(token);
    let charsets = &mut reading.declared.charsets;
    if is_name && !charsets.iter().any(|known| known.eq_ignore_ascii_case(&word.text)) {
        charsets.push(word.text.as_str().into());
    }
    if is_name || !template::is_literal(&word.text) {
        return Some(reading.template(word));
    }
    reading
        .error(word.span, format!("\"{}\" is not the name of a charset", word.text))
        .help("write a name such as utf-8, or off");
    None
}

/// As in nginx, a conversion needs a map.
fn is_known(source: &Template, target: &Template, span: Span, reading: &mut Reading<'_>) {
    let (Some(source), Some(target)) = (source.as_literal(), target.as_literal()) else { return };
    let fits = |from: &str, to: &str| from.eq_ignore_ascii_case(source) && to.eq_ignore_ascii_case(target);
    let mut conversions = reading.declared.conversions.iter();
    if !source.eq_ignore_ascii_case(target) && !conversions.any(|known| fits(&known.from, &known.to)) {
        let message = format!("no \"charset_map\" between the charsets \"{source}\" and \"{target}\"");
        reading.error(span, message).help("write a charset_map in the http block, or include one of nginx's");
    }
}
