//! `proxy_cookie_*`: what is changed in the cookies that the upstream sets.
//!
//! A level that writes one of the three has none of that name of the level above; `off` is an empty list. Next: `http`, which has the rows; `millstream-server`'s `exchange/cookie`, which changes them.

use crate::features::templates::{Templates, record};
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::template::Template;
use crate::tree::{Directive, Word};

#[derive(Debug, Clone)]
pub enum Pattern {
    Text(Template),
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
    pub struct CookieRule {
        /// The whole domain, or the start of a path.
        pub from: Pattern,
        pub to: Template,
    }
}

record! {
    pub struct CookieFlags {
        pub name: Pattern,
        /// Each evaluates to a flag to set or remove; anything else has no effect.
        pub flags: Vec<Template>,
    }
}

record! {
    pub struct Cookies {
        pub domains: Vec<CookieRule>,
        pub paths: Vec<CookieRule>,
        pub flags: Vec<CookieFlags>,
    }
}

impl Cookies {
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

type Rules<T> = Option<Vec<T>>;

/// A leading dot of a domain is ignored.
pub(super) fn domain(
    mut list: Rules<CookieRule>,
    directive: &Directive,
    reading: &mut Reading<'_>,
) -> Rules<CookieRule> {
    let Some((first, second)) = pair(&mut list, directive, reading) else { return list };
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
    list.get_or_insert_default().extend(rule);
    list
}

pub(super) fn path(
    mut list: Rules<CookieRule>,
    directive: &Directive,
    reading: &mut Reading<'_>,
) -> Rules<CookieRule> {
    let Some((first, second)) = pair(&mut list, directive, reading) else { return list };
    let from = match first.text.strip_prefix('~') {
        Some(source) => match source.strip_prefix('*') {
            Some(source) => reading.regex(first, source, true),
            None => reading.regex(first, source, false),
        }
        .map(Pattern::Regex),
        None => Some(Pattern::Text(reading.template(first))),
    };
    let to = reading.template(second);
    list.get_or_insert_default().extend(from.map(|from| CookieRule { from, to }));
    list
}

pub(super) fn flags(
    mut list: Rules<CookieFlags>,
    directive: &Directive,
    reading: &mut Reading<'_>,
) -> Rules<CookieFlags> {
    let Some((first, rest)) = words(&mut list, directive, reading) else { return list };
    for word in rest.iter().filter(|word| crate::template::is_literal(&word.text)) {
        reading.one_of(word, &FLAGS);
    }
    let flags = rest.iter().map(|word| reading.template(word)).collect();
    let name = match first.text.strip_prefix('~') {
        Some(source) => reading.regex(first, source, true).map(Pattern::Regex),
        None => Some(Pattern::Text(reading.template(first))),
    };
    list.get_or_insert_default().extend(name.map(|name| CookieFlags { name, flags }));
    list
}

fn pair<'d, T>(
    list: &mut Rules<T>,
    directive: &'d Directive,
    reading: &mut Reading<'_>,
) -> Option<(&'d Word, &'d Word)> {
    words(list, directive, reading).map(|(first, rest)| (first, &rest[0]))
}

/// `None` for `off`, which empties the list and stands alone in its block.
fn words<'d, T>(
    list: &mut Rules<T>,
    directive: &'d Directive,
    reading: &mut Reading<'_>,
) -> Option<(&'d Word, &'d [Word])> {
    let (first, rest) = directive.args.split_first()?;
    let name = &directive.name.text;
    if list.as_ref().is_some_and(|list| list.is_empty() || rest.is_empty()) {
        reading
            .error(directive.span, format!("\"{name}\" directive is duplicate"))
            .help(format!("{name} off cannot be combined with others in its block; keep it or the others"));
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
