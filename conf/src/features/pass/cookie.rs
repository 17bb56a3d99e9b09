//! `proxy_cookie_*`: what is changed in the cookies that the upstream sets.
//!
//! A level that writes one of the three has none of that name of the level above; `off` is an empty list. Next: `http`, which has the rows; `millstream-server`'s `gateway/cookie`, which changes them.

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

/// Those of one of the three of a level, as far as they are read.
type Rules<T> = Option<Vec<T>>;

/// The `proxy_cookie_domain`s of a level with one more; a dot before a domain says nothing.
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

/// The `proxy_cookie_path`s of a level with one more.
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

/// The `proxy_cookie_flags` of a level with one more.
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

/// The words of a rule; nothing of an `off`, which empties the list and stands alone in its block.
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
