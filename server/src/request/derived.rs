//! Requests that are made out of a request: a subrequest by which it asks, and a refresh that outlives its client.
//!
//! What each takes over is said here and nowhere else. Next: `serve/subrequest`, which has one answered.

use super::{Arguments, KeptBody, Request};
use crate::slots::Slots;
use millstream_net::clock;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method};
use std::cell::OnceCell;
use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubrequestPart {
    Head,
    Body,
    Variable,
}

impl Request {
    /// A GET subrequest on the same server, without body, query, conditions and ranges. As in nginx,
    /// `$request_uri`, `$request_id` and the fields are the client's, set variables are shared, and limits do
    /// not count again.
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
        let is_discarded = wanted != SubrequestPart::Head && matches!(self.body, KeptBody::Unread);
        sub.body_octets = if is_discarded { 0 } else { self.known_length() };
        (sub.limited.requests, sub.limited.connections) = (self.limited.requests, self.limited.connections);
        sub.trace = self.trace.clone();
        sub.visitor = OnceCell::from(self.visitor().clone());
        sub.id = OnceCell::from(*self.id());
        sub
    }

    /// A copy for another path (`mirror`), with the same method, query and fields, and the body if it is
    /// wanted.
    pub fn mirrored(&self, path: &[u8], with_body: bool) -> Box<Request> {
        let mut copy = self.subrequest(path, SubrequestPart::Head);
        copy.resemble(self, with_body);
        copy
    }

    /// The request after this one (`post_action`): the same, with its response, until redirected.
    pub fn follow_up(&self) -> Box<Request> {
        let mut next = self.subrequest(&self.uri, SubrequestPart::Head);
        next.resemble(self, true);
        (next.path_shows, next.way_shows) = (self.path_shows, self.way_shows);
        next.location = self.location;
        next.captures = self.captures.clone();
        next.started = self.started;
        next.sent = self.sent.clone();
        next.body_received = self.body_received;
        if matches!(self.body, KeptBody::Unread) {
            next.body_octets = 0;
        }
        next.cache_status = self.cache_status;
        next
    }

    /// Copies the content of the request besides its client. A body is at hand, whatever its framing was.
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

    /// For a background refresh: a GET with the same routing.
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
