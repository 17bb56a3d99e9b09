//! The spellings of one URL: something may be stored under each, and whoever purges writes one of them.
//!
//! A location captures from the decoded path, and a key may have the path as it came, or as it is sent on. Nothing is decided here.

use crate::request::Request;
use crate::route::capture;
use crate::shows::Shows;
use crate::variables;
use millstream_cache::key;
use millstream_conf::model::{LocationMatch, Regex, Template, Variable};
use millstream_conf::variables::Builtin;
use millstream_wire::spelling::canonical;
use millstream_wire::target::{encode_raw, escape_uri};

/// A target as written, as a browser sends it, as RFC 3986 §6.2.2 normalizes it, and the last two with
/// lower-case escapes, as WordPress writes them. Other spellings are purged too, but not reported as found.
pub(super) fn targets(target: &[u8]) -> Vec<Vec<u8>> {
    let mut sent = Vec::with_capacity(target.len());
    encode_raw(target, &mut sent);
    recase(&mut sent, <[u8]>::make_ascii_uppercase);
    let mut found = vec![target.to_vec(), sent, canonical(target).into_owned()];
    for at in 1..3 {
        let mut lower = found[at].clone();
        recase(&mut lower, <[u8]>::make_ascii_lowercase);
        found.push(lower);
    }
    each_once(found)
}

fn each_once(texts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut seen = Vec::with_capacity(texts.len());
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

fn recase(target: &mut [u8], change: fn(&mut [u8])) {
    for at in 0..target.len().saturating_sub(2) {
        if target[at] == b'%' {
            change(&mut target[at + 1..at + 3]);
        }
    }
}

pub(super) struct SpelledKeys {
    /// The key with captures decoded, as received, and as sent upstream; nginx evaluates the first.
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) targets: Vec<Vec<u8>>,
}

impl SpelledKeys {
    pub(super) fn of(request: &mut Request, template: &Template) -> SpelledKeys {
        let mut found = SpelledKeys { keys: vec![whole(template, request, false)], targets: Vec::new() };
        let generation = request.generation.clone();
        let location = generation.http().location(request.route.location);
        if let LocationMatch::Regex(regex) = &location.matches
            && !request.route.is_rewritten
        {
            for path in targets(request.received.head.path.of(&request.received.bytes)) {
                found.as_it_came(request, template, regex, &path);
            }
            // As the location was found.
            take(request, regex, &request.route.uri.clone());
        }
        found.keys.push(whole(template, request, true));
        found.keys = each_once(found.keys);
        found
    }

    pub(super) fn and(self, other: SpelledKeys) -> SpelledKeys {
        let all = |one: Vec<_>, other| each_once([one, other].concat());
        SpelledKeys { keys: all(self.keys, other.keys), targets: all(self.targets, other.targets) }
    }

    pub(super) fn has(&self, text: &[u8]) -> bool {
        self.keys.iter().any(|key| key::text(key) == text)
    }

    fn as_it_came(&mut self, request: &mut Request, template: &Template, regex: &Regex, path: &[u8]) {
        if !take(request, regex, path) {
            return;
        }
        self.keys.push(whole(template, request, false));
        let captures = request.route.captures.borrow();
        for &(start, end) in captures.groups.iter().skip(1) {
            let group = &captures.text[start as usize..end as usize];
            let slash: &[u8] = if group.starts_with(b"/") { b"" } else { b"/" };
            let query = request.query().map(|query| [b"?", query].concat()).unwrap_or_default();
            self.targets.push([slash, group, &query].concat());
        }
    }
}

/// Captures from another spelling of the path; false if the expression does not match.
fn take(request: &mut Request, regex: &Regex, path: &[u8]) -> bool {
    let Ok(Some(captured)) = capture(regex, path) else { return false };
    request.route.made.clear();
    request.take_captures(captured, path, Shows::NOTHING);
    true
}

/// One that is too long is its text alone: nothing is stored under it.
fn whole(template: &Template, request: &Request, escapes: bool) -> Vec<u8> {
    let is_decoded = |variable: &Variable| {
        matches!(
            variable,
            Variable::Capture(_) | Variable::Slot(_) | Variable::Builtin(Builtin::Uri | Builtin::DocumentUri)
        )
    };
    let append = |variable: &Variable, out: &mut Vec<u8>| {
        let start = out.len();
        variables::append(variable, request, out);
        if escapes && is_decoded(variable) {
            let value = out.split_off(start);
            escape_uri(&value, out);
        }
    };
    let mut key = Vec::new();
    _ = variables::evaluate_key(template, &mut key, append, |_, _| {});
    key
}
