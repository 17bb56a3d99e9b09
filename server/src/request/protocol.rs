//! What the protocol that a request came by lets its answer be.
//!
//! Before: `client`, which frames answers; `gateway`, which passes requests on.

use super::Request;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Version};

impl Request {
    /// Whether the request wishes for another protocol (RFC 9110 §7.8) that its location lets it have (`proxy_upgrade`).
    /// `h2c` is none of them: an HTTP that nobody here could look into.
    pub fn is_upgrade(&self) -> bool {
        self.location().settings.pass().and_then(|pass| pass.http()).is_some_and(|http| http.upgrade)
            && self.wishes_upgrade()
    }

    fn wishes_upgrade(&self) -> bool {
        let fields = self.fields();
        self.is_http11()
            && self.framing == Framing::None
            && fields.connection_lists("upgrade")
            && fields.has(FieldId::Upgrade)
            && !fields.lists(FieldId::Upgrade, "h2c")
    }

    /// Whether the request speaks HTTP/1.1, so that its connection may come to speak another protocol.
    pub fn is_http11(&self) -> bool {
        self.head.version == Version::Http11
    }

    /// Whether its answer goes out on a stream of a connection (HTTP/2), as a client's own does.
    pub fn is_on_stream(&self) -> bool {
        self.head.version == Version::Http2 && self.wanted.is_none()
    }
}
