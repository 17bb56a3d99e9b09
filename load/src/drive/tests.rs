//! Runs against small servers of this process: each test says what the server does and what must be counted.

use super::*;
use crate::outcome::Errors;
use crate::plan::{Arrivals, Mode, Target, Way};
use crate::target::{Ask, Permission, resolve};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

mod closed;
mod open;
mod secure;

/// Serves each connection on a thread of its own, until the test's process ends.
pub(super) fn serve(each: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let each = Arc::new(each);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = Arc::clone(&each);
            std::thread::spawn(move || each(stream));
        }
    });
    address
}

/// Reads one request without a body; `None` at the end of the connection.
pub(super) fn request(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(head)
}

/// A server that answers every request with these bytes, and then closes where `closes` says so.
pub(super) fn answering(bytes: &'static [u8], closes: bool) -> SocketAddr {
    serve(move |mut stream| {
        while request(&mut stream).is_some() {
            if stream.write_all(bytes).is_err() || closes {
                return;
            }
        }
    })
}

pub(super) const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub(super) fn target(address: SocketAddr) -> Target {
    let ask = Ask { url: format!("http://{address}/"), keep_alive: true, ..Ask::default() };
    resolve(&ask, Permission::default()).expect("an address of this machine")
}

/// So many requests over two connections on one thread, with no end by time but that of a broken test.
pub(super) fn counted(target: Target, requests: u64) -> Plan {
    let limit = Duration::from_secs(30);
    Plan { requests: Some(requests), ..Plan::closed(target, 2, 1, limit) }
}

pub(super) fn outcome_of(plan: &Plan) -> Outcome {
    run(plan, &AtomicBool::new(false), &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

/// The errors of a run and their sum with the answers.
pub(super) fn errors_of(plan: &Plan) -> (Errors, u64) {
    let outcome = outcome_of(plan);
    let errors = outcome.counts.errors;
    (errors, outcome.counts.answers + errors.total())
}
