//! Reads the request line (RFC 9112 §3) and tells the four forms of a target apart (§3.2).
//!
//! Exactly one space stands between the parts; nothing is repaired. Empty lines before it are skipped, but only a
//! few of them. As in [`crate::h1::field_line`], the scan goes on where it stopped.

use crate::h1::head_error::HeadError;
use crate::host;
use crate::method::Method;
use crate::octets::{self, FRAGMENT, NOT_TARGET, QUERY, TARGET_RAW};
use crate::span::Span;
use crate::version::Version;

/// Empty lines that are skipped before a request line (RFC 9112 §2.2 asks for at least one).
const EMPTY_LINES: u8 = 16;

/// A version and its line end are never longer; what is longer has no end that would save it.
const VERSION_AND_END: usize = b"HTTP/1.1\r\n".len();

/// Where reading stopped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineScan {
    start: u32,
    at: u32,
    method_end: u32,
    target_end: u32,
    empty_lines: u8,
    classes: u8,
}

impl LineScan {
    /// Where the line starts, behind the empty lines.
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }
}

impl RequestLine {
    /// Whether the target has bytes that are to be percent-encoded.
    pub(crate) fn target_is_raw(&self) -> bool {
        self.classes & TARGET_RAW != 0
    }
}

/// A whole request line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLine {
    pub(crate) method: Span,
    pub(crate) target: Span,
    /// The classes of the target's bytes, see [`octets`].
    pub(crate) classes: u8,
    pub(crate) version: Version,
    /// Offset behind the version.
    pub(crate) end: u32,
    /// Offset behind the line end.
    pub(crate) next: usize,
}

/// Reads on; `None` when more bytes are needed.
#[inline]
pub(crate) fn read(bytes: &[u8], scan: &mut LineScan) -> Result<Option<RequestLine>, HeadError> {
    if scan.method_end == 0 && !method(bytes, scan)? {
        return Ok(None);
    }
    if scan.target_end == 0 && !target_bytes(bytes, scan)? {
        return Ok(None);
    }
    let start = scan.target_end as usize + 1;
    let rest = bytes.get(start..).unwrap_or_default();
    let (version, length, next) = if rest.starts_with(b"HTTP/1.1\r\n") {
        (Version::Http11, 8, 10)
    } else {
        match memchr::memchr(b'\n', &rest[..rest.len().min(VERSION_AND_END + 1)]) {
            Some(end) => {
                let text = &rest[..end];
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                (version(text)?, text.len(), end + 1)
            }
            None if rest.len() > VERSION_AND_END => return Err(HeadError::BadRequestLine),
            None => return Ok(None),
        }
    };
    Ok(Some(RequestLine {
        method: Span { start: scan.start, end: scan.method_end },
        target: Span { start: scan.method_end + 1, end: scan.target_end },
        classes: scan.classes,
        version,
        end: (start + length) as u32,
        next: start + next,
    }))
}

/// Reads empty lines and the method; false when more bytes are needed.
#[inline]
fn method(bytes: &[u8], scan: &mut LineScan) -> Result<bool, HeadError> {
    let mut at = scan.at as usize;
    if bytes.starts_with(b"GET ") {
        at = 3;
    }
    while at < bytes.len() && octets::is_token_byte(bytes[at]) {
        at += 1;
    }
    while at == scan.start as usize && at < bytes.len() {
        // No method starts here, so this is an empty line or an error.
        at += match &bytes[at..] {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            [b'\r'] => return Ok(false),
            _ => return Err(HeadError::BadMethod),
        };
        scan.empty_lines += 1;
        if scan.empty_lines > EMPTY_LINES {
            return Err(HeadError::BadRequestLine);
        }
        (scan.start, scan.at) = (at as u32, at as u32);
        while at < bytes.len() && octets::is_token_byte(bytes[at]) {
            at += 1;
        }
    }
    scan.at = at as u32;
    match bytes.get(at) {
        None => Ok(false),
        Some(b' ') => {
            scan.method_end = at as u32;
            scan.at = at as u32 + 1;
            Ok(true)
        }
        Some(b'\r' | b'\n') => Err(HeadError::BadRequestLine),
        Some(_) => Err(HeadError::BadMethod),
    }
}

/// Reads the target; false when more bytes are needed.
#[inline]
fn target_bytes(bytes: &[u8], scan: &mut LineScan) -> Result<bool, HeadError> {
    let at = octets::next_space(bytes, scan.at as usize);
    scan.classes |= octets::classes_of(&bytes[scan.at as usize..at]);
    scan.at = at as u32;
    if scan.classes & NOT_TARGET != 0 {
        return Err(HeadError::BadTarget);
    }
    let is_empty = at == scan.method_end as usize + 1;
    match bytes.get(at) {
        None => Ok(false),
        Some(b' ' | b'\r' | b'\n') if is_empty => Err(HeadError::BadRequestLine),
        Some(b' ') => {
            scan.target_end = at as u32;
            Ok(true)
        }
        Some(b'\n') => Err(HeadError::OldVersion),
        Some(b'\r') => match bytes.get(at + 1) {
            Some(b'\n') => Err(HeadError::OldVersion),
            Some(_) => Err(HeadError::BadRequestLine),
            None => Ok(false),
        },
        Some(_) => Err(HeadError::BadTarget),
    }
}

fn version(text: &[u8]) -> Result<Version, HeadError> {
    match text {
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Ok(Version::Http11),
        [b'H', b'T', b'T', b'P', b'/', b'0', b'.', b'0'..=b'9'] => Err(HeadError::OldVersion),
        [b'H', b'T', b'T', b'P', b'/', b'2'..=b'9', b'.', b'0'..=b'9'] => Err(HeadError::BadVersion),
        _ => Err(HeadError::BadRequestLine),
    }
}

/// The parts of a target.
pub(crate) struct Target {
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    pub(crate) authority: Option<Span>,
}

/// Takes a target apart by its form. A fragment is no part of any of them and is left out.
#[inline]
pub(crate) fn target(bytes: &[u8], method: Method, line: &RequestLine) -> Result<Target, HeadError> {
    let mut target = line.target;
    if line.classes & FRAGMENT != 0 {
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
        [b'/', ..] if line.classes & QUERY == 0 => Ok(Target { path: target, query: None, authority: None }),
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
