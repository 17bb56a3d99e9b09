//! What is known of a request when it is sent.
//!
//! Next: `dimension`, by what requests differ.

use std::net::IpAddr;

/// A request as the client sent it. Its fields are given apart, as an iterator that is only read if the request is sampled.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The number of the location that handles it: routes of different locations are different routes.
    pub location: u32,
    pub method: &'a [u8],
    pub is_tls: bool,
    pub host: &'a [u8],
    /// As it was sent, neither decoded nor normalized.
    pub path: &'a [u8],
    /// Without the question mark.
    pub query: Option<&'a [u8]>,
    pub client: IpAddr,
    /// A digest of the client's certificate.
    pub certificate: Option<&'a [u8]>,
}

impl Request<'_> {
    pub(crate) fn is_get(&self) -> bool {
        self.method == b"GET"
    }

    /// Whether it may change what other URLs return (RFC 9110 §9.2.1).
    pub(crate) fn is_unsafe(&self) -> bool {
        !matches!(self.method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
    }

    pub(crate) fn address(&self) -> [u8; 16] {
        match self.client {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }
}

/// Name and raw value of each argument of a query, in order.
pub(crate) fn arguments(query: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &[u8])> {
    query.unwrap_or_default().split(|byte| *byte == b'&').filter(|argument| !argument.is_empty()).map(
        |argument| match memchr::memchr(b'=', argument) {
            Some(at) => (&argument[..at], &argument[at..]),
            None => (argument, &argument[argument.len()..]),
        },
    )
}

/// Name and value of each cookie in a Cookie field.
pub(crate) fn cookies(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|cookie| !cookie.is_empty()).map(
        |cookie| match memchr::memchr(b'=', cookie) {
            Some(at) => (&cookie[..at], &cookie[at + 1..]),
            None => (cookie, &cookie[cookie.len()..]),
        },
    )
}
