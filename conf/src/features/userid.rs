//! `userid`: cookies by which clients are told apart.
//!
//! The cookie belongs to the client alone and is never stored. Next: `millstream-server`'s `variables/userid`, which makes it.

use std::sync::Arc;

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::declared::sticky::CookieLife;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::Template;
use crate::tree::{Directive, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserIdMode {
    Log,
    V1,
    V2,
}

without_templates!(UserIdMode, CookieLife);

record! {
    pub struct UserId {
        pub mode: UserIdMode,
        pub name: Box<str>,
        /// `None` = the address that the client connected to.
        pub service: Option<u32>,
        pub life: Option<CookieLife>,
        /// Everything after the lifetime: `userid_domain`, `userid_path` and `userid_flags`.
        pub attributes: Box<str>,
        /// Empty = not sent.
        pub p3p: Box<str>,
        /// The character in place of the first padding character.
        pub mark: Option<u8>,
        /// `$uid_reset`, whatever sets it.
        pub reset: Template,
    }
}

/// In the order they are sent.
const FLAGS: [&str; 5] = ["secure", "httponly", "samesite=strict", "samesite=lax", "samesite=none"];

level! {
    pub struct UserIdLevel {
        mode: Option<UserIdMode>,
        name: Box<str>,
        service: u32,
        domain: Option<Box<str>>,
        path: Box<str>,
        life: Option<CookieLife>,
        p3p: Option<Box<str>>,
        mark: Option<u8>,
        /// One switch for each of `FLAGS`.
        flags: [bool; FLAGS.len()],
    }
}

impl Feature for UserIdLevel {
    type Settings = Option<Arc<UserId>>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, reading: &mut Reading<'_>) -> Self::Settings {
        let mode = self.mode.flatten()?;
        let reset = Word { text: "$uid_reset".to_owned(), span: Span::default(), quoted: false };
        let mut attributes = String::new();
        if let Some(domain) = self.domain.iter().flatten().next() {
            attributes = format!("; domain={domain}");
        }
        attributes = format!("{attributes}; path={}", self.path.as_deref().unwrap_or("/"));
        for (flag, _) in FLAGS.iter().zip(self.flags.unwrap_or_default()).filter(|(_, is_set)| *is_set) {
            attributes = format!("{attributes}; {flag}");
        }
        Some(Arc::new(UserId {
            mode,
            name: self.name.clone().unwrap_or_else(|| "uid".into()),
            service: self.service,
            life: self.life.flatten(),
            attributes: attributes.into(),
            p3p: self.p3p.clone().flatten().unwrap_or_default(),
            mark: self.mark.flatten(),
            reset: reading.template(&reset),
        }))
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("userid", HTTP_SERVER_LOCATION, (1, 1), "on | v1 | log | off", "off",
        "Sets a cookie of version 2 (`on`) or version 1 (`v1`) that identifies the client, if a request has none. `log` sets no cookies, but reads \
        received ones. The cookie is never stored with a response.",
        Apply::Level(mode)),
    once("userid_name", HTTP_SERVER_LOCATION, (1, 1), "name", "uid",
        "Sets the name of the cookie.",
        Apply::Level(|l, d, r| l.userid.name = text(d, r))),
    once("userid_service", HTTP_SERVER_LOCATION, (1, 1), "number", "",
        "Sets the first number of the cookie, which distinguishes servers. By default, it is 0 for version 1, and the last four bytes of the server's \
        address for version 2.",
        Apply::Level(|l, d, r| l.userid.service = r.number(&d.args[0], 0, u32::MAX.into()).map(|number| number as u32))),
    once("userid_domain", HTTP_SERVER_LOCATION, (1, 1), "name | none", "none",
        "Sets the domain of the cookie.",
        Apply::Level(|l, d, r| l.userid.domain = or_none(d, r))),
    once("userid_path", HTTP_SERVER_LOCATION, (1, 1), "path", "/",
        "Sets the path of the cookie.",
        Apply::Level(|l, d, r| l.userid.path = text(d, r))),
    once("userid_expires", HTTP_SERVER_LOCATION, (1, 1), "time | max | off", "off",
        "Sets how long a browser keeps the cookie. `max` is the end of 2037. With `off`, the cookie expires at the end of the session.",
        Apply::Level(expires)),
    often("userid_flags", HTTP_SERVER_LOCATION, (1, 3), "off | flag …", "off",
        "Adds flags to the cookie: `secure`, `httponly`, `samesite=strict`, `samesite=lax`, `samesite=none`.",
        Apply::Level(flags)),
    once("userid_p3p", HTTP_SERVER_LOCATION, (1, 1), "text | none", "none",
        "Sets the P3P field that is sent with the cookie.",
        Apply::Level(|l, d, r| l.userid.p3p = or_none(d, r))),
    once("userid_mark", HTTP_SERVER_LOCATION, (1, 1), "letter | digit | = | off", "off",
        "Replaces the first padding character at the end of the cookie. A client whose cookie has another mark is sent its cookie again with the same \
        id, for example to change its expiration time.",
        Apply::Level(mark)),
];

fn mode(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    use UserIdMode::{Log, V1, V2};
    let modes = [("off", None), ("log", Some(Log)), ("v1", Some(V1)), ("on", Some(V2))];
    level.userid.mode = reading.choice(&directive.args[0], &modes);
}

fn expires(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    level.userid.life = match word.text.as_str() {
        "max" => Some(Some(CookieLife::Max)),
        "off" => Some(None),
        _ => {
            let life = reading.duration(word);
            life.map(|life| (life.as_secs() > 0).then_some(CookieLife::For(life)))
        }
    };
}

fn flags(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let flags = level.userid.flags.get_or_insert_default();
    for word in &directive.args {
        let known: Vec<&str> = FLAGS.into_iter().chain(["off"]).collect();
        if let Some(flag) = reading.one_of(word, &known).and_then(|at| flags.get_mut(at)) {
            *flag = true;
        }
    }
}

fn mark(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    level.userid.mark = match word.text.as_bytes() {
        b"off" => Some(None),
        [mark] if mark.is_ascii_alphanumeric() || *mark == b'=' => Some(Some(*mark)),
        _ => {
            reading
                .error(word.span, format!("invalid value \"{}\"", word.text))
                .help("value must be \"off\" or a single letter, digit or \"=\"");
            None
        }
    };
}

fn text(directive: &Directive, reading: &mut Reading<'_>) -> Option<Box<str>> {
    let word = &directive.args[0];
    if word.text.contains(|character: char| character.is_ascii_control()) {
        reading.error(word.span, "a control character cannot be sent in a field").help("take it out");
        return None;
    }
    Some(word.text.as_str().into())
}

fn or_none(directive: &Directive, reading: &mut Reading<'_>) -> Option<Option<Box<str>>> {
    if directive.args[0].text == "none" { Some(None) } else { text(directive, reading).map(Some) }
}
