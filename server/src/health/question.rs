//! The request that a check of health asks with: nobody sent it, and it has no client.
//!
//! It is in the location whose check it is, without having been through the phases before: most variables are empty.

use crate::admission;
use crate::generation::Generation;
use crate::request::{ConnectionFacts, Request};
use crate::worker::Worker;
use millstream_conf::model::{LocationId, Server, ServerId};
use millstream_net::{Address, clock};
use millstream_wire::h1::head::{HeadLimits, Progress};
use millstream_wire::host;
use std::rc::Rc;

/// More than any word and host of a configuration.
const LONGEST: usize = 64 * 1024;
const FIELDS: usize = 1;

pub(super) fn make(
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    (server, location): (ServerId, LocationId),
    uri: &str,
) -> Option<Request> {
    let facts = ConnectionFacts::plain(Address::Unix(None), Address::Unix(None), 0);
    let mut request = Request::new(worker.clone(), generation.clone(), Rc::new(facts), clock::now());
    request.route.server = server;
    request.route.location = location;
    request.route.host = name(generation, server, location);
    let host = std::mem::take(&mut request.route.host);
    for piece in [b"GET ", uri.as_bytes(), b" HTTP/1.1\r\nHost: ", &host, b"\r\n\r\n"] {
        request.received.bytes.extend_from_slice(piece);
    }
    request.route.host = host;
    let limits = HeadLimits { line: LONGEST, total: LONGEST, fields: FIELDS };
    match request.received.head.parse(&request.received.bytes, &limits) {
        Ok(Progress::Complete) if request.received.head.length == request.received.bytes.len() => {}
        _ => return None,
    }
    admission::normalise(&mut request).ok()?;
    Some(request)
}

/// The server's name if a request can have it, else the host of `proxy_pass`.
fn name(generation: &Generation, server: ServerId, location: LocationId) -> Vec<u8> {
    let Server { name, .. } = generation.http().server(server);
    let is_plain = !name.is_empty() && !name.starts_with(['~', '*', '.']) && !name.ends_with('*');
    if is_plain && host::validate(name.as_bytes()).is_ok() {
        return name.to_ascii_lowercase().into_bytes();
    }
    let pass = generation.http().location(location).settings.pass();
    let host = pass.and_then(|pass| pass.http()).map(|http| http.host.as_str());
    host.filter(|host| host::validate(host.as_bytes()).is_ok()).unwrap_or("localhost").as_bytes().to_vec()
}
