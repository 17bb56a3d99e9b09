//! Requests that are made out of a request: a subrequest by which it asks, and a refresh that outlives its client.
//!
//! What each takes over is said here and nowhere else. Next: `drive/subrequest`, which has one answered.

use super::{Arguments, CacheTrace, Descent, KeptBody, Request, SubrequestPart};
use crate::shows::WayShows;
use millstream_net::clock;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method};
use std::cell::OnceCell;
use std::rc::Rc;

impl Request {
    /// A GET subrequest on the same server, without body, query, conditions and ranges. As in nginx,
    /// `$request_uri`, `$request_id` and the fields are the client's, set variables are shared, and limits do
    /// not count again.
    pub fn subrequest(&self, path: &[u8], wanted: SubrequestPart) -> Box<Request> {
        self.has_asked.set(true);
        let (worker, generation) = (self.worker.clone(), self.generation.clone());
        let mut sub = Box::new(Request::new(worker, generation, self.connection.clone(), clock::now()));
        sub.received.bytes = self.received.bytes.clone();
        sub.received.head = self.received.head.clone();
        sub.received.head.fields.retain(|field| !is_about_content(field.id));
        sub.received.client = self.received.client.clone();
        sub.route.server = self.route.server;
        sub.route.location = self.server().own;
        sub.route.uri = path.to_vec();
        sub.route.arguments = Arguments::Replaced(Vec::new());
        sub.route.host = self.route.host.clone();
        (sub.descent.wanted, sub.descent.is_internal, sub.route.is_rewritten) = (Some(wanted), true, true);
        sub.route.slots = self.route.slots.clone();
        let is_discarded = wanted != SubrequestPart::Head && matches!(self.received.body, KeptBody::Unread);
        sub.received.body_octets = if is_discarded { 0 } else { self.received.known_length() };
        (sub.limited.requests, sub.limited.connections) = (self.limited.requests, self.limited.connections);
        sub.identity.trace = self.identity.trace.clone();
        sub.identity.visitor = OnceCell::from(self.visitor().clone());
        sub.identity.id = OnceCell::from(*self.id());
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
        let mut next = self.subrequest(&self.route.uri, SubrequestPart::Head);
        next.resemble(self, true);
        next.route.shows = WayShows { query: next.route.shows.query, ..self.route.shows };
        next.route.location = self.route.location;
        next.route.captures = self.route.captures.clone();
        next.received.started = self.received.started;
        next.sent = self.sent.clone();
        next.received.body_received = self.received.body_received;
        if matches!(self.received.body, KeptBody::Unread) {
            next.received.body_octets = 0;
        }
        next.cache.status = self.cache.status;
        next
    }

    /// Copies the content of the request besides its client. A body is at hand, whatever its framing was.
    fn resemble(&mut self, of: &Request, with_body: bool) {
        self.route.arguments = Arguments::Replaced(of.query().unwrap_or_default().to_vec());
        self.route.shows.query = of.route.shows.query;
        self.received.head = of.received.head.clone();
        self.received.head.fields.retain(|field| field.id != FieldId::Upgrade);
        self.method = of.method;
        if with_body {
            self.received.body = of.received.body.clone();
            self.received.framing =
                if of.received.framing == Framing::Length(0) { of.received.framing } else { Framing::None };
        }
    }

    /// For a background refresh: a GET with the same routing.
    pub fn for_refresh(&self) -> Request {
        let mut copy = Request::new(
            self.worker.clone(),
            self.generation.clone(),
            self.connection.clone(),
            self.received.started,
        );
        copy.received.bytes = self.received.bytes.clone();
        copy.received.head = self.received.head.clone();
        copy.received.client = self.received.client.clone();
        copy.route = self.route.apart();
        copy.method = if self.method == Method::Head { Method::Get } else { self.method };
        let CacheTrace { status, slice, ref whole, asker, .. } = self.cache;
        copy.cache = CacheTrace { status, slice, whole: whole.clone(), asker, ..CacheTrace::default() };
        copy.identity.visitor = self.identity.visitor.clone();
        let Descent { wanted, is_internal, .. } = self.descent;
        copy.descent = Descent { wanted, is_internal, ..Descent::default() };
        if let Some(trace) = self.identity.trace.get() {
            copy.identity.trace = OnceCell::from(Rc::new(trace.unrecorded()));
        }
        copy
    }
}

impl Request {
    /// `userid` then knows no one.
    pub fn forget_visitor(&mut self) {
        self.identity.visitor = OnceCell::new();
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
