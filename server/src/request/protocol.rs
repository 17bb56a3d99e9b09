//! What the protocol that a request came by lets its answer be.
//!
//! Before: `client`, which frames answers; `exchange`, which passes requests on.

use super::{Request, SubrequestPart};
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method, Version};

impl Request {
    /// Whether it asks for a protocol (RFC 9110 §7.8) that `proxy_upgrade` allows. `h2c` is excluded: no one
    /// here could inspect it.
    pub fn is_upgrade(&self) -> bool {
        self.location().settings.pass().and_then(|pass| pass.http()).is_some_and(|http| http.upgrade)
            && self.wishes_upgrade()
    }

    fn wishes_upgrade(&self) -> bool {
        let fields = self.fields();
        self.may_switch()
            && self.received.framing == Framing::None
            && fields.connection_lists("upgrade")
            && fields.has(FieldId::Upgrade)
            && !fields.lists(FieldId::Upgrade, "h2c")
    }

    /// Whether its connection or stream may change protocol; never for a subrequest.
    pub fn may_switch(&self) -> bool {
        self.descent.wanted.is_none() && self.received.head.version == Version::Http11
            || self.is_extended_connect()
    }

    /// Whether it is an extended CONNECT (RFC 8441), the only one with a path. A subrequest has such a head
    /// but opens nothing.
    pub fn is_extended_connect(&self) -> bool {
        self.descent.wanted.is_none()
            && self.received.head.version == Version::Http2
            && self.received.head.method == Method::Connect
            && self.received.head.authority.is_none()
    }

    pub fn is_on_stream(&self) -> bool {
        self.received.head.version == Version::Http2 && self.descent.wanted.is_none()
    }

    /// The status sent for a response's own status: that of an `error_page` response.
    pub fn outgoing(&self, own: u16) -> u16 {
        self.descent.error_status.unwrap_or(own)
    }

    /// By the status that is sent (RFC 9110 §6.4.1).
    pub fn gets_body(&self, own: u16) -> bool {
        self.wants_body() && !matches!(self.outgoing(own), 100..=199 | 204 | 304)
    }

    /// False for HEAD and for subrequests that want only a head.
    pub fn wants_body(&self) -> bool {
        self.method != Method::Head && self.descent.wanted != Some(SubrequestPart::Head)
    }
}
