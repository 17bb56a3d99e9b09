//! `proxy_cookie_*`: what is changed in the cookies that the upstream sets.
//!
//! A level that writes one of the three has none of that name of the level above; `off` is an empty list. Before: `http`, whose rows
//! these are among; next: `millstream-server`'s `answer/proxied/cookie`, which changes them.

use super::http::HttpLevel;
use crate::features::templates::{Templates, record};
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::template::Template;
use crate::tree::{Directive, Word};

/// What a value of a cookie is compared with.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// A text.
    Text(Template),
    /// An expression.
    Regex(Regex),
}

impl Templates for Pattern {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        if let Pattern::Text(text) = self {
            all.push(text);
        }
    }
}

record! {
    /// A `proxy_cookie_domain` or `proxy_cookie_path`.
    pub struct CookieRule {
        /// What the attribute is: the whole domain, or the beginning of a path.
        pub from: Pattern,
        /// What stands there instead.
        pub to: Template,
    }
}

record! {
    /// A `proxy_cookie_flags`.
    pub struct CookieFlags {
        /// The names of the cookies that it holds for.
        pub name: Pattern,
        /// What each evaluates to is a flag that is set or taken out; nothing else has an effect.
        pub flags: Vec<Template>,
    }
}

record! {
    /// What is changed in the cookies of a location's upstream.
    pub struct Cookies {
        /// `proxy_cookie_domain`.
        pub domains: Vec<CookieRule>,
        /// `proxy_cookie_path`.
        pub paths: Vec<CookieRule>,
        /// `proxy_cookie_flags`.
        pub flags: Vec<CookieFlags>,
    }
}

impl Cookies {
    /// Whether all of them stay as they are.
    pub fn are_untouched(&self) -> bool {
        self.domains.is_empty() && self.paths.is_empty() && self.flags.is_empty()
    }
}

/// The flags that may be written without a variable.
const FLAGS: [&str; 8] = [
    "secure",
    "nosecure",
    "httponly",
    "nohttponly",
    "samesite=strict",
    "samesite=lax",
    "samesite=none",
    "nosamesite",
];

/// Reads a `proxy_cookie_domain`; a dot before a domain says nothing.
pub(super) fn domain(level: &mut HttpLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let Some((first, second)) = pair(&mut level.cookie_domains, directive, reading) else { return };
    let rule = match first.text.strip_prefix('~') {
        Some(source) => reading
            .regex(first, source, true)
            .map(|from| CookieRule { from: Pattern::Regex(from), to: reading.template(second) }),
        None => {
            let mut bare = |word: &Word| {
                let text = word.text.strip_prefix('.').unwrap_or(&word.text);
                reading.template(&Reading::part(word, text))
            };
            Some(CookieRule { from: Pattern::Text(bare(first)), to: bare(second) })
        }
    };
    level.cookie_domains.get_or_insert_default().extend(rule);
}

/// Reads a `proxy_cookie_path`.
pub(super) fn path(level: &mut HttpLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let Some((first, second)) = pair(&mut level.cookie_paths, directive, reading) else { return };
    let from = match first.text.strip_prefix('~') {
        Some(source) => match source.strip_prefix('*') {
            Some(source) => reading.regex(first, source, true),
            None => reading.regex(first, source, false),
        }
        .map(Pattern::Regex),
        None => Some(Pattern::Text(reading.template(first))),
    };
    let to = reading.template(second);
    level.cookie_paths.get_or_insert_default().extend(from.map(|from| CookieRule { from, to }));
}

/// Reads a `proxy_cookie_flags`.
pub(super) fn flags(level: &mut HttpLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let Some((first, rest)) = words(&mut level.cookie_flags, directive, reading) else { return };
    for word in rest.iter().filter(|word| crate::template::is_literal(&word.text)) {
        reading.one_of(word, &FLAGS);
    }
    let flags = rest.iter().map(|word| reading.template(word)).collect();
    let name = match first.text.strip_prefix('~') {
        Some(source) => reading.regex(first, source, true).map(Pattern::Regex),
        None => Some(Pattern::Text(reading.template(first))),
    };
    level.cookie_flags.get_or_insert_default().extend(name.map(|name| CookieFlags { name, flags }));
}

fn pair<'d, T>(
    list: &mut Option<Vec<T>>,
    directive: &'d Directive,
    reading: &mut Reading<'_>,
) -> Option<(&'d Word, &'d Word)> {
    words(list, directive, reading).map(|(first, rest)| (first, &rest[0]))
}

/// The words of a rule; nothing of an `off`, which empties the list and stands alone in its block.
fn words<'d, T>(
    list: &mut Option<Vec<T>>,
    directive: &'d Directive,
    reading: &mut Reading<'_>,
) -> Option<(&'d Word, &'d [Word])> {
    let (first, rest) = directive.args.split_first()?;
    let name = &directive.name.text;
    if list.as_ref().is_some_and(|list| list.is_empty() || rest.is_empty()) {
        reading
            .error(directive.span, format!("\"{name}\" directive is duplicate"))
            .help(format!("{name} off stands alone in its block; keep it or the others"));
        return None;
    }
    if !rest.is_empty() {
        return Some((first, rest));
    }
    if reading.one_of(first, &["off"]).is_some() {
        *list = Some(Vec::new());
    }
    None
}
