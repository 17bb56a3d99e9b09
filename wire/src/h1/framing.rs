//! Where the content of a message ends (RFC 9112 §6.3), decided once and strictly.
//!
//! Anything that two readers could take differently is an error, also where the RFC would let a recipient choose:
//! both Content-Length and Transfer-Encoding, repeated lengths even if equal, transfer codings in HTTP/1.0. After
//! an error nobody knows where the next message starts, so the connection ends.

use crate::connection;
use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::list;
use crate::method::Method;
use crate::octets;
use crate::version::Version;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no content; the next message follows the head.
    None,
    /// At most 2^63-1. Content-Length zero is `Length(0)`.
    Length(u64),
    /// Chunked (RFC 9112 §7.1).
    Chunked,
    /// Until the connection ends, for responses only, or until the stream ends (HTTP/2).
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingError {
    /// Content-Length is no plain decimal number up to 2^63-1.
    BadLength,
    /// More than one Content-Length line, or a list.
    ManyLengths,
    /// Both Content-Length and Transfer-Encoding.
    LengthAndCoding,
    /// Transfer-Encoding in HTTP/1.0.
    CodingInHttp10,
    /// Transfer-Encoding is no list of tokens, or chunked is not the last coding, or repeated.
    BadCoding,
    UnknownCoding,
    /// Connection lists more than [`connection::MOST_OPTIONS`].
    ManyOptions,
    /// A request field that may stand only once is repeated.
    Repeated(FieldId),
}

impl FramingError {
    /// The status of the response to a request; for an upstream's response always 502.
    pub fn status(self) -> u16 {
        match self {
            FramingError::UnknownCoding => 501,
            _ => 400,
        }
    }

    /// Follows "client sent " or "upstream sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            FramingError::BadLength => "invalid \"Content-Length\" header",
            FramingError::ManyLengths => "duplicate \"Content-Length\" header",
            FramingError::LengthAndCoding => {
                "\"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
            }
            FramingError::CodingInHttp10 => "HTTP/1.0 message with \"Transfer-Encoding\" header",
            FramingError::BadCoding => "invalid \"Transfer-Encoding\" header",
            FramingError::UnknownCoding => "unknown \"Transfer-Encoding\"",
            FramingError::ManyOptions => "too many options in \"Connection\" header",
            FramingError::Repeated(_) => "duplicate header",
        }
    }
}

/// Where the content of a request ends. Without any framing field there is none (RFC 9112 §6.3, rule 7).
/// After an error, respond with its status and close.
#[inline]
pub fn request(version: Version, fields: Fields<'_>) -> Result<Framing, FramingError> {
    let framing = announced(version, fields)?.unwrap_or(Framing::None);
    match repeated(fields) {
        Some(id) => Err(FramingError::Repeated(id)),
        None => Ok(framing),
    }
}

/// A field that applies to the whole request but is repeated, so that two readers could understand two
/// requests. nginx refuses the same ones.
#[inline]
fn repeated(fields: Fields<'_>) -> Option<FieldId> {
    let mut seen = 0u128;
    for field in fields.lines() {
        if is_single(field.id) {
            let bit = 1 << field.id.number();
            if seen & bit != 0 {
                return Some(field.id);
            }
            seen |= bit;
        }
    }
    None
}

#[inline]
fn is_single(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::Authorization
            | FieldId::ContentRange
            | FieldId::Expect
            | FieldId::IfMatch
            | FieldId::IfModifiedSince
            | FieldId::IfNoneMatch
            | FieldId::IfRange
            | FieldId::IfUnmodifiedSince
    )
}

/// Where the content of a response ends: the request's method and the status decide first (rules 1 and 2).
/// `Framing::None` for 1xx includes 101, after which another protocol starts. Fields that frame nothing, as
/// in a response to HEAD, are checked all the same.
#[inline]
pub fn response(
    request_method: Method,
    version: Version,
    status: u16,
    fields: Fields<'_>,
) -> Result<Framing, FramingError> {
    let announced = announced(version, fields)?;
    let is_empty = matches!(status, 100..=199 | 204 | 304)
        || request_method == Method::Head
        || (request_method == Method::Connect && (200..=299).contains(&status));
    Ok(if is_empty { Framing::None } else { announced.unwrap_or(Framing::Close) })
}

/// Where the content of a CGI response ends: where its stream does, or earlier by Content-Length.
/// Transfer-Encoding is ignored (RFC 3875 §6.3.4).
pub fn cgi(request_method: Method, status: u16, fields: Fields<'_>) -> Result<Framing, FramingError> {
    let mut lengths = fields.all(FieldId::ContentLength);
    let announced = match (lengths.next(), lengths.next()) {
        (Some(length), None) => Some(Framing::Length(content_length(length)?)),
        (Some(_), Some(_)) => return Err(FramingError::ManyLengths),
        (None, _) => None,
    };
    let is_empty = matches!(status, 204 | 304) || request_method == Method::Head;
    Ok(if is_empty { Framing::None } else { announced.unwrap_or(Framing::Close) })
}

/// Whether the sender allows another message on the connection (RFC 9112 §9.3): HTTP/1.1 unless `close`,
/// HTTP/1.0 only with `keep-alive`.
#[inline]
pub fn is_persistent(version: Version, fields: Fields<'_>) -> bool {
    if !fields.has(FieldId::Connection) {
        return version == Version::Http11;
    }
    !fields.connection_lists("close") && (version == Version::Http11 || fields.connection_lists("keep-alive"))
}

/// By the framing fields; `None` if there are none.
#[inline]
fn announced(version: Version, fields: Fields<'_>) -> Result<Option<Framing>, FramingError> {
    let mut length = None;
    let mut codings = false;
    let mut options = 0;
    for field in fields.lines() {
        match field.id {
            FieldId::ContentLength if length.is_some() => return Err(FramingError::ManyLengths),
            FieldId::ContentLength => length = Some(content_length(field.value.of(fields.bytes()))?),
            FieldId::TransferEncoding => codings = true,
            FieldId::Connection => options += field.value.len(),
            _ => {}
        }
    }
    if connection::lists_too_many(fields, options) {
        return Err(FramingError::ManyOptions);
    }
    match (length, codings) {
        (None, false) => Ok(None),
        (Some(length), false) => Ok(Some(Framing::Length(length))),
        (Some(_), true) => Err(FramingError::LengthAndCoding),
        (None, true) if version == Version::Http10 => Err(FramingError::CodingInHttp10),
        (None, true) => chunked(fields).map(Some),
    }
}

fn content_length(value: &[u8]) -> Result<u64, FramingError> {
    match octets::decimal(value) {
        Some(length) if length <= i64::MAX as u64 => Ok(length),
        None if value.contains(&b',') => Err(FramingError::ManyLengths),
        _ => Err(FramingError::BadLength),
    }
}

/// Only `chunked`, once and alone, is accepted; the rest of the function finds the right error.
fn chunked(fields: Fields<'_>) -> Result<Framing, FramingError> {
    let mut lines = fields.all(FieldId::TransferEncoding);
    if let (Some(only), None) = (lines.next(), lines.next())
        && only.eq_ignore_ascii_case(b"chunked")
    {
        return Ok(Framing::Chunked);
    }
    let codings = || fields.all(FieldId::TransferEncoding).flat_map(list::elements);
    if codings().any(|coding| !octets::is_token(coding)) {
        return Err(FramingError::BadCoding);
    }
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let (all, chunked) = (codings().count(), codings().filter(|coding| is_chunked(coding)).count());
    match chunked {
        // Of several codings chunked has to be the last (RFC 9112 §6.3, rule 4).
        0 if all == 1 => Err(FramingError::UnknownCoding),
        1 if all > 1 && codings().last().is_some_and(is_chunked) => Err(FramingError::UnknownCoding),
        _ => Err(FramingError::BadCoding),
    }
}

#[cfg(test)]
mod tests;
