//! The nginx.conf that keeps what the report recommends, with the evidence of each line as a comment.
//!
//! A location that caches is exact, or an expression that matches no path of a route that is not cached: those have locations
//! before it. What has no location of its own is not cached. Before: `report`; next: `millstream-conf`, which reads it.

mod key_values;
mod conditions;

use crate::dimension::Sort;
use crate::names;
use crate::report::{Report, RouteReport, UsualField, fits, order};
use crate::segment::{Fold, Segment};
use crate::words::{grouped, time};
use millstream_wire::{FieldId, credential};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Variables that are 1 if a field has another value than the usual ones begin with this.
const RARE: &str = "$rare_";

/// What the configuration has around its caches, as text.
#[derive(Debug, Clone, Copy)]
pub struct Front<'a> {
    /// Up to the server: `events {}`, `http {` and what is in it.
    pub http: &'a str,
    /// The server up to its first location.
    pub server: &'a str,
    /// The lines that pass a location's requests to the API.
    pub pass: &'a str,
}

impl Report {
    /// The text of an nginx.conf for the routes of `location`.
    pub fn configuration(&self, location: u32, front: Front<'_>) -> String {
        let mut routes: Vec<&RouteReport> =
            self.routes.iter().filter(|route| route.location == location && route.has_location()).collect();
        routes.sort_by_key(|route| (order(route), route.route.clone()));
        let cached: Vec<&RouteReport> =
            routes.iter().copied().filter(|route| route.keep_seconds.is_some()).collect();
        let mut text = format!(
            "# Written by millstream shadow {}: {} requests in {}, {} of {} routes cached, {} of {} API time saved.\n\
             {}",
            self.millstream,
            grouped(self.totals.requests),
            time(self.duration_seconds),
            cached.len(),
            self.totals.routes,
            time(self.totals.saved_seconds),
            time(self.totals.api_seconds),
            front.http,
        );
        text.push_str("    proxy_cache_path memory keys_zone=shadow:32m memory=256m;\n");
        for (variable, map) in flags(&cached) {
            let map = map.replacen("%s", &variable, 1);
            let evidence = match variable.starts_with(RARE) {
                true => "1 unless several clients sent this value",
                false => "1 if anything not listed here is present, whatever its value",
            };
            _ = writeln!(text, "    map {map}  # {evidence}");
        }
        _ = write!(text, "\n{}", front.server);
        for route in &routes {
            let is_cached = route.keep_seconds.is_some();
            if is_cached || cached.iter().any(|other| overlap(route, other)) {
                write_location(&mut text, route, &routes, front);
            }
        }
        _ = write!(
            text,
            "\n        # all other paths: not cached\n        location / {{\n{}        }}\n    }}\n}}\n",
            front.pass
        );
        text
    }
}

impl RouteReport {
    /// Whether its path can be written as a location.
    fn has_location(&self) -> bool {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~@,+".contains(byte);
        self.segments.iter().all(|segment| match segment {
            Segment::Word(word) => word.iter().all(is_plain),
            Segment::Any(_) => true,
        }) && self.words.iter().all(|words| words.bytes().all(|byte| is_plain(&byte) || byte == b'/'))
    }
}

/// Whether a path may fit both.
fn overlap(one: &RouteReport, other: &RouteReport) -> bool {
    one.segments.len() == other.segments.len()
        && one.segments.iter().zip(&other.segments).all(|pair| match pair {
            (Segment::Word(word), Segment::Word(of)) => word == of,
            (Segment::Word(word), any) | (any, Segment::Word(word)) => fits(any, word),
            (Segment::Any(Fold::Number), Segment::Any(of))
            | (Segment::Any(of), Segment::Any(Fold::Number)) => {
                matches!(of, Fold::Number | Fold::Word)
            }
            _ => true,
        })
}

/// The variables that are 1 if a credential is present, and their maps.
fn flags(cached: &[&RouteReport]) -> BTreeMap<String, String> {
    let map = |source: &str, harmless: &str| {
        let harmless = if harmless.is_empty() { String::new() } else { format!(" \"{harmless}\" \"\";") };
        format!("{source} %s {{ \"\" \"\";{harmless} default 1; }}")
    };
    let mut flags = BTreeMap::new();
    for route in cached {
        for known in [known(route, Sort::Cookie), open(route, Sort::Cookie)] {
            let no_others = no_other_cookies(&known, route);
            flags.insert(flag_of_others("$has_cookie", &known), map("$http_cookie", &no_others));
        }
        for known in [known(route, Sort::Field), open(route, Sort::Field)] {
            let no_others = no_other_fields(&known);
            flags.insert(flag_of_others("$has_credential", &known), map("$credential_fields", &no_others));
        }
        let fields = no_other_fields(&unlisted(route));
        flags.insert(flag_of_unlisted(route), map("$unlisted_fields", &fields));
        for of in &route.usual {
            let Some((flag, values)) = flag_of_value(of) else { continue };
            let source = format!("$http_{}", of.field.replace('-', "_"));
            let usual: String = values.iter().map(|value| format!(" \"{value}\" \"\";")).collect();
            flags.insert(flag, format!("{source} %s {{{usual} default 1; }}"));
        }
        flags.extend(key_values::flag(route));
        for of in passed(route).iter().chain(&route.unstored).filter(|of| has_flag(of)) {
            flags.insert(flag(of), map(&variable(of).unwrap_or_default(), ""));
        }
    }
    flags
}

/// Credentials by which requests are passed on, but for cookies and for fields that `$credential_fields` names, whether any came or
/// not.
fn passed(route: &RouteReport) -> Vec<(Sort, String)> {
    let mut list: Vec<(Sort, String)> = Vec::new();
    for of in route.bypassed.iter().filter(|of| has_flag(of)) {
        if !list.contains(of) {
            list.push(of.clone());
        }
    }
    list
}

/// Whether a credential has a variable of its own that is 1 if it is present.
fn has_flag(of: &(Sort, String)) -> bool {
    of.0 != Sort::Cookie && !(of.0 == Sort::Field && is_named(&of.1)) && variable(of).is_some()
}

/// Whether `$credential_fields` names a field.
fn is_named(name: &str) -> bool {
    credential::is_credential(FieldId::of(name.as_bytes()), name.as_bytes())
}

/// The credentials of a sort that do not keep a request from the cache.
fn known(route: &RouteReport, sort: Sort) -> Vec<&str> {
    let known = route.shared.iter().chain(&route.selected);
    let known = known.filter(|of| of.0 == sort && (sort == Sort::Cookie || is_named(&of.1)));
    let mut names: Vec<&str> = known.map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Those with which what a request gets may be stored.
fn open(route: &RouteReport, sort: Sort) -> Vec<&str> {
    let is_open = |name: &&str| !route.unstored.iter().any(|(of, other)| *of == sort && other == name);
    known(route, sort).into_iter().filter(is_open).collect()
}

/// The variable that is 1 if a request has any but those.
fn flag_of_others(what: &str, known: &[&str]) -> String {
    let mut flag = what.to_owned();
    for name in known {
        // Other characters than letters and digits by their number, so that two lists have two names.
        flag += "_not_";
        for byte in name.bytes() {
            match byte {
                byte if byte.is_ascii_alphanumeric() => flag.push(char::from(byte)),
                byte => _ = write!(flag, "_{byte:x}"),
            }
        }
    }
    flag
}

/// The fields of `$unlisted_fields` that do not keep a request from the cache, whatever their values do.
fn unlisted(route: &RouteReport) -> Vec<&str> {
    let with_rules = route.shared.iter().chain(&route.selected).filter(|of| of.0 == Sort::Field);
    let names = route.usual.iter().map(|of| of.field.as_str()).chain(with_rules.map(|of| of.1.as_str()));
    let mut names: Vec<&str> = names.filter(|name| names::is_unlisted(name.as_bytes())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The variable that is 1 if a request has another field than those that are known.
fn flag_of_unlisted(route: &RouteReport) -> String {
    let names = unlisted(route);
    if names.is_empty() { "$has_field".to_owned() } else { format!("$has_field_{:08x}", fingerprint(&names)) }
}

/// The variable that is 1 if a field has another value than the usual ones, and these. `None` if any is usual.
fn flag_of_value(of: &UsualField) -> Option<(String, Vec<&str>)> {
    let mut values: Vec<&str> = of.values.as_ref()?.iter().map(String::as_str).collect();
    values.sort_unstable_by_key(|value| value.to_ascii_lowercase());
    // A map compares without case.
    values.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    let field = of.field.replace('-', "_");
    let flag = match values[..] {
        [""] => format!("{RARE}{field}"),
        _ => format!("{RARE}{field}_{:08x}", fingerprint(&values)),
    };
    Some((flag, values))
}

/// Tells lists apart in the names of variables (FNV-1a).
fn fingerprint(list: &[&str]) -> u32 {
    let bytes = list.iter().flat_map(|text| text.bytes().chain(std::iter::once(0)));
    bytes.fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// An expression for a Cookie field that has no others, and one that the key contains only once: which of two counts is the API's to
/// say. Empty if there are none.
fn no_other_cookies(known: &[&str], route: &RouteReport) -> String {
    if known.is_empty() {
        return String::new();
    }
    let escaped = |name: &str| name.replace('.', "[.]");
    let mut once = String::new();
    for (sort, name) in &route.selected {
        if *sort == Sort::Cookie {
            let name = escaped(name);
            _ = write!(once, "(?!(?:.*[; ])?{name}=.*[; ]{name}=)");
        }
    }
    let names: Vec<String> = known.iter().map(|name| escaped(name)).collect();
    format!("~^{once}(?: *(?:{})=[^;]*(?:;|$))+ *$", names.join("|"))
}

/// An expression for `$credential_fields` without others. Empty if there are none.
fn no_other_fields(known: &[&str]) -> String {
    match known.is_empty() {
        true => String::new(),
        false => format!("~^(?:(?:{})(?:,|$))+$", known.join("|")),
    }
}

fn flag((sort, name): &(Sort, String)) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match sort {
        Sort::Certificate => "$has_certificate".to_owned(),
        Sort::Argument => format!("$has_argument_{plain}"),
        _ => format!("$has_header_{plain}"),
    }
}

fn variable((sort, name): &(Sort, String)) -> Option<String> {
    match sort {
        Sort::Field if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) => {
            Some(format!("$http_{}", name.replace('-', "_")))
        }
        Sort::Cookie => Some(format!("$cookie_{name}")),
        Sort::Certificate => Some("$ssl_client_fingerprint".to_owned()),
        // No other name is that of a variable; then requests with any argument are passed on.
        Sort::Argument if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            Some(format!("$arg_{name}"))
        }
        Sort::Argument => Some("$args".to_owned()),
        _ => None,
    }
}

fn write_location(text: &mut String, route: &RouteReport, routes: &[&RouteReport], front: Front<'_>) {
    let is_exact = route.segments.iter().all(|segment| matches!(segment, Segment::Word(_)));
    let path = if is_exact { exact(route) } else { expression(route, routes) };
    _ = writeln!(
        text,
        "\n        # {}: {} requests, {} clients, {} of API time",
        route.route,
        grouped(route.requests),
        grouped(route.clients),
        time(route.api_seconds)
    );
    route.note.iter().for_each(|note| _ = writeln!(text, "        # {note}"));
    if !route.words.is_empty() {
        let words = match route.words.len() {
            1 => "this word is cached, because there is evidence for it".to_owned(),
            count => {
                format!(
                    "these {} words are cached, because there is evidence for them",
                    grouped(count as u64)
                )
            }
        };
        _ = writeln!(text, "        # {{word}}: only {words}");
    }
    let operator = if is_exact { "=" } else { "~" };
    _ = writeln!(text, "        location {operator} \"{path}\" {{");
    text.push_str(front.pass);
    let mut line = |directive: String, evidence: &str| {
        _ = writeln!(text, "            {directive};  # {evidence}");
    };
    match route.keep_seconds {
        None => line("proxy_cache off".to_owned(), &route.reason),
        Some(seconds) => write_cache(&mut line, route, seconds),
    }
    text.push_str("        }\n");
}

fn write_cache(line: &mut impl FnMut(String, &str), route: &RouteReport, seconds: u32) {
    let clients = grouped(route.clients);
    line(
        "proxy_cache shadow".to_owned(),
        &format!("{} would-be hits, {clients} clients", grouped(route.would_be_hits)),
    );
    // A target has no space, so what follows it cannot be part of it.
    let mut key = "$scheme$http_host$request_uri".to_owned();
    route.selected.iter().filter_map(variable).for_each(|variable| key += &format!(" {variable}"));
    let evidence = match route.varies_by.is_empty() {
        true => "responses differ by the URL alone".to_owned(),
        false => format!("responses differ by {}", route.varies_by.join(", ")),
    };
    line(format!("proxy_cache_key \"{key}\""), &evidence);
    if !route.ignored.is_empty() {
        line(
            format!("proxy_cache_ignore_args {}", route.ignored.join(" ")),
            "responses were the same whatever the values of these arguments",
        );
    }
    if route.shared.is_empty() && known(route, Sort::Cookie).is_empty() {
        line(
            "proxy_cache_credentials public".to_owned(),
            "not enough evidence to cache requests with credentials",
        );
    } else {
        let shared = if route.shares.is_empty() { "the key's cookies" } else { &route.shares.join(", ") };
        let evidence = format!("requests with {shared} received the same as those without credentials");
        line("proxy_cache_credentials any".to_owned(), &evidence);
    }
    let wrong = format!(
        "{} of {} would-be hits wrong, {clients} clients",
        grouped(route.stale + route.leaks),
        grouped(route.would_be_hits)
    );
    line(
        "proxy_cache_verify 1%".to_owned(),
        "compares 1 % of the hits with the API; the first leak turns the cache off",
    );
    line("add_header X-Cache-Status $upstream_cache_status always".to_owned(), "HIT if the cache responded");
    if route.is_explicit {
        line(format!("proxy_cache_valid 200 {seconds}s"), &format!("the API's own lifetime; {wrong}"));
    } else {
        if route.has_explicit {
            line("proxy_ignore_headers Cache-Control Expires".to_owned(), "the API's own lifetime is longer");
        }
        line(format!("proxy_cache_valid 200 {seconds}s"), &wrong);
    }
    conditions::write(line, route);
}

fn exact(route: &RouteReport) -> String {
    let words = route.segments.iter().map(|segment| match segment {
        Segment::Word(word) => format!("/{}", String::from_utf8_lossy(word)),
        Segment::Any(_) => String::new(),
    });
    words.collect()
}

/// An expression for the paths of a route. Of a cached one with {word}, each word is listed; otherwise a word that is known in its
/// place by itself is none of {word}.
fn expression(route: &RouteReport, routes: &[&RouteReport]) -> String {
    let mut text = "^".to_owned();
    for (at, segment) in route.segments.iter().enumerate() {
        if *segment == Segment::Any(Fold::Word) && !route.words.is_empty() {
            let paths: Vec<String> =
                route.words.iter().map(|words| rest(&route.segments[at..], words)).collect();
            return format!("{text}(?:{})$", paths.join("|"));
        }
        text.push('/');
        text += &match segment {
            Segment::Any(Fold::Word) => any_word(route, at, routes),
            other => pattern(other),
        };
    }
    text + "$"
}

/// From the first {word} on, with its words.
fn rest(segments: &[Segment], words: &str) -> String {
    let mut words = words.split('/');
    let one = |segment: &Segment| match segment {
        Segment::Any(Fold::Word) => escaped(words.next().unwrap_or_default().as_bytes()),
        other => pattern(other),
    };
    segments.iter().map(one).map(|pattern| format!("/{pattern}")).collect()
}

/// As `paths` folds segments, so that none that was of another route falls into this one.
fn pattern(segment: &Segment) -> String {
    match segment {
        Segment::Word(word) => escaped(word),
        Segment::Any(Fold::Number) => "[0-9]+".to_owned(),
        Segment::Any(Fold::Uuid) => "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}".to_owned(),
        Segment::Any(Fold::Hash) => "(?:(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}|\
             (?=(?:[0-9]*[A-Za-z]+[0-9]){2})[A-Za-z0-9]{12,})"
            .to_owned(),
        Segment::Any(Fold::Word) => "[^/]+".to_owned(),
    }
}

fn any_word(route: &RouteReport, at: usize, routes: &[&RouteReport]) -> String {
    const END: &str = "(?:/|$)";
    let siblings = routes.iter().filter(|other| other.segments.get(..at) == Some(&route.segments[..at]));
    let mut words: Vec<String> = siblings
        .filter_map(|other| match other.segments.get(at) {
            Some(Segment::Word(word)) if !word.is_empty() => Some(escaped(word)),
            _ => None,
        })
        .collect();
    words.sort_unstable();
    words.dedup();
    words.push("[0-9]+".to_owned());
    format!("(?!(?:{}){END})[^/]+", words.join("|"))
}

fn escaped(word: &[u8]) -> String {
    let mut text = String::new();
    for byte in word {
        if b".+".contains(byte) {
            text.push('\\');
        }
        text.push(char::from(*byte));
    }
    text
}

#[cfg(test)]
mod tests;
