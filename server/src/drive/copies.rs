//! Copies of a request (`mirror`), and how many of them may be unfinished: what a slow mirror holds must leave requests their upstreams.
//!
//! A copy outlives its request, and its client. So it is counted, for its worker and for the connection that it came by; one too many is
//! dropped, and the request goes on all the same. Before: `waiting`; next: `subrequest`, which has them answered.

use super::subrequest;
use crate::failure;
use crate::request::{ConnectionFacts, Request};
use crate::worker::Worker;
use millstream_conf::model::Level;
use millstream_net::clock;
use std::rc::Rc;

/// Copies may use one in this many upstream connections.
const PLACES_PER_COPY: usize = 4;
/// A connection may have one in this many of the copies.
const COPIES_PER_OWN: usize = 2;

/// Counts an unfinished copy until dropped.
struct Unfinished {
    worker: Rc<Worker>,
    connection: Rc<ConnectionFacts>,
}

impl Unfinished {
    /// `None` at the limit; the copies of a single request are always allowed.
    fn count(request: &Request, of_one_request: usize) -> Option<Unfinished> {
        let (worker, connection) = (request.worker.clone(), request.connection.clone());
        let most = request.generation.shared.bounds.upstreams / PLACES_PER_COPY;
        if worker.copies.get() >= most.max(of_one_request)
            || connection.copies.get() >= (most / COPIES_PER_OWN).max(of_one_request)
        {
            return None;
        }
        worker.copies.set(worker.copies.get() + 1);
        connection.copies.set(connection.copies.get() + 1);
        Some(Unfinished { worker, connection })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.worker.copies.set(self.worker.copies.get().saturating_sub(1));
        self.connection.copies.set(self.connection.copies.get().saturating_sub(1));
    }
}

pub(super) fn send(request: &Request, uris: &[String], with_body: bool) {
    for uri in uris {
        let Some(unfinished) = Unfinished::count(request, uris.len()) else {
            dropped(request, uri, "too many copies are in progress");
            continue;
        };
        let Some(place) = request.worker.try_admit() else {
            dropped(request, uri, "worker_connections are not enough");
            continue;
        };
        let copy = request.mirrored(uri.as_bytes(), with_body);
        _ = subrequest::apart(copy, None, Some(place), unfinished);
    }
}

/// Logs rarely, so that a slow mirror does not flood the log.
fn dropped(request: &Request, uri: &str, why: &str) {
    if request.worker.may_complain_of_copies(clock::now()) {
        let what = format_args!("mirror request to \"{uri}\" dropped: {why}");
        failure::log(request, Level::Warn, what);
    }
}
