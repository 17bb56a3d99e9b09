//! What a request says beside its head: `:scheme` and `:protocol`.
//!
//! Plain values. Next: `request_line`, which reads them.

/// What a request contains that HTTP/1 has no place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// `:scheme`, which all but a plain CONNECT have.
    pub scheme: Option<Scheme>,
    /// `:protocol` of an extended CONNECT (RFC 8441). The head then has the method CONNECT, yet a path and no
    /// authority.
    pub protocol: Option<ConnectProtocol>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
    /// Any other (RFC 3986 §3.1).
    Other,
}

impl Scheme {
    /// `None` if it is not a scheme.
    pub(super) fn of(text: &[u8]) -> Option<Scheme> {
        match text {
            b"https" => Some(Scheme::Https),
            b"http" => Some(Scheme::Http),
            _ if text.eq_ignore_ascii_case(b"https") => Some(Scheme::Https),
            _ if text.eq_ignore_ascii_case(b"http") => Some(Scheme::Http),
            [first, rest @ ..] if first.is_ascii_alphabetic() => rest
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
                .then_some(Scheme::Other),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectProtocol {
    /// `websocket` (RFC 8441 §5).
    WebSocket,
    /// Any other; becomes 501 if it is not supported.
    Other,
}

impl ConnectProtocol {
    /// In any case.
    pub(super) fn of(name: &[u8]) -> ConnectProtocol {
        if name.eq_ignore_ascii_case(b"websocket") {
            ConnectProtocol::WebSocket
        } else {
            ConnectProtocol::Other
        }
    }
}
