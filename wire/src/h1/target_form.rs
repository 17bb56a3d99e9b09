//! Tells the four forms of a request target apart (RFC 9112 §3.2), for every version of HTTP.
//!
//! The bytes were looked at before: their classes are known, and none of them is one that no target has. Next: `head`.

use crate::h1::head_error::HeadError;
use crate::host;
use crate::method::Method;
use crate::octets::{FRAGMENT, QUERY};
use crate::span::Span;

pub(crate) struct Target {
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    pub(crate) authority: Option<Span>,
}

/// `classes` are those of its bytes, see [`crate::octets`]. A fragment is no part of any form and is left
/// out.
#[inline]
pub(crate) fn take_apart(
    bytes: &[u8],
    method: Method,
    mut target: Span,
    classes: u8,
) -> Result<Target, HeadError> {
    if classes & FRAGMENT != 0 {
        let length = memchr::memchr(b'#', target.of(bytes)).unwrap_or(target.len());
        target.end = target.start + length as u32;
    }
    let text = target.of(bytes);
    if method == Method::Connect {
        let authority = host::validate(text)?;
        // RFC 9112 §3.2.3: the port is not optional here.
        if authority.port.is_none_or(<[u8]>::is_empty) {
            return Err(HeadError::BadTarget);
        }
        return Ok(Target { path: Span::default(), query: None, authority: Some(target) });
    }
    match text {
        [b'/', ..] if classes & QUERY == 0 => Ok(Target { path: target, query: None, authority: None }),
        [b'/', ..] => {
            let (path, query) = split(bytes, target);
            Ok(Target { path, query, authority: None })
        }
        b"*" if method == Method::Options => Ok(Target { path: target, query: None, authority: None }),
        _ => absolute(bytes, target),
    }
}

/// `http://host[:port][/path][?query]`, `https://` likewise (RFC 9112 §3.2.2).
fn absolute(bytes: &[u8], target: Span) -> Result<Target, HeadError> {
    let text = target.of(bytes);
    let scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        .ok_or(HeadError::BadTarget)?
        .len();
    let rest = &text[scheme..];
    let length = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    // User information before an `@` fails here: RFC 9110 §4.2.4 has it treated as an error.
    host::validate(&rest[..length])?;
    let start = target.start + scheme as u32;
    let end = start + length as u32;
    let (path, query) = split(bytes, Span { start: end, end: target.end });
    // Without a path it is the root's, and the scheme ends with a slash to point at.
    let path = if path.is_empty() { Span { start: start - 1, end: start } } else { path };
    Ok(Target { path, query, authority: Some(Span { start, end }) })
}

#[inline]
fn split(bytes: &[u8], target: Span) -> (Span, Option<Span>) {
    match memchr::memchr(b'?', target.of(bytes)) {
        None => (target, None),
        Some(at) => {
            let at = target.start + at as u32;
            (Span { start: target.start, end: at }, Some(Span { start: at + 1, end: target.end }))
        }
    }
}
