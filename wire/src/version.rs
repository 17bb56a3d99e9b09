//! The versions of HTTP that a message can speak here.
//!
//! A higher minor version of HTTP/1 is read as HTTP/1.1, as RFC 9110 §2.5 has it; other major versions never stand in an
//! HTTP/1 message, see [`crate::h1::head`]. HTTP/2 writes its version nowhere: [`crate::h2::request`] sets it.

/// Version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Version {
    /// No persistence unless asked for, no chunked bodies, Host optional.
    Http10,
    /// HTTP/1.1, and what calls itself HTTP/1.2 to 1.9.
    #[default]
    Http11,
    /// Frames all content and has no `Connection`.
    Http2,
}

impl Version {
    /// As it stands in a message; also nginx's `$server_protocol`.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        }
    }
}
