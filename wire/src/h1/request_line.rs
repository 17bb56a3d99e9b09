//! Reads the request line (RFC 9112 §3).
//!
//! Exactly one space stands between the parts; nothing is repaired. Empty lines before it are skipped, but only a
//! few of them. As in [`crate::h1::field_line`], the scan goes on where it stopped. Next: `target_form`, which takes
//! the target apart.

use crate::h1::head_error::HeadError;
use crate::octets::{self, NOT_TARGET, TARGET_RAW};
use crate::span::Span;
use crate::version::Version;

/// Empty lines skipped before a request line (RFC 9112 §2.2 asks for at least one).
const EMPTY_LINES: u8 = 16;

/// Longer text without a line end cannot become valid.
const VERSION_AND_END: usize = b"HTTP/1.1\r\n".len();

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
    /// Where the line starts, after the empty lines.
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }
}

impl RequestLine {
    /// Whether the target has bytes that must be percent-encoded.
    pub(crate) fn target_is_raw(&self) -> bool {
        self.classes & TARGET_RAW != 0
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLine {
    pub(crate) method: Span,
    pub(crate) target: Span,
    /// The classes of the target's bytes, see [`octets`].
    pub(crate) classes: u8,
    pub(crate) version: Version,
    /// Offset after the version.
    pub(crate) end: u32,
    /// Offset after the line end.
    pub(crate) next: usize,
}

/// `None` if more bytes are needed.
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

/// Reads empty lines and the method; false if more bytes are needed.
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

/// False if more bytes are needed.
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
