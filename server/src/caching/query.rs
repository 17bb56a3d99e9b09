//! QUERY (RFC 10008): a safe method whose body says what is asked for, so that it belongs to the key.
//!
//! The body is read before the look-up, up to a bound; a larger one goes past the cache and is passed on from what was
//! read. Key and body are compared whole: no digest stands in for a body that a client chose. Next: `keyed`.

use crate::client::{BodyProgress, Client, ClientFailure};
use crate::request::{EarlyBody, Request};
use millstream_cache::key::Parts;
use millstream_conf::model::ProxyCache;
use millstream_wire::{FieldId, Method};

/// Bodies that are a part of a key, at the most; key and body together have the bound of keys.
pub const LARGEST: usize = 8 * 1024;

/// Fields that say what the body means.
const META: [FieldId; 3] = [FieldId::ContentType, FieldId::ContentEncoding, FieldId::ContentLanguage];

/// Whether the body of this request must be read before its key is known.
pub fn waits_for_body(request: &Request, cache: &ProxyCache) -> bool {
    request.method == Method::Query && cache.cache_query && request.body.is_none()
}

/// Reads the body as far as it may be a part of a key.
pub async fn read_body(request: &mut Request, client: &mut Client) -> Result<(), ClientFailure> {
    let mut body = EarlyBody { bytes: Vec::new(), is_whole: !client.body_pending() };
    while !body.is_whole && body.bytes.len() <= LARGEST {
        body.is_whole = client.read_body(request, &mut body.bytes).await? == BodyProgress::End;
    }
    request.body = Some(Box::new(body));
    Ok(())
}

/// Whether the body was found to be too large for a key.
pub fn is_too_large(request: &Request) -> bool {
    request.body.as_ref().is_some_and(|body| !body.is_whole || body.bytes.len() > LARGEST)
}

/// Appends what the body is and says. The names are ours and only there with their fields, so an absent field differs
/// from an empty one.
pub fn append_content(request: &Request, key: &mut Vec<u8>, parts: &mut Parts) {
    key.extend_from_slice(b"\nQUERY");
    for id in META {
        if let Some(value) = request.field(id) {
            key.extend_from_slice(b"\n");
            key.extend_from_slice(id.name().as_bytes());
            key.extend_from_slice(b": ");
            append(value, key, parts);
        }
    }
    key.extend_from_slice(b"\n\n");
    append(request.body.as_ref().map_or(&[][..], |body| &body.bytes), key, parts);
}

fn append(value: &[u8], key: &mut Vec<u8>, parts: &mut Parts) {
    let start = key.len();
    key.extend_from_slice(value);
    parts.note(start, key.len());
}
