//! The two HTTP/1 versions a message can speak here.
//!
//! A higher minor version is read as HTTP/1.1, as RFC 9110 §2.5 has it; other major versions never become a value
//! of this type, see [`crate::h1::head`].

/// Version of an HTTP/1 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Version {
    /// HTTP/1.0: no persistence unless asked for, no chunked bodies, Host optional.
    Http10,
    /// HTTP/1.1, and what calls itself HTTP/1.2 to 1.9.
    #[default]
    Http11,
}

impl Version {
    /// The version as it stands in a message, which is also nginx's `$server_protocol`.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        }
    }
}
