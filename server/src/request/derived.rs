//! Requests that are made out of a request: a subrequest by which it asks, and a refresh that outlives its client.
//!
//! What each takes over is said here and nowhere else. Next: `serve/subrequest`, which has one answered.

use super::{Arguments, Request};
use crate::slots::Slots;
use millstream_net::clock;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method};
use std::cell::OnceCell;
use std::rc::Rc;

/// What of the answer to a subrequest is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubrequestPart {
    /// The head alone.
    Head,
    /// The body, which becomes a part of another answer.
    Body,
    /// The body, which becomes the value of a variable.
    Variable,
}

impl Request {
    /// A request of its own by which this one asks: a GET of a path of the same server, without body, query, conditions and ranges, for
    /// these are about what the client wants. As in nginx, `$request_uri`, `$request_id` and the fields are the client's, the variables
    /// that the configuration sets are one for both, and what the limits have counted is not counted again.
    pub fn subrequest(&self, path: &[u8], wanted: SubrequestPart) -> Box<Request> {
        self.has_asked.set(true);
        let (worker, generation) = (self.worker.clone(), self.generation.clone());
        let mut sub = Box::new(Request::new(worker, generation, self.connection.clone(), clock::now()));
        sub.bytes = self.bytes.clone();
        sub.head = self.head.clone();
        sub.head.fields.retain(|field| !is_about_content(field.id));
        sub.client = self.client.clone();
        sub.server = self.server;
        sub.location = self.server().own;
        sub.uri = path.to_vec();
        sub.arguments = Arguments::Replaced(Vec::new());
        sub.host = self.host.clone();
        (sub.wanted, sub.is_internal, sub.is_rewritten) = (Some(wanted), true, true);
        sub.slots = self.slots.clone();
        (sub.limited.requests, sub.limited.connections) = (self.limited.requests, self.limited.connections);
        sub.trace = self.trace.clone();
        sub.visitor = OnceCell::from(self.visitor().clone());
        sub.id = OnceCell::from(*self.id());
        sub
    }

    /// A copy of this request for another path of its server (`mirror`): method, query and fields are the same, and the body that was read where
    /// it is wanted.
    pub fn mirrored(&self, path: &[u8], with_body: bool) -> Box<Request> {
        let mut copy = self.subrequest(path, SubrequestPart::Head);
        copy.resemble(self, with_body);
        copy
    }

    /// What follows this request once it is done (`post_action`): the same again, with what was answered, until it is sent elsewhere.
    pub fn follow_up(&self) -> Box<Request> {
        let mut next = self.subrequest(&self.uri, SubrequestPart::Head);
        next.resemble(self, true);
        (next.path_shows, next.way_shows) = (self.path_shows, self.way_shows);
        next.location = self.location;
        next.captures = self.captures.clone();
        next.started = self.started;
        next.sent = self.sent.clone();
        next.body_received = self.body_received;
        next.cache_status = self.cache_status;
        next
    }

    /// Takes over what is asked for, and not only by whom. A body is at hand and not on its way, whatever framed it.
    fn resemble(&mut self, of: &Request, with_body: bool) {
        self.arguments = Arguments::Replaced(of.query().unwrap_or_default().to_vec());
        self.query_shows = of.query_shows;
        self.head = of.head.clone();
        self.head.fields.retain(|field| field.id != FieldId::Upgrade);
        self.method = of.method;
        if with_body {
            self.body = of.body.clone();
            self.framing = if of.framing == Framing::Length(0) { of.framing } else { Framing::None };
        }
    }

    /// A copy for a refresh that goes on without the client: a GET, routed as this one.
    pub fn for_refresh(&self) -> Request {
        let mut copy =
            Request::new(self.worker.clone(), self.generation.clone(), self.connection.clone(), self.started);
        copy.bytes = self.bytes.clone();
        copy.head = self.head.clone();
        copy.client = self.client.clone();
        copy.server = self.server;
        copy.location = self.location;
        copy.uri = self.uri.clone();
        copy.arguments = self.arguments.clone();
        copy.host = self.host.clone();
        copy.captures = self.captures.clone();
        copy.slots = Rc::new(Slots::clone(&self.slots));
        copy.made = self.made.clone();
        copy.method = if self.method == Method::Head { Method::Get } else { self.method };
        copy.cache_status = self.cache_status;
        copy.slice = self.slice;
        copy.whole = self.whole.clone();
        copy.visitor = self.visitor.clone();
        copy.asker = self.asker;
        copy.wanted = self.wanted;
        copy.is_internal = self.is_internal;
        copy.is_rewritten = self.is_rewritten;
        (copy.path_shows, copy.query_shows, copy.way_shows) =
            (self.path_shows, self.query_shows, self.way_shows);
        copy.is_outside = self.is_outside;
        copy.extends_alias = self.extends_alias;
        if let Some(trace) = self.trace.get() {
            copy.trace = OnceCell::from(Rc::new(trace.unrecorded()));
        }
        copy
    }
}

/// Fields that say what of an answer a client wants, and in which protocol.
fn is_about_content(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::IfMatch
            | FieldId::IfNoneMatch
            | FieldId::IfModifiedSince
            | FieldId::IfUnmodifiedSince
            | FieldId::IfRange
            | FieldId::Range
            | FieldId::Upgrade
    )
}
