//! Paths and queries: nginx's normalised `$uri`, escaping it again, and looking up arguments and cookies.
//!
//! Bytes come in as they stood in the request and go out into a buffer the caller owns. Nothing here knows what a
//! location or a file is. A path that cannot be normalised is a client error (400).

use crate::octets::{is_target_byte, is_unreserved, trim};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetError {
    /// `%` without two hexadecimal digits behind it.
    BadEscape,
    Nul,
    AboveRoot,
    NoSlash,
}

impl TargetError {
    /// Follows "client sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            TargetError::BadEscape => "invalid percent-encoding in the path",
            TargetError::Nul => "encoded NUL byte in the path",
            TargetError::AboveRoot => "a path above the root",
            TargetError::NoSlash => "a path without leading slash",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normal {
    /// The path is its own normal form; `out` was not touched.
    Unchanged,
    Written,
}

/// Normalises a path as nginx does for `$uri` and location matching: percent-decoding, then `.` and `..`
/// segments, and with `merge_slashes` runs of slashes become one. An encoded slash counts as a slash. `out`
/// is cleared first when it is written to.
#[inline]
pub fn normalise(path: &[u8], merge_slashes: bool, out: &mut Vec<u8>) -> Result<Normal, TargetError> {
    if path.first() != Some(&b'/') {
        // `*` of OPTIONS has no other form.
        return if path == b"*" { Ok(Normal::Unchanged) } else { Err(TargetError::NoSlash) };
    }
    if !needs_work(path, merge_slashes) {
        return Ok(Normal::Unchanged);
    }
    out.clear();
    let mut at = 1;
    out.push(b'/');
    while at <= path.len() {
        // `out` ends with the slash that opens this segment.
        let start = out.len();
        let mut slash = false;
        while at < path.len() && !slash {
            let (byte, next) = decoded(path, at)?;
            at = next;
            slash = byte == b'/';
            if !slash {
                out.push(byte);
            }
        }
        match &out[start..] {
            b"." => out.truncate(start),
            b".." => climb(out, start)?,
            b"" if merge_slashes || !slash => {}
            _ if slash => out.push(b'/'),
            _ => {}
        }
        if !slash {
            break;
        }
    }
    Ok(Normal::Written)
}

/// Drops a `..` segment and the one before it.
fn climb(out: &mut Vec<u8>, start: usize) -> Result<(), TargetError> {
    let opening = start - 1;
    let above = out[..opening].iter().rposition(|&byte| byte == b'/').ok_or(TargetError::AboveRoot)?;
    out.truncate(above + 1);
    Ok(())
}

/// Whether there are an escape, a dot after a slash, or two slashes.
#[inline]
fn needs_work(path: &[u8], merge_slashes: bool) -> bool {
    let mut before = 0;
    for &byte in path {
        let found = byte == b'%' || (before == b'/' && (byte == b'.' || (merge_slashes && byte == b'/')));
        if found {
            return true;
        }
        before = byte;
    }
    false
}

fn decoded(path: &[u8], at: usize) -> Result<(u8, usize), TargetError> {
    match path[at..] {
        [b'%', high, low, ..] => match (hex(high), hex(low)) {
            (Some(0), Some(0)) => Err(TargetError::Nul),
            (Some(high), Some(low)) => Ok((high << 4 | low, at + 3)),
            _ => Err(TargetError::BadEscape),
        },
        [b'%', ..] => Err(TargetError::BadEscape),
        _ => Ok((path[at], at + 1)),
    }
}

pub(crate) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Decodes leniently, as nginx's `ngx_unescape_uri` does for URIs from an upstream, a page or `Destination`:
/// of an invalid escape the percent sign and the one digit after it are dropped.
pub fn decode(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        match (text[at], text.get(at + 1).copied().and_then(hex), text.get(at + 2).copied().and_then(hex)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            (b'%', Some(_), None) => at += 3,
            (b'%', None, _) => {
                out.extend(text.get(at + 1));
                at += 2;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// The decoded path and the query of a URI from an upstream or a page; `None` if the path is empty, has a
/// NUL, or a `..` segment before or after decoding. Nothing else is normalised: two slashes stay two.
pub fn safe(uri: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (path, query) = match memchr::memchr(b'?', uri) {
        Some(at) => (&uri[..at], &uri[at + 1..]),
        None => (uri, &b""[..]),
    };
    let mut decoded = Vec::with_capacity(path.len());
    decode(path, &mut decoded);
    let goes_up = |path: &[u8]| path.split(|&byte| byte == b'/').any(|segment| segment == b"..");
    let is_safe = !path.is_empty() && !goes_up(path) && !goes_up(&decoded) && !decoded.contains(&0);
    is_safe.then_some((decoded, query))
}

/// Appends a normalised path for a request line, `%`, `?` and `#` percent-encoded, since the path was
/// decoded. The set is nginx's for `proxy_pass` with a URI (and for redirects made from `$uri`), extended by
/// what RFC 3986 does not allow.
pub fn escape_uri(path: &[u8], out: &mut Vec<u8>) {
    encode(path, out, |byte| is_target_byte(byte) && !matches!(byte, b'%' | b'?'));
}

/// Appends undecoded text of a target; only bytes that RFC 3986 does not allow in a target are encoded.
pub fn encode_raw(text: &[u8], out: &mut Vec<u8>) {
    encode(text, out, is_target_byte);
}

/// Appends text as one argument of a query: everything but unreserved bytes is encoded (nginx's
/// `escape_uri_component`).
pub fn escape_component(text: &[u8], out: &mut Vec<u8>) {
    encode(text, out, is_unreserved);
}

/// Appends a piece of a path as part of a query, so that it cannot end an argument (nginx's set for captures
/// of a `rewrite`).
pub fn escape_argument(text: &[u8], out: &mut Vec<u8>) {
    encode(text, out, |byte| is_target_byte(byte) && !matches!(byte, b'%' | b'&' | b'+' | b';' | b'?'));
}

/// Appends text as part of a link in a page: encodes invalid bytes, `%`, `#` and quotes, but not the
/// delimiters of a URL (nginx's set for SSI's `echo`).
pub fn escape_link(text: &[u8], out: &mut Vec<u8>) {
    encode(text, out, |byte| byte.is_ascii_graphic() && !b"\"#%'<>\\^`{|}".contains(&byte));
}

/// Removes percent-encoding that a redirect does not need, up to its query, as nginx does after a `rewrite`:
/// an invalid escape loses its `%`.
pub fn relax(url: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = url.get(at) {
        let digits = (url.get(at + 1).copied().and_then(hex), url.get(at + 2).copied().and_then(hex));
        match (byte, digits) {
            (b'?', _) => break,
            (b'%', (Some(high), Some(low))) => {
                let decoded = high << 4 | low;
                match decoded {
                    b'&'..0x7f => out.push(decoded),
                    _ => out.extend_from_slice(&url[at..at + 3]),
                }
                at += 3;
                if decoded == b'?' {
                    break;
                }
            }
            (b'%', (None, _)) => at += 1,
            (b'%', (Some(_), None)) => at += 3,
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out.extend_from_slice(url.get(at..).unwrap_or_default());
}

#[inline]
fn encode(text: &[u8], out: &mut Vec<u8>, is_plain: impl Fn(u8) -> bool) {
    out.reserve(text.len());
    for &byte in text {
        if is_plain(byte) {
            out.push(byte);
        } else {
            encode_byte(byte, out);
        }
    }
}

pub(crate) fn encode_byte(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', DIGITS[byte as usize >> 4], DIGITS[byte as usize & 15]]);
}

/// The first argument's value, not decoded: nginx's `$arg_name`. Case is ignored, as in nginx; an argument
/// without `=` or without a name is skipped.
pub fn argument<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if name.is_empty() {
        return None;
    }
    query.split(|&byte| byte == b'&').find_map(|argument| match argument.split_at_checked(name.len()) {
        Some((found, [b'=', value @ ..])) if found.eq_ignore_ascii_case(name) => Some(value),
        _ => None,
    })
}

/// The first cookie of this name in one `Cookie` line: nginx's `$cookie_name`. Case is ignored, as in nginx.
pub fn cookie<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    line.split(|&byte| byte == b';').find_map(|pair| {
        let pair = trim(pair);
        let equals = memchr::memchr(b'=', pair)?;
        trim(&pair[..equals]).eq_ignore_ascii_case(name).then(|| trim(&pair[equals + 1..]))
    })
}

#[cfg(test)]
mod tests;
