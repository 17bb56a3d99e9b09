//! The request head.
//!
//! Parsing puts the request line and the fields together and checks what concerns both: Host, target, version. It never
//! decides who serves the request. Next: `crate::h1::framing`, which says where the content ends.

use crate::field::Field;
use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::h1::field_line::FieldScan;
use crate::h1::head_error::HeadError;
use crate::h1::limits::{HeadLimits, Progress};
use crate::h1::request_line::{self, LineScan, RequestLine};
use crate::h1::target_form::{self, Target};
use crate::host;
use crate::method::Method;
use crate::span::Span;
use crate::target;
use crate::version::Version;

/// A request's start line and fields, as offsets into the bytes it was parsed from.
#[derive(Debug, Clone, Default)]
pub struct RequestHead {
    pub method: Method,
    /// Also of an unknown method.
    pub method_text: Span,
    /// The whole request line without its end: nginx's `$request`.
    pub line: Span,
    /// As it came, a fragment included. To send it on, use [`RequestHead::write_origin_form`].
    pub target: Span,
    /// As it came, percent-coded; `*` of `OPTIONS *`; one slash if an absolute target has none. Empty for
    /// CONNECT.
    pub path: Span,
    /// After the first `?`; `None` without a `?`.
    pub query: Option<Span>,
    /// `host[:port]` of the target, if it is absolute or of CONNECT. It then replaces the Host field (RFC
    /// 9112 §3.2.2).
    pub authority: Option<Span>,
    /// The value of the Host field; a valid `host[:port]`.
    pub host: Option<Span>,
    /// Whether the target has bytes outside of RFC 3986 (raw UTF-8, `"`, `|` …), which must be
    /// percent-encoded before it is sent on: see [`RequestHead::write_origin_form`].
    pub target_is_raw: bool,
    pub version: Version,
    pub fields: Vec<Field>,
    /// Bytes of the head, including the empty line and skipped empty lines before it; zero until it is whole.
    pub length: usize,
    state: RequestState,
}

#[derive(Debug, Clone, Copy)]
enum RequestState {
    Line(LineScan),
    Fields(FieldScan),
    Done,
}

impl Default for RequestState {
    fn default() -> RequestState {
        RequestState::Line(LineScan::default())
    }
}

impl RequestHead {
    /// After `Partial`, call again with the same bytes followed by more; nothing is examined twice. After
    /// `Complete`, call [`RequestHead::clear`] before the next head. Fails with the first error, as early as
    /// it can be seen; the head is then unusable.
    #[inline]
    pub fn parse(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Progress, HeadError> {
        if let RequestState::Line(scan) = &mut self.state {
            let Some(line) = read_line(bytes, scan, limits)? else {
                return Ok(Progress::Partial);
            };
            self.method = Method::of(line.method.of(bytes));
            self.method_text = line.method;
            self.line = Span { start: line.method.start, end: line.end };
            self.target = line.target;
            self.target_is_raw = line.target_is_raw();
            self.version = line.version;
            let Target { path, query, authority } =
                target_form::take_apart(bytes, self.method, line.target, line.classes)?;
            (self.path, self.query, self.authority) = (path, query, authority);
            self.state = RequestState::Fields(FieldScan::starting_at(line.next));
        }
        if let RequestState::Fields(scan) = &mut self.state {
            if scan.read(bytes, &mut self.fields, limits)? == Progress::Partial {
                return Ok(Progress::Partial);
            }
            self.length = scan.position();
            self.state = RequestState::Done;
            self.check_host(bytes)?;
        }
        Ok(Progress::Complete)
    }

    /// RFC 9112 §3.2: exactly one Host in HTTP/1.1, at most one in HTTP/1.0, and a valid one.
    fn check_host(&mut self, bytes: &[u8]) -> Result<(), HeadError> {
        for field in &self.fields {
            if field.id == FieldId::Host && self.host.replace(field.value).is_some() {
                return Err(HeadError::ManyHosts);
            }
        }
        match self.host {
            Some(value) => {
                host::validate(value.of(bytes))?;
                Ok(())
            }
            None if self.version == Version::Http10 => Ok(()),
            None => Err(HeadError::MissingHost),
        }
    }

    /// `bytes` are those the head was parsed from.
    #[inline]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Fields<'a> {
        Fields::new(bytes, &self.fields)
    }

    /// The target's authority or else the Host field's value; `None` only in HTTP/1.0.
    #[inline]
    pub fn host_text<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        self.authority.or(self.host).map(|span| span.of(bytes))
    }

    /// Appends path and query in origin form (RFC 9112 §3.2.1): bytes that RFC 3986 does not allow in a
    /// target are percent-encoded, all others stay as they came.
    pub fn write_origin_form(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let parts = [Some(self.path), self.query];
        for (index, part) in parts.into_iter().flatten().enumerate() {
            if index == 1 {
                out.push(b'?');
            }
            if self.target_is_raw {
                target::encode_raw(part.of(bytes), out);
            } else {
                out.extend_from_slice(part.of(bytes));
            }
        }
    }

    /// Completes a head that was not made from HTTP/1, of `length` bytes of text.
    #[inline]
    pub(crate) fn finish(&mut self, length: usize) {
        self.length = length;
        self.state = RequestState::Done;
    }

    /// Keeps the memory of the field list.
    #[inline]
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = RequestHead { fields, ..RequestHead::default() };
    }
}

/// Reads the request line within its limit. Only what the limit leaves is examined, so that the first error
/// found does not depend on how much has come; skipped empty lines move the limit on.
#[inline]
fn read_line(
    bytes: &[u8],
    scan: &mut LineScan,
    limits: &HeadLimits,
) -> Result<Option<RequestLine>, HeadError> {
    loop {
        let start = scan.start();
        let window = bytes.len().min(start.saturating_add(limits.line));
        match request_line::read(&bytes[..window], scan)? {
            Some(line) => return Ok(Some(line)),
            None if window == bytes.len() => return Ok(None),
            None if scan.start() == start => return Err(HeadError::TargetTooLong),
            None => {}
        }
    }
}
