//! The head of an upstream's answer.
//!
//! As strict as for requests, but for the reason, which nobody reads. It never decides whether the answer is used.
//! Next: `crate::h1::framing`.

use crate::field::Field;
use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::h1::field_line::FieldScan;
use crate::h1::head_error::ResponseHeadError;
use crate::h1::limits::{HeadLimits, Progress};
use crate::headers::Headers;
use crate::octets;
use crate::span::Span;
use crate::version::Version;

/// A response's start line and fields, as offsets into the bytes it was parsed from.
#[derive(Debug, Clone, Default)]
pub struct ResponseHead {
    pub version: Version,
    /// The status code, 100 to 999.
    pub status: u16,
    /// As it came; may be empty.
    pub reason: Span,
    pub fields: Vec<Field>,
    /// Including its empty line; zero until it is whole.
    pub length: usize,
    state: ResponseState,
}

#[derive(Debug, Clone, Copy)]
enum ResponseState {
    /// The status line; so many bytes have been searched for its end.
    Line(u32),
    Fields(FieldScan),
    Done,
}

impl Default for ResponseState {
    fn default() -> ResponseState {
        ResponseState::Line(0)
    }
}

impl ResponseHead {
    /// The same contract as [`RequestHead::parse`](crate::h1::head::RequestHead::parse). After an error the
    /// upstream's connection is unusable.
    #[inline]
    pub fn parse(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Progress, ResponseHeadError> {
        if let ResponseState::Line(searched) = self.state {
            // Whoever does not speak HTTP/1 is told from one who does at the first differing byte.
            let known = bytes.len().min(b"HTTP/1.".len());
            if bytes[..known] != b"HTTP/1."[..known] {
                return Err(ResponseHeadError::BadStatusLine);
            }
            let end = memchr::memchr(b'\n', &bytes[(searched as usize).min(bytes.len())..]);
            let next = end.map_or(bytes.len(), |end| searched as usize + end + 1);
            if next > limits.line {
                return Err(ResponseHeadError::TooLarge);
            }
            if end.is_none() {
                self.state = ResponseState::Line(next as u32);
                return Ok(Progress::Partial);
            }
            let line = &bytes[..next - 1];
            self.status_line(line.strip_suffix(b"\r").unwrap_or(line))?;
            self.state = ResponseState::Fields(FieldScan::of_response(next));
        }
        if let ResponseState::Fields(scan) = &mut self.state {
            if scan.read(bytes, &mut self.fields, limits)? == Progress::Partial {
                return Ok(Progress::Partial);
            }
            self.length = scan.position();
            self.state = ResponseState::Done;
        }
        Ok(Progress::Complete)
    }

    /// Fills the head with fields that did not come as HTTP/1 text. `bytes` is cleared first and becomes what
    /// its spans point into.
    pub fn take(&mut self, status: u16, headers: &Headers, bytes: &mut Vec<u8>) {
        let fields = headers.view();
        bytes.clear();
        bytes.extend_from_slice(fields.bytes());
        self.clear();
        (self.version, self.status, self.length) = (Version::Http2, status, bytes.len());
        self.fields.extend(fields.lines());
        self.state = ResponseState::Done;
    }

    /// Reads a CGI response's head (RFC 3875 §6.2), which has no status line: the status is that of its
    /// Status field, 302 with only a Location, and otherwise 200. The same contract as
    /// [`ResponseHead::parse`].
    pub fn parse_cgi(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Progress, ResponseHeadError> {
        if let ResponseState::Line(_) = self.state {
            self.state = ResponseState::Fields(FieldScan::of_response(0));
        }
        if let ResponseState::Fields(scan) = &mut self.state {
            if scan.read(bytes, &mut self.fields, limits)? == Progress::Partial {
                return Ok(Progress::Partial);
            }
            self.length = scan.position();
            self.state = ResponseState::Done;
            self.status = cgi_status(self.view(bytes))?;
        }
        Ok(Progress::Complete)
    }

    /// Reads the head of an application that may begin with a status line, as uWSGI's do, and is CGI's
    /// otherwise. The same contract as [`ResponseHead::parse`].
    pub fn parse_application(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
    ) -> Result<Progress, ResponseHeadError> {
        const START: &[u8] = b"HTTP/";
        match bytes.strip_prefix(START) {
            Some(_) => self.parse(bytes, limits),
            // No field has a slash in its name, so what else begins so is none.
            None if START.starts_with(bytes) => Ok(Progress::Partial),
            None => self.parse_cgi(bytes, limits),
        }
    }

    /// `HTTP/1.d SP ddd [SP reason]` (RFC 9112 §4). The space before an absent reason may be missing, as with
    /// some servers.
    fn status_line(&mut self, line: &[u8]) -> Result<(), ResponseHeadError> {
        let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9', b' ', rest @ ..] = line else {
            return Err(ResponseHeadError::BadStatusLine);
        };
        let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else {
            return Err(ResponseHeadError::BadStatusLine);
        };
        let start = match reason {
            [] => line.len(),
            [b' ', text @ ..] if octets::is_value(text) => line.len() - text.len(),
            _ => return Err(ResponseHeadError::BadStatusLine),
        };
        self.version = if *minor == b'0' { Version::Http10 } else { Version::Http11 };
        self.status = [a, b, c].into_iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
        self.reason = Span::new(start, line.len());
        Ok(())
    }

    /// `bytes` are those the head was parsed from.
    #[inline]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Fields<'a> {
        Fields::new(bytes, &self.fields)
    }

    /// Whether another response follows this one (RFC 9110 §15.2); 101 is not interim.
    #[inline]
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Keeps the memory of the field list.
    #[inline]
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = ResponseHead { fields, ..ResponseHead::default() };
    }
}

/// The first status that a CGI response's fields give, as in nginx. CGI has no interim responses.
fn cgi_status(fields: Fields<'_>) -> Result<u16, ResponseHeadError> {
    match fields.all_named(b"status").next() {
        None if fields.has(FieldId::Location) => Ok(302),
        None => Ok(200),
        Some(
            [a @ b'2'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']
            | [a @ b'2'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..],
        ) => Ok([a, b, c].into_iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))),
        _ => Err(ResponseHeadError::BadStatus),
    }
}
