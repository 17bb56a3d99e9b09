//! Evaluating variables and templates during a request.
//!
//! A value is appended to a buffer; whether there was one at all is told apart from an empty one, because the log
//! writes `-` only for the former. Nothing is looked up by name but fields, cookies and arguments.
//! Next: `conf`'s table of variables, whose every row is evaluated here.

pub mod file_path;
mod upstream;
mod secure_link;
mod referer;
pub mod userid;
mod connections;
mod client_certificate;
mod builtin;
pub mod personal;
mod made;
#[cfg(test)]
mod tests;

pub use builtin::NGINX_VERSION;
pub use connections::Connections;

use crate::remembered::RememberedId;
use crate::request::Request;
use millstream_cache::key::{Parts, TooLong};
use millstream_conf::model::{Level, MadeId, Part, Template, Variable};
use millstream_conf::slots;
use millstream_conf::template::{self, Scope};
use millstream_conf::variables::Builtin;
use millstream_telemetry::about::About;
use millstream_wire::{FieldId, Fields, target};
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Value,
    Nothing,
}

pub fn evaluate(template: &Template, request: &Request, out: &mut Vec<u8>) {
    for part in &template.parts {
        match part {
            Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Part::Variable(variable) => {
                append(variable, request, out);
            }
        }
    }
}

/// Evaluates a `proxy_cache_key` into an empty buffer; nothing else makes keys. `append` yields each
/// variable's value, `more` may add text, marking variable parts.
#[inline]
pub fn evaluate_key(
    template: &Template,
    key: &mut Vec<u8>,
    append: impl Fn(&Variable, &mut Vec<u8>),
    more: impl FnOnce(&mut Vec<u8>, &mut Parts),
) -> Result<(), TooLong> {
    debug_assert!(key.is_empty());
    let mut parts = Parts::default();
    for part in &template.parts {
        match part {
            Part::Literal(text) => key.extend_from_slice(text.as_bytes()),
            Part::Variable(variable) => {
                let start = key.len();
                append(variable, key);
                parts.note(start, key.len());
            }
        }
    }
    more(key, &mut parts);
    parts.close(key)
}

pub fn value(template: &Template, request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    evaluate(template, request, &mut out);
    out
}

/// For names not known at load, in lower case.
pub fn named(name: &str, request: &Request, out: &mut Vec<u8>) -> Found {
    let http = request.generation.http();
    if let Some(number) = slots::number(&http.slots, name) {
        return append(&Variable::Slot(number), request, out);
    }
    if let Some(at) = http.made.iter().position(|made| made.name.eq_ignore_ascii_case(name)) {
        return made::append(MadeId(at as u16), request, out);
    }
    template::variable(name, &Scope::default())
        .map_or(Found::Nothing, |variable| append(&variable, request, out))
}

/// Neither empty nor `0` (`if=`, `proxy_cache_bypass` …).
pub fn holds(template: &Template, request: &Request, scratch: &mut Vec<u8>) -> bool {
    scratch.clear();
    evaluate(template, request, scratch);
    !scratch.is_empty() && scratch.as_slice() != b"0"
}

#[inline]
pub fn any_holds(templates: &[Template], request: &Request) -> bool {
    let mut scratch = Vec::new();
    templates.iter().any(|template| holds(template, request, &mut scratch))
}

pub fn append(variable: &Variable, request: &Request, out: &mut Vec<u8>) -> Found {
    match variable {
        Variable::Builtin(builtin) if builtin.stays() => append_once(*builtin, request, out),
        Variable::Builtin(builtin) => builtin::append(*builtin, request, out),
        Variable::SentTarget => upstream::sent_target(request, out),
        Variable::SentOrigin => upstream::sent_origin(request, out),
        Variable::RequestHeader(name) => request_field(request, name, out),
        // No head is made yet; what a response with `X-Accel-Redirect` left to it is there all the same, as in nginx.
        Variable::SentHeader(name) if request.sent.head.is_empty() => match &request.descent.accel_fields {
            Some(fields) => join(fields.view(), name, out),
            None => Found::Nothing,
        },
        Variable::SentHeader(name) => {
            sent_field(request.sent.head.split(|&byte| byte == b'\n').skip(1), name, out)
        }
        Variable::SentTrailer(name) => {
            sent_field(request.sent.trailers.split(|&byte| byte == b'\n'), name, out)
        }
        Variable::UpstreamTrailer(name) => match &request.tries.trailers {
            Some(trailers) => join(trailers.view(), name, out),
            None => Found::Nothing,
        },
        Variable::ProxyProtocolTlv(wanted) => {
            request.connection.proxied.as_ref().map_or(Found::Nothing, |said| {
                said.write_tlv(*wanted, out).map_or(Found::Nothing, |()| Found::Value)
            })
        }
        Variable::UpstreamHeader(name) => match &request.tries.headers {
            Some(headers) => join(headers.view(), name, out),
            None => Found::Nothing,
        },
        Variable::UpstreamCookie(name) => upstream::cookie(request, name, out),
        Variable::Cookie(name) => request
            .fields()
            .all(FieldId::Cookie)
            .find_map(|value| target::cookie(value, name.as_bytes()))
            .map_or(Found::Nothing, |value| give(value, out)),
        Variable::Argument(name) => request
            .query()
            .and_then(|query| target::argument(query, name.as_bytes()))
            .map_or(Found::Nothing, |value| give(value, out)),
        Variable::Capture(number) => {
            let captures = request.route.captures.borrow();
            match captures.groups.get(usize::from(*number)) {
                Some(&(start, end)) => give(&captures.text[start as usize..end as usize], out),
                None => Found::Nothing,
            }
        }
        Variable::Slot(number) => match request.route.slots.value(*number) {
            Some(value) => give(&value, out),
            None => not_set(request, *number, out),
        },
        Variable::Made(id) => made::append(*id, request, out),
    }
}

/// Its value when first read, whatever path and location are in force now.
fn append_once(builtin: Builtin, request: &Request, out: &mut Vec<u8>) -> Found {
    let id = RememberedId::Builtin(builtin);
    if let Some(is_there) = request.route.made.append(id, out) {
        return if is_there { Found::Value } else { Found::Nothing };
    }
    // What a link's hash is made of may name the result.
    if !request.route.made.begin(id) {
        return Found::Nothing;
    }
    let (start, shows) = (out.len(), personal::of_read(builtin, request));
    let found = builtin::append(builtin, request, out);
    request.route.made.end_with((found == Found::Value).then(|| &out[start..]), shows);
    found
}

/// An unset variable: a capture has no value, any other is empty with a warning once
/// (`uninitialized_variable_warn`).
fn not_set(request: &Request, number: u16, out: &mut Vec<u8>) -> Found {
    if let Some(variable) = unset(number, request) {
        return append(&variable, request, out);
    }
    let Some(slot) = request.generation.http().slots.get(usize::from(number)) else { return Found::Nothing };
    if !slot.is_set {
        return Found::Nothing;
    }
    if request.route.slots.miss(number) && request.location().settings.rewrite.warn {
        tell(request, Level::Warn, format_args!("using uninitialized \"{}\" variable", slot.name));
    }
    Found::Value
}

/// The value until it is set: that of a made variable of this name, or as in nginx of a built-in one
/// (`$http_…`, `$invalid_referer`).
fn unset(number: u16, request: &Request) -> Option<Variable> {
    let http = request.generation.http();
    let name = &http.slots.get(usize::from(number))?.name;
    match http.made.iter().position(|made| made.name.eq_ignore_ascii_case(name)) {
        Some(at) => Some(Variable::Made(MadeId(at as u16))),
        None => template::variable(name, &Scope::default()),
    }
}

fn tell(request: &Request, level: Level, what: fmt::Arguments<'_>) {
    let logs = &request.generation.shared.logs.errors[request.route.location.0 as usize];
    logs.tell(level, what, || About::connection(request.connection.serial));
}

fn give(value: &[u8], out: &mut Vec<u8>) -> Found {
    out.extend_from_slice(value);
    Found::Value
}

fn give_some(value: Option<&[u8]>, out: &mut Vec<u8>) -> Found {
    value.map_or(Found::Nothing, |value| give(value, out))
}

/// Joined as RFC 9110 §5.3 allows (cookies by `; `).
fn join(fields: Fields<'_>, name: &str, out: &mut Vec<u8>) -> Found {
    let separator: &[u8] = if name == "cookie" { b"; " } else { b", " };
    join_values(fields.all_named(name.as_bytes()), separator, out)
}

fn join_values<'v>(values: impl Iterator<Item = &'v [u8]>, separator: &[u8], out: &mut Vec<u8>) -> Found {
    let mut found = Found::Nothing;
    for value in values {
        if found == Found::Value {
            out.extend_from_slice(separator);
        }
        found = give(value, out);
    }
    found
}

/// As in nginx underscores in names count as hyphens, unless such fields are dropped.
fn request_field(request: &Request, name: &str, out: &mut Vec<u8>) -> Found {
    let settings = &request.server().settings.client_header;
    if settings.ignore_invalid && !settings.underscores || !name.contains('-') {
        return join(request.fields(), name, out);
    }
    let (id, name) = (FieldId::of(name.as_bytes()), name.as_bytes());
    join_values(request.fields().all_spelled(id, name), b", ", out)
}

/// Searches lines, as a head is kept only if the configuration needs it.
fn sent_field<'a>(lines: impl Iterator<Item = &'a [u8]>, name: &str, out: &mut Vec<u8>) -> Found {
    let mut found = Found::Nothing;
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        if line[..colon].eq_ignore_ascii_case(name.as_bytes()) {
            if found == Found::Value {
                out.extend_from_slice(b", ");
            }
            found = give(line[colon + 1..].trim_ascii(), out);
        }
    }
    found
}

/// With three decimals, as nginx's times.
fn seconds(time: Duration, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(time.as_secs()).as_bytes());
    let millis = time.subsec_millis();
    out.extend_from_slice(&[
        b'.',
        b'0' + (millis / 100) as u8,
        b'0' + (millis / 10 % 10) as u8,
        b'0' + (millis % 10) as u8,
    ]);
}
