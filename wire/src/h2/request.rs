//! Requests of HTTP/2 in the looks of HTTP/1: a block becomes the text that a client of HTTP/1 would have sent, and the
//! [`RequestHead`] over it, so that whoever serves requests has one kind of them.
//!
//! ```text
//! GET /path?query HTTP/2.0
//! host: of :authority
//! name: value
//! ```
//! The text has exactly one reading, the one that `crate::h1` would have of it. How a request must be made (RFC 9113 §8.2,
//! §8.3) is judged here and in `request_line`; whether its stream may carry one is not.

use super::extra::Extra;
use super::field_rules;
use super::hpack::{HpackDecoder, Line, LineName};
use super::request_error::RequestError;
use super::request_line::PseudoFields;
use crate::field::Field;
use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::h1::encode;
use crate::h1::head::RequestHead;
use crate::h1::limits::HeadLimits;
use crate::host;
use crate::span::Span;

/// Decodes the block of a request. `bytes` and `head` are emptied first; then `bytes` is the head's text
/// without an empty line, `head.length` octets, and `head` has its offsets.
///
/// `limits` bounds lines and their number as in HTTP/1; `limits.total` is counted as RFC 9113 §6.5.2 counts
/// SETTINGS_MAX_HEADER_LIST_SIZE, which is never less than the text. `allows_connect_protocol` says whether
/// this side sent SETTINGS_ENABLE_CONNECT_PROTOCOL. After an error text and head are unusable; the block was
/// decoded to its end unless it is [`RequestError::Compression`].
#[inline]
pub fn decode_request(
    decoder: &mut HpackDecoder,
    block: &[u8],
    bytes: &mut Vec<u8>,
    head: &mut RequestHead,
    limits: &HeadLimits,
    allows_connect_protocol: bool,
) -> Result<Extra, RequestError> {
    bytes.clear();
    head.clear();
    let mut request = Request {
        bytes,
        head,
        limits,
        allows_connect_protocol,
        start: Start::default(),
        has_host: false,
        cookies: Cookies::None,
    };
    let mut outcome = Ok(());
    let extent = decoder.decode(block, limits.total, |line| {
        if outcome.is_ok() {
            outcome = request.take(line);
        }
    });
    field_rules::finished(extent, outcome)?;
    request.finish()
}

struct Request<'a> {
    bytes: &'a mut Vec<u8>,
    head: &'a mut RequestHead,
    limits: &'a HeadLimits,
    allows_connect_protocol: bool,
    start: Start,
    has_host: bool,
    cookies: Cookies,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cookies {
    None,
    One,
    Scattered,
}

enum Start {
    Pseudo(PseudoFields),
    Written(Extra),
}

impl Default for Start {
    fn default() -> Start {
        Start::Pseudo(PseudoFields::default())
    }
}

impl Request<'_> {
    #[inline]
    fn take(&mut self, line: Line<'_>) -> Result<(), RequestError> {
        match (line.called, &mut self.start) {
            (LineName::Pseudo(pseudo), Start::Pseudo(fields)) => fields.take(pseudo, &line, self.bytes),
            (LineName::Pseudo(_), Start::Written(_)) => {
                Err(RequestError::Malformed("a pseudo-header after other headers"))
            }
            (LineName::Field(id), Start::Written(_)) => self.field(id, line),
            (LineName::Field(id), Start::Pseudo(_)) => {
                self.written()?;
                self.field(id, line)
            }
        }
    }

    /// Writes the request line unless it has been.
    #[inline]
    fn written(&mut self) -> Result<Extra, RequestError> {
        match &self.start {
            Start::Written(extra) => Ok(*extra),
            Start::Pseudo(fields) => {
                let extra = fields.write(self.bytes, self.head, self.limits, self.allows_connect_protocol)?;
                self.start = Start::Written(extra);
                Ok(extra)
            }
        }
    }

    #[inline]
    fn field(&mut self, id: FieldId, line: Line<'_>) -> Result<(), RequestError> {
        field_rules::check(id, &line).map_err(RequestError::Malformed)?;
        match id {
            FieldId::Host => self.host(line),
            FieldId::Cookie => self.cookie(line),
            _ => self.append(id, line),
        }
    }

    #[inline]
    fn append(&mut self, id: FieldId, line: Line<'_>) -> Result<(), RequestError> {
        let text = line.text();
        // The Host that stands for `:authority` is no line of the client's.
        let made = usize::from(self.head.host.is_some() && !self.has_host);
        if text.len() > self.limits.line {
            return Err(RequestError::TooLarge);
        }
        if self.head.fields.len().saturating_sub(made) >= self.limits.fields {
            return Err(RequestError::TooMany);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        let name = Span::new(start, start + line.name_length() as usize);
        let value = Span::new(start + line.value_start(), start + text.len() - 2);
        self.head.fields.push(Field::new(id, name, value));
        Ok(())
    }

    /// RFC 9113 §8.3.1: Host may repeat `:authority`, and replaces it if that is missing. At most one (RFC
    /// 9112 §3.2).
    fn host(&mut self, line: Line<'_>) -> Result<(), RequestError> {
        if std::mem::replace(&mut self.has_host, true) {
            return Err(RequestError::Malformed("more than one \"Host\" header"));
        }
        let Some(authority) = self.head.host else {
            host::validate(line.value()).map_err(|_| RequestError::Malformed("invalid host"))?;
            self.append(FieldId::Host, line)?;
            self.head.host = self.head.fields.last().map(|field| field.value);
            return Ok(());
        };
        if !authority.of(self.bytes).eq_ignore_ascii_case(line.value()) {
            return Err(RequestError::Malformed("\"Host\" header that differs from \":authority\""));
        }
        Ok(())
    }

    /// RFC 9113 §8.2.3: cookies may be split, which HTTP/1 has in one line.
    #[inline]
    fn cookie(&mut self, line: Line<'_>) -> Result<(), RequestError> {
        match self.head.fields.last_mut() {
            Some(last) if last.id == FieldId::Cookie => {
                if last.value.len() + b"; ".len() + line.text().len() > self.limits.line {
                    return Err(RequestError::TooLarge);
                }
                if line.value().is_empty() {
                    // It says nothing, and a line must not end with a space.
                    return Ok(());
                }
                self.bytes.truncate(last.value.end as usize);
                if !last.value.is_empty() {
                    self.bytes.extend_from_slice(b"; ");
                }
                self.bytes.extend_from_slice(line.value());
                last.value.end = self.bytes.len() as u32;
                self.bytes.extend_from_slice(b"\r\n");
                Ok(())
            }
            _ => {
                let is_first = self.cookies == Cookies::None;
                self.cookies = if is_first { Cookies::One } else { Cookies::Scattered };
                self.append(FieldId::Cookie, line)
            }
        }
    }

    fn finish(mut self) -> Result<Extra, RequestError> {
        let extra = self.written()?;
        if self.head.host.is_none() {
            return Err(RequestError::Malformed("a request with neither \":authority\" nor \"Host\" header"));
        }
        if self.cookies == Cookies::Scattered {
            self.gather_cookies()?;
        }
        self.head.finish(self.bytes.len());
        Ok(extra)
    }

    /// Rewrites the text with the cookies in one line after all others.
    #[cold]
    fn gather_cookies(&mut self) -> Result<(), RequestError> {
        let (old, fields) = (std::mem::take(self.bytes), std::mem::take(&mut self.head.fields));
        let (cookies, others): (Vec<_>, Vec<_>) =
            Fields::new(&old, &fields).iter().partition(|&(id, ..)| id == FieldId::Cookie);
        self.bytes.extend_from_slice(old.get(..self.head.line.end as usize + 2).unwrap_or_default());
        let pieces = cookies.iter().map(|&(.., value)| value).filter(|value| !value.is_empty());
        let cookie = pieces.collect::<Vec<_>>().join(&b"; "[..]);
        for (id, name, value) in others.into_iter().chain([(FieldId::Cookie, &b"cookie"[..], &cookie[..])]) {
            let start = self.bytes.len();
            encode::field(self.bytes, name, value);
            let value = Span::new(start + name.len() + 2, self.bytes.len() - 2);
            if self.bytes.len() - start > self.limits.line {
                return Err(RequestError::TooLarge);
            }
            if id == FieldId::Host {
                self.head.host = Some(value);
            }
            self.head.fields.push(Field::new(id, Span::new(start, start + name.len()), value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
