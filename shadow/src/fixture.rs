//! A request and a response as tests have them, with nothing special about them.

use crate::json::Meaning;
use crate::request::Request;
use crate::seen::Seen;
use std::net::{IpAddr, Ipv4Addr};

/// A GET of the front page, by a client with an address of its own.
pub(crate) fn request(query: Option<&str>, client: u8) -> Request<'_> {
    Request {
        location: 0,
        method: b"GET",
        is_tls: false,
        host: b"h",
        path: b"/",
        query: query.map(str::as_bytes),
        client: IpAddr::V4(Ipv4Addr::new(10, 0, 0, client)),
        certificate: None,
    }
}

/// Sent and ended at once, in milliseconds. The lowest bit of a client tells how it is known.
pub(crate) fn seen(at: u64, client: u32) -> Seen {
    Seen {
        sent: at,
        at,
        meaning: Meaning::default(),
        marks: Box::default(),
        values: Box::default(),
        url: 0,
        client: client * 2,
        identity: client,
        explicit: None,
        is_storable: true,
        is_unusual: false,
    }
}
