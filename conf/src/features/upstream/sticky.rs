//! `sticky`: requests of one session come to one server.
//!
//! Before: `server`, whose `route=` and `drain` belong to it; next: `declared/sticky`, what comes of it.

use crate::declared::Kind;
use crate::declared::sticky::{CookieLife, Sticky, StickyCookie, StickyLearn, StickyWay};
use crate::declared::upstream::Upstream;
use crate::reading::{Reading, parameter};
use crate::template::Template;
use crate::tree::{Directive, Word};
use std::time::Duration;

/// Bytes of a zone per session, as nginx documents: 8,000 a megabyte.
const SESSION: u64 = 128;
/// Eight of nginx's pages.
const SMALLEST_ZONE: u64 = 8 * 4096;

pub(super) fn read(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let way = reading.choice(&directive.args[0], &[("cookie", 'c'), ("route", 'r'), ("learn", 'l')]);
    let rest = &directive.args[1..];
    upstream.sticky = match way {
        Some('c') => cookie(rest, reading),
        Some('r') => Some(Sticky { lookup: variables(rest, reading), way: StickyWay::Route }),
        Some(_) => learn(directive, rest, reading),
        None => return,
    };
}

fn cookie(words: &[Word], reading: &mut Reading<'_>) -> Option<Sticky> {
    let (name, parameters) = words.split_first()?;
    if name.text.is_empty() {
        reading.error(name.span, "empty cookie name").help("write a name, as in sticky cookie server;");
        return None;
    }
    let mut cookie = StickyCookie { name: name.text.clone(), ..StickyCookie::default() };
    let mut seen: Vec<String> = Vec::new();
    for word in parameters {
        let known = word.text.split('=').next().unwrap_or_default().to_owned();
        if seen.contains(&known) {
            reading.error(word.span, format!("parameter \"{known}\" is duplicate")).help("write it once");
            continue;
        }
        seen.push(known);
        cookie_parameter(&mut cookie, word, reading);
    }
    let lookup = reading.template(&Reading::part(name, format!("$cookie_{}", name.text)));
    Some(Sticky { lookup: [lookup].into(), way: StickyWay::Cookie(cookie) })
}

fn cookie_parameter(cookie: &mut StickyCookie, word: &Word, reading: &mut Reading<'_>) {
    match parameter(word) {
        Some((name @ ("domain" | "path"), value)) if value.text.is_empty() => {
            reading.error(word.span, format!("no value for \"{name}\"")).help("write one, or remove it");
        }
        Some(("domain", value)) => cookie.domain = Some(reading.template(&value)),
        Some(("path", value)) => cookie.path = Some(value.text),
        Some(("expires", value)) if value.text == "max" => cookie.expires = Some(CookieLife::Max),
        Some(("expires", value)) => cookie.expires = reading.duration(&value).map(CookieLife::For),
        Some(("samesite", value)) => {
            let template = reading.template(&value);
            if template.as_literal().is_some() && reading.one_of(&value, &StickyCookie::SAME_SITE).is_none() {
                return;
            }
            cookie.same_site = Some(template);
        }
        None if word.text == "httponly" => cookie.http_only = true,
        None if word.text == "secure" => cookie.secure = true,
        _ => reading.not_one_of(word, &["expires=", "domain=", "path=", "samesite=", "httponly", "secure"]),
    }
}

fn variables(words: &[Word], reading: &mut Reading<'_>) -> Box<[Template]> {
    words.iter().filter_map(|word| variable(word, reading)).collect()
}

fn variable(word: &Word, reading: &mut Reading<'_>) -> Option<Template> {
    let template = reading.template(word);
    if !word.text.starts_with('$') || template.variables().count() != 1 || template.parts.len() != 1 {
        // What is unknown has been said.
        if !word.text.starts_with('$') || template.parts.len() > 1 {
            reading
                .error(word.span, format!("invalid variable name \"{}\"", word.text))
                .help("write one variable, as in $cookie_session");
        }
        return None;
    }
    Some(template)
}

fn learn(directive: &Directive, words: &[Word], reading: &mut Reading<'_>) -> Option<Sticky> {
    let (mut lookup, mut create) = (Vec::new(), Vec::new());
    let (mut zone, mut timeout, mut from_header) = (None, None, false);
    for word in words {
        match parameter(word) {
            Some((name @ ("zone" | "timeout"), _))
                if zone.is_some() && name == "zone" || timeout.is_some() && name == "timeout" =>
            {
                reading.error(word.span, format!("duplicate {name}")).help("write it once");
            }
            Some(("zone", value)) => zone = learn_zone(&value, reading),
            Some(("timeout", value)) => {
                timeout = reading.duration(&value);
                if timeout == Some(Duration::ZERO) {
                    reading.error(word.span, "invalid timeout").help("write a time such as 10m");
                }
            }
            Some(("create", value)) => create.extend(variable(&value, reading)),
            Some(("lookup", value)) => lookup.extend(variable(&value, reading)),
            None if word.text == "header" => from_header = true,
            Some(("sync", _)) | None if word.text.starts_with("sync") => {
                reading
                    .error(word.span, "\"sync\" is not supported: sessions are known to only one machine")
                    .help("remove it; sticky cookie needs no shared state");
            }
            _ => reading.not_one_of(word, &["create=", "lookup=", "zone=", "timeout=", "header"]),
        }
    }
    for (name, missing) in
        [("lookup", lookup.is_empty()), ("create", create.is_empty()), ("zone", zone.is_none())]
    {
        if missing && !words.iter().any(|word| word.text.starts_with(&format!("{name}="))) {
            reading
                .error(directive.span, format!("\"{name}\" parameter is not specified"))
                .help("write sticky learn create=$upstream_cookie_NAME lookup=$cookie_NAME zone=NAME:1m;");
        }
    }
    if lookup.is_empty() || create.is_empty() {
        return None;
    }
    let (zone, most) = zone?;
    let timeout = timeout.unwrap_or(Duration::from_secs(600));
    let learn = StickyLearn { create: create.into(), zone, most, timeout, from_header };
    Some(Sticky { lookup: lookup.into(), way: StickyWay::Learn(learn) })
}

/// The name, and how many sessions fit.
fn learn_zone(word: &Word, reading: &mut Reading<'_>) -> Option<(String, usize)> {
    let Some((name, size)) = word.text.split_once(':') else {
        reading.error(word.span, "zone size is not specified").help("write zone=NAME:1m");
        return None;
    };
    if name.is_empty() {
        reading.error(word.span, "zone name is not specified").help("write zone=NAME:1m");
        return None;
    }
    let bytes = reading.size(&Reading::part(word, size))?;
    if bytes < SMALLEST_ZONE {
        reading.error(word.span, "zone is too small").help("write at least 32k");
        return None;
    }
    let message = format!("sticky zone \"{name}\" is already used");
    reading
        .declare(Kind::StickyZone, name, word.span, message)
        .then(|| (name.to_owned(), usize::try_from(bytes / SESSION).unwrap_or(usize::MAX)))
}
