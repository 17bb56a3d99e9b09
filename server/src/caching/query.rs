//! A body that belongs to the key: that of QUERY (RFC 10008), a safe method whose body says what is asked for, and one that a template reads
//! as `$request_body`.
//!
//! The body is read before the look-up, up to a bound; a larger one goes past the cache and is passed on from what was
//! read. Key and body are compared whole: no digest stands in for a body that a client chose. Next: `keyed`.

use crate::client::{BodyProgress, Client, ClientFailure};
use crate::request::{KeptBody, Request};
use millstream_cache::key::Parts;
use millstream_cache::policy;
use millstream_conf::model::ProxyCache;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method};
use std::rc::Rc;

/// Bytes of a body that is part of a key; key and body together have the bound of keys.
pub const LARGEST: usize = 8 * 1024;

/// Fields that define the body's meaning.
const META: [FieldId; 3] = [FieldId::ContentType, FieldId::ContentEncoding, FieldId::ContentLanguage];

/// Whether the body must be read before the key is known: it is part of the key, or the location's cache reads
/// `$request_body`.
pub fn waits_for_body(request: &Request, cache: &ProxyCache) -> bool {
    matches!(request.received.body, KeptBody::Unread)
        && belongs_to_key(request)
        && policy::looks_up(cache, request.method)
}

fn belongs_to_key(request: &Request) -> bool {
    request.method == Method::Query
        || has_body(request) && request.generation.shared.reads.keys_bodies(request.route.location)
}

pub fn has_body(request: &Request) -> bool {
    request.received.framing != Framing::None || !matches!(request.received.body, KeptBody::Unread)
}

pub async fn read_body(request: &mut Request, client: &mut Client) -> Result<(), ClientFailure> {
    let (mut bytes, mut is_whole) = (Vec::new(), !client.body_pending());
    while !is_whole && bytes.len() <= LARGEST {
        is_whole = client.read_body(request, &mut bytes).await? == BodyProgress::End;
    }
    request.received.body = if is_whole { KeptBody::Memory(Rc::new(bytes)) } else { KeptBody::Part(bytes) };
    Ok(())
}

pub fn is_too_large(request: &Request) -> bool {
    match &request.received.body {
        KeptBody::Unread => false,
        KeptBody::Memory(bytes) => bytes.len() > LARGEST && belongs_to_key(request),
        _ => belongs_to_key(request),
    }
}

/// Appends fields and body. Each name appears only with its field, so that an absent field differs from an
/// empty one.
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
    append(if let KeptBody::Memory(bytes) = &request.received.body { bytes } else { &[] }, key, parts);
}

fn append(value: &[u8], key: &mut Vec<u8>, parts: &mut Parts) {
    let start = key.len();
    key.extend_from_slice(value);
    parts.note(start, key.len());
}
