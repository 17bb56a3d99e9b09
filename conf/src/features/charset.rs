//! `charset`: what a text answer says of its characters.
//!
//! It is only said; nothing is converted (`charset_map` is not there). Next: `millstream-server`'s `filter/charset`.

use std::sync::Arc;

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::level::settings;
use super::{Apply, Level, MANY, Row, once};
use crate::reading::Reading;
use crate::tree::Directive;

settings! {
    /// `charset*` of a location.
    pub struct Charset, CharsetLevel(place, reading) {
        /// `charset`; `None` = off.
        name: Option<Arc<str>> = None,
        /// `override_charset`, default off.
        overrides: bool = false,
        /// `charset_types`, in lower case; `None` = every type.
        types: Option<Arc<[Box<str>]>> = Some(DEFAULT_TYPES.iter().map(|name| Box::from(*name)).collect()),
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

/// The rows of this feature.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("charset", UP_TO_IF, (1, 1), "charset | off", "off",
        "Adds `; charset=` to the Content-Type of answers, except redirects by 301 and 302. Nothing is converted.",
        Apply::Level(charset)),
    once("override_charset", UP_TO_IF, (1, 1), "on | off", "off",
        "Whether it takes the place of a charset that the answer names.",
        Apply::Level(|l, d, r| l.charset.overrides = r.flag(&d.args[0]))),
    once("charset_types", HTTP_SERVER_LOCATION, (1, MANY), "type … | *",
        "text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml",
        "The media types beside text/html that it holds for.",
        Apply::Level(|l, d, _| {
            let all = d.args.iter().any(|word| word.text == "*");
            let named = d.args.iter().map(|word| Box::from(word.text.to_ascii_lowercase()));
            l.charset.types = Some((!all).then(|| named.chain([Box::from("text/html")]).collect()));
        })),
];

fn charset(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if !reading.without_variables(word, "charset") {
        return;
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    if word.text.is_empty() || !word.text.bytes().all(token) {
        reading
            .error(word.span, format!("\"{}\" is not the name of a charset", word.text))
            .help("write a name such as utf-8, or off");
        return;
    }
    level.charset.name = Some((word.text != "off").then(|| word.text.as_str().into()));
}
