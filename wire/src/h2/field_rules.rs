//! What a regular field of HTTP/2 must keep to (RFC 9113 §8.2), and sections that have nothing but such fields: trailers.
//!
//! Whoever decodes a head applies the same rules to its fields. Next: `request`, `response`.

use super::hpack::{Extent, HpackDecoder, Line};
use crate::field_id::FieldId;
use crate::h1::limits::HeadLimits;
use crate::headers::Headers;

/// Why a section of fields is refused. What is wrong stands behind "client sent " or "upstream sent ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldsError {
    /// The block cannot be decoded: a connection error of type COMPRESSION_ERROR.
    Compression(&'static str),
    /// The message is malformed: a stream error of type PROTOCOL_ERROR (§8.1.1).
    Malformed(&'static str),
    /// It is past a limit. The connection goes on.
    TooLarge,
}

/// Decodes the block of a trailer section. Fields past `limits` are not kept, and what counts for `limits.total` is counted
/// as [`HpackDecoder::decode`] does.
///
/// # Errors
/// See [`FieldsError`]. The block was decoded to its end unless it is [`FieldsError::Compression`].
pub fn decode_trailers(
    decoder: &mut HpackDecoder,
    block: &[u8],
    limits: &HeadLimits,
) -> Result<Headers, FieldsError> {
    let mut trailers = Headers::new();
    let mut outcome = Ok(());
    let extent = decoder.decode(block, limits.total, |line| {
        if outcome.is_ok() {
            outcome = match line.field() {
                Some(id) => keep(&mut trailers, id, line, limits),
                // §8.1: pseudo-header fields never stand in trailers.
                None => Err(FieldsError::Malformed("a pseudo-header in trailers")),
            };
        }
    });
    finished(extent, outcome)?;
    Ok(trailers)
}

/// Judges a regular field and adds it.
pub(super) fn keep(
    headers: &mut Headers,
    id: FieldId,
    line: Line<'_>,
    limits: &HeadLimits,
) -> Result<(), FieldsError> {
    check(id, &line).map_err(FieldsError::Malformed)?;
    if line.text().len() > limits.line || headers.view().len() >= limits.fields {
        return Err(FieldsError::TooLarge);
    }
    headers.append(id, line.name(), line.value());
    Ok(())
}

/// What comes first: what concerns the connection, then the earliest line that was wrong, then the size of all.
pub(super) fn finished<E: From<FieldsError>>(
    extent: Result<Extent, super::hpack::CompressionError>,
    outcome: Result<(), E>,
) -> Result<(), E> {
    let extent = extent.map_err(|error| FieldsError::Compression(error.0))?;
    outcome?;
    match extent {
        Extent::Whole => Ok(()),
        Extent::Overlarge => Err(FieldsError::TooLarge.into()),
    }
}

/// What is wrong with a regular field: its name or value (§8.2.1), or that it belongs to a connection (§8.2.2).
#[inline]
pub(super) fn check(id: FieldId, line: &Line<'_>) -> Result<(), &'static str> {
    if let Some(flaw) = line.flaw {
        return Err(flaw.what());
    }
    match id {
        FieldId::Connection
        | FieldId::KeepAlive
        | FieldId::ProxyConnection
        | FieldId::TransferEncoding
        | FieldId::Upgrade => Err("a connection-specific header"),
        FieldId::Te if !line.value().eq_ignore_ascii_case(b"trailers") => Err("invalid \"TE\" header"),
        _ => Ok(()),
    }
}
