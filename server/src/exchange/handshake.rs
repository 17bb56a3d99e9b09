//! Whether a 101 opens the WebSocket that a stream asks for (RFC 8441 §5).
//!
//! A client of HTTP/1.1 judges that itself, for the key is its own. On a stream the key is ours (`connection/h2/heads`), and so is the judgement:
//! the 200 that the client gets says that the handshake went well.

use crate::request::Request;
use crate::variables;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_conf::model::Pass;
use millstream_upstream::{Connection, ExchangeError};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{FieldId, Fields};
use sha1::{Digest, Sha1};
use std::borrow::Cow;

const KEY: &str = "sec-websocket-key";
/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Fails if a 101 does not open the WebSocket of the request.
pub(super) fn check(
    request: &Request,
    proxy: &Pass,
    connection: &Connection,
    head: &ResponseHead,
) -> Result<(), ExchangeError> {
    if !request.is_extended_connect() {
        return Ok(());
    }
    let key = sent_key(request, proxy);
    let fields = head.view(connection.head_bytes());
    judge(fields, key.as_deref()).map_err(ExchangeError::BadHandshake)
}

fn sent_key<'r>(request: &'r Request, proxy: &Pass) -> Option<Cow<'r, [u8]>> {
    if let Some(set) = proxy.set_headers().iter().find(|set| set.name.eq_ignore_ascii_case(KEY)) {
        let value = variables::value(&set.value, request).trim_ascii().to_vec();
        return (!value.is_empty()).then_some(Cow::Owned(value));
    }
    let own = request.fields().named(KEY.as_bytes()).filter(|_| proxy.exchange.passes_fields);
    own.map(Cow::Borrowed)
}

/// A client's checks (RFC 6455 §4.1), without those of optional features.
fn judge(fields: Fields<'_>, key: Option<&[u8]>) -> Result<(), &'static str> {
    let mut protocols = fields.all(FieldId::Upgrade);
    match (protocols.next(), protocols.next()) {
        (None, _) => return Err("without \"Upgrade\""),
        (Some(only), None) if only.eq_ignore_ascii_case(b"websocket") => {}
        _ => return Err("with an \"Upgrade\" other than \"websocket\""),
    }
    if !fields.connection_lists("upgrade") {
        return Err("without \"Connection: upgrade\"");
    }
    let Some(key) = key else { return Ok(()) };
    let mut accepts = fields.all_named(b"sec-websocket-accept");
    match (accepts.next(), accepts.next()) {
        (None, _) => Err("without \"Sec-WebSocket-Accept\""),
        (Some(only), None) if only == accept(key).as_bytes() => Ok(()),
        _ => Err("whose \"Sec-WebSocket-Accept\" does not match the key"),
    }
}

/// RFC 6455 §4.2.2.
fn accept(key: &[u8]) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_computed() {
        // RFC 6455 §1.3.
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
