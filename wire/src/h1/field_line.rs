//! Reads field lines (RFC 9112 §5): `name: value` up to the empty line, for heads and trailers alike.
//!
//! Strict where two readers could differ: no white space before the colon, no folded lines, no CR without LF, no
//! NUL or other control byte in a value. A line may end with LF alone (RFC 9112 §2.2); trailers forbid that
//! themselves. The scan remembers where it stopped within a line, so a head that arrives byte by byte costs the
//! same as one that arrives whole.

use crate::field::Field;
use crate::field_id::FieldId;
use crate::h1::limits::{HeadLimits, Progress};
use crate::octets;
use crate::span::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// A line that is not `name: value` in the grammar.
    Bad,
    TooLarge,
    TooMany,
}

/// Where reading stopped; zero is the state before the first byte.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FieldScan {
    line: u32,
    /// Position of the colon; zero while the name is not finished.
    colon: u32,
    /// First byte that has not been examined.
    at: u32,
    id: FieldId,
    /// Whether lines that begin with `HTTP/` are skipped.
    passes_over_status_lines: bool,
}

enum Name {
    /// A name, with the position of its colon.
    Field(usize, FieldId),
    /// The empty line; the next one starts here.
    Blank(usize),
    StatusLine(usize),
    Partial(usize),
}

impl FieldScan {
    pub(crate) fn starting_at(offset: usize) -> FieldScan {
        FieldScan { line: offset as u32, at: offset as u32, ..FieldScan::default() }
    }

    /// For an upstream's head: IIS and CGI programs send another status line among the fields, which is
    /// skipped.
    pub(crate) fn of_response(offset: usize) -> FieldScan {
        FieldScan { passes_over_status_lines: true, ..FieldScan::starting_at(offset) }
    }

    /// Offset after the last whole line.
    pub(crate) fn position(&self) -> usize {
        self.line as usize
    }

    /// Reads through the empty line. Every call must be given the same bytes, extended.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        fields: &mut Vec<Field>,
        limits: &HeadLimits,
    ) -> Result<Progress, FieldError> {
        let (mut start, mut colon) = (self.line as usize, self.colon as usize);
        let (mut at, mut id) = (self.at as usize, self.id);
        let received = bytes;
        loop {
            // Only what the limits leave is looked at, so that what is found wrong first does not depend on how
            // much has come.
            let window = received.len().min(start.saturating_add(limits.line)).min(limits.total);
            let bytes = &received[..window];
            let partial =
                if window < received.len() { Err(FieldError::TooLarge) } else { Ok(Progress::Partial) };
            if colon == 0 {
                match self.name(bytes, start, at)? {
                    Name::Field(found, found_id) => (colon, id) = (found, found_id),
                    Name::Blank(next) => {
                        *self = FieldScan::starting_at(next);
                        return Ok(Progress::Complete);
                    }
                    Name::StatusLine(next) => {
                        (start, at) = (next, next);
                        continue;
                    }
                    Name::Partial(seen) => {
                        (self.line, self.colon, self.at, self.id) = (start as u32, 0, seen as u32, id);
                        return partial;
                    }
                }
                at = colon + 1;
            }
            let end = value_end(bytes, at)?;
            let next = match bytes.get(end) {
                Some(b'\n') => end + 1,
                Some(_) if end + 1 < bytes.len() => end + 2,
                _ => {
                    (self.line, self.colon, self.at, self.id) = (start as u32, colon as u32, end as u32, id);
                    return partial;
                }
            };
            if fields.len() >= limits.fields {
                return Err(FieldError::TooMany);
            }
            let value = trimmed(bytes, colon + 1, end);
            fields.push(Field::new(id, Span::new(start, colon), value));
            (start, colon, at) = (next, 0, next);
        }
    }

    /// Reads the name of the line at `start`; everything before `at` has been examined.
    #[inline(always)]
    fn name(&self, bytes: &[u8], start: usize, at: usize) -> Result<Name, FieldError> {
        let Some(&first) = bytes.get(start) else {
            return Ok(Name::Partial(start));
        };
        if !octets::is_token_byte(first) {
            return blank(bytes, start);
        }
        let colon = octets::next_colon(bytes, at);
        match FieldId::of(&bytes[start..colon]) {
            // A name of the table is a token, so only others have to be looked at byte by byte.
            id if id != FieldId::Other && colon < bytes.len() => Ok(Name::Field(colon, id)),
            _ if self.passes_over_status_lines && bytes[start..].starts_with(b"HTTP/") => {
                Ok(match memchr::memchr(b'\n', &bytes[at..]) {
                    Some(length) => Name::StatusLine(at + length + 1),
                    None => Name::Partial(bytes.len()),
                })
            }
            _ => unknown_name(bytes, at, colon),
        }
    }
}

fn unknown_name(bytes: &[u8], at: usize, colon: usize) -> Result<Name, FieldError> {
    match bytes[at..colon].iter().position(|&byte| !octets::is_token_byte(byte)) {
        Some(_) => Err(FieldError::Bad),
        None if colon == bytes.len() => Ok(Name::Partial(colon)),
        None => Ok(Name::Field(colon, FieldId::Other)),
    }
}

/// The line starts with a byte that no name starts with: the empty line, or an error (a folded line too).
fn blank(bytes: &[u8], start: usize) -> Result<Name, FieldError> {
    match &bytes[start..] {
        [b'\n', ..] => Ok(Name::Blank(start + 1)),
        [b'\r', b'\n', ..] => Ok(Name::Blank(start + 2)),
        [b'\r'] => Ok(Name::Partial(start)),
        _ => Err(FieldError::Bad),
    }
}

/// Where the value ends: at LF, at CR LF, at a CR that is the last byte available, or where the bytes end.
#[inline(always)]
fn value_end(bytes: &[u8], mut at: usize) -> Result<usize, FieldError> {
    loop {
        at = octets::next_control(bytes, at);
        match bytes.get(at) {
            Some(b'\r') if bytes.get(at + 1).is_none_or(|&next| next == b'\n') => return Ok(at),
            Some(b'\n') | None => return Ok(at),
            Some(b'\t') => at += 1,
            Some(_) => return Err(FieldError::Bad),
        }
    }
}

#[inline(always)]
fn trimmed(bytes: &[u8], mut start: usize, mut end: usize) -> Span {
    while start < end && matches!(bytes[start], b' ' | b'\t') {
        start += 1;
    }
    while start < end && matches!(bytes[end - 1], b' ' | b'\t') {
        end -= 1;
    }
    Span::new(start, end)
}
