//! What a regular field of HTTP/2 must keep to (RFC 9113 §8.2), and sections that have nothing but such fields: trailers.
//!
//! Whoever decodes a head applies the same rules to its fields. Next: `request`, `response`.

use super::hpack::{Extent, HpackDecoder, Line};
use crate::field_id::FieldId;
use crate::h1::limits::HeadLimits;
use crate::headers::Headers;

/// Why a section of fields is refused. The text follows "client sent " or "upstream sent ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldsError {
    /// The block cannot be decoded: a connection error of type COMPRESSION_ERROR.
    Compression(&'static str),
    /// The message is malformed: a stream error of type PROTOCOL_ERROR (§8.1.1).
    Malformed(&'static str),
    /// Past a limit. The connection goes on.
    TooLarge,
}

/// Decodes a trailer section. Fields past `limits` are dropped; `limits.total` is counted as in
/// [`HpackDecoder::decode`]. After an error the block was decoded to its end unless it is
/// [`FieldsError::Compression`].
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

/// Reports first what concerns the connection, then the earliest wrong line, then the total size.
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

/// A wrong name or value (§8.2.1), or a field of the connection (§8.2.2).
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
