//! What the protocol that a request came by lets its answer be.
//!
//! Before: `client`, which frames answers; `gateway`, which passes requests on.

use super::Request;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method, Version};

impl Request {
    /// Whether the request wishes for another protocol (RFC 9110 §7.8) that its location lets it have (`proxy_upgrade`).
    /// `h2c` is none of them: an HTTP that nobody here could look into.
    pub fn is_upgrade(&self) -> bool {
        self.location().settings.pass().and_then(|pass| pass.http()).is_some_and(|http| http.upgrade)
            && self.wishes_upgrade()
    }

    fn wishes_upgrade(&self) -> bool {
        let fields = self.fields();
        self.may_switch()
            && self.framing == Framing::None
            && fields.connection_lists("upgrade")
            && fields.has(FieldId::Upgrade)
            && !fields.lists(FieldId::Upgrade, "h2c")
    }

    /// Whether its connection, or its stream, may come to speak another protocol. Who asks inside speaks none.
    pub fn may_switch(&self) -> bool {
        self.wanted.is_none() && self.head.version == Version::Http11 || self.is_extended_connect()
    }

    /// Whether it came as a CONNECT that names a protocol (RFC 8441), which alone has a path. A subrequest has the head of one and is none: its
    /// answer opens nothing.
    pub fn is_extended_connect(&self) -> bool {
        self.wanted.is_none()
            && self.head.version == Version::Http2
            && self.head.method == Method::Connect
            && self.head.authority.is_none()
    }

    /// Whether its answer goes out on a stream of a connection (HTTP/2), as a client's own does.
    pub fn is_on_stream(&self) -> bool {
        self.head.version == Version::Http2 && self.wanted.is_none()
    }
}
