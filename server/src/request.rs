//! One request from its first byte to its log line: what came, where it was routed, what was answered.
//!
//! A request owns its bytes, so it can outlive the read that brought it; its vectors are recycled per thread, so
//! a cache hit allocates nothing. It does no I/O: the client's side is `client`, the upstream's `exchange`.

mod received;
mod route;
mod descent;
mod cache_trace;
mod reply;
mod identity;
mod body;
mod connection_facts;
mod protocol;
mod derived;
mod traced;

pub use body::{BodyFile, KeptBody, PASSED_ON, UNWRITABLE};
pub use cache_trace::CacheTrace;
pub use connection_facts::{ClientAddress, ConnectionFacts};
pub use descent::{Descent, SubrequestPart};
pub use identity::{GivenId, Identity, Visitor, VisitorCookie, VisitorId};
pub use received::Received;
pub use reply::{Reply, Sent};
pub use route::{Arguments, Route};
pub use traced::{begin_try, tell_context};

use crate::browser;
use crate::cache_report::Forward;
use crate::generation::Generation;
use crate::limit_zone::passed::Passed;
use crate::page::Sheet;
use crate::route::Captured;
use crate::shows::Shows;
use crate::trace::Trace;
use crate::tries::Tries;
use crate::worker::Worker;
use millstream_cache::Now;
use millstream_conf::model::{Location, LocationId, ProxyCache, Server};
use millstream_net::{Address, buffers};
use millstream_wire::{FieldId, Fields, Method};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::time::Instant;

/// One request, in the parts that it goes through: what came, where it was led, what the cache did, what was sent.
pub struct Request {
    pub worker: Rc<Worker>,
    pub generation: Rc<Generation>,
    pub connection: Rc<ConnectionFacts>,
    pub received: Received,
    /// An error page uses GET.
    pub method: Method,
    pub keep_alive: bool,
    pub route: Route,
    pub descent: Descent,
    pub limited: Passed,
    pub cache: CacheTrace,
    pub tries: Tries,
    /// Whether an upstream connection or a subrequest was attempted.
    pub has_asked: Cell<bool>,
    pub reply: Reply,
    pub sent: Sent,
    pub identity: Identity,
}

impl Request {
    /// Whether what the cache has must be confirmed by the upstream, whatever its freshness (`cut_off`).
    pub fn is_cut_off(&self, cache: &ProxyCache, now: Now) -> bool {
        self.generation.shared.zones.stores[cache.zone.0 as usize].membership().is_cut_off(now)
    }

    pub fn new(
        worker: Rc<Worker>,
        generation: Rc<Generation>,
        connection: Rc<ConnectionFacts>,
        now: Instant,
    ) -> Self {
        let route = Route::new(generation.http().slots.len());
        Request {
            worker,
            generation,
            connection,
            received: Received::at(now),
            method: Method::Get,
            keep_alive: true,
            route,
            descent: Descent::default(),
            limited: Passed::default(),
            cache: CacheTrace::default(),
            tries: Tries::default(),
            has_asked: Cell::new(false),
            reply: Reply::default(),
            sent: Sent::default(),
            identity: Identity::default(),
        }
    }

    /// Keeps its buffers for the next request.
    pub fn reset(&mut self, connection: Rc<ConnectionFacts>, now: Instant) {
        self.connection = connection;
        self.received.clear(now);
        self.method = Method::default();
        self.keep_alive = true;
        self.route.clear(self.generation.http().slots.len());
        self.descent = Descent::default();
        self.limited = Passed::default();
        self.cache = CacheTrace::default();
        self.tries.clear();
        self.has_asked.set(false);
        self.reply = Reply::default();
        self.sent.clear();
        self.identity = Identity::default();
    }

    pub fn take_captures(&self, captured: Captured, text: &[u8], shows: Shows) {
        for (slot, group) in captured.named {
            let (start, end) = captured.groups.get(usize::from(group)).copied().unwrap_or_default();
            self.route.slots.set(slot, &text[start as usize..end as usize], shows);
        }
        let mut captures = self.route.captures.borrow_mut();
        captures.text.clear();
        captures.text.extend_from_slice(text);
        captures.groups = captured.groups;
        captures.shows = shows;
        captures.have_shown |= shows;
    }

    /// Enters a location, or its `limit_except` for the method; keep-alive follows its settings.
    pub fn enter(&mut self, location: LocationId) {
        let mut found = self.generation.http().location(location);
        self.route.location = location;
        if let Some(except) = &found.except
            && !except.methods.iter().any(|method| method.as_bytes() == self.method_text())
        {
            self.route.location = except.location;
            found = self.generation.http().location(except.location);
        }
        let settings = &found.settings;
        self.keep_alive = self.keep_alive
            && !settings.keepalive.timeout.is_zero()
            && !browser::is_excluded(settings.keepalive.disable, self.method, self.fields())
            && self.connection.requests.get() < settings.keepalive.requests
            && self.received.started.saturating_duration_since(self.connection.opened)
                < settings.keepalive.time;
    }

    /// Frees the buffer of a long head before a long wait.
    pub fn tighten(&mut self) {
        if self.received.bytes.capacity() > 2 * self.received.bytes.len().max(512) {
            let tight = Vec::from(self.received.bytes.as_slice());
            buffers::give(std::mem::replace(&mut self.received.bytes, tight));
        }
    }

    /// Whether its response becomes part of another one.
    pub fn is_included(&self) -> bool {
        matches!(self.descent.wanted, Some(SubrequestPart::Body | SubrequestPart::Variable))
    }

    pub fn set_page(&mut self, query: Vec<u8>, sheet: Sheet) {
        self.route.arguments = Arguments::Replaced(query);
        self.reply.sheet = OnceCell::from(Box::new(sheet));
    }

    pub fn sheet(&self) -> &Sheet {
        self.reply.sheet.get_or_init(Box::default)
    }

    pub fn id(&self) -> &[u8; 32] {
        self.identity.id.get_or_init(identity::random_id)
    }

    /// Created when first needed.
    pub fn trace(&self) -> &Rc<Trace> {
        self.identity.trace.get_or_init(|| Rc::new(traced::begin(self)))
    }

    pub fn visitor(&self) -> &Rc<Visitor> {
        let visitor = self.identity.visitor.get_or_init(|| Rc::new(Visitor::at(self.route.location)));
        if self.descent.wanted.is_none() {
            visitor.location.set(self.route.location);
        }
        visitor
    }

    pub fn exceeds_limit(&self, length: u64) -> bool {
        let limit = self.location().settings.client_body.max_size;
        limit > 0 && length > limit
    }

    /// Whether the known length is above the location's limit. A body that was refused before is past that.
    pub fn is_too_large(&self) -> bool {
        !self.received.body.is_refused() && self.exceeds_limit(self.received.known_length())
    }

    pub fn report_forward(&mut self, forward: Forward, detail: Option<&'static str>) {
        if let Some(report) = &mut self.cache.report {
            (report.forward, report.detail) = (Some(forward), detail);
        }
    }

    pub fn client(&self) -> &Address {
        self.received.client.as_ref().map_or(&self.connection.remote, |client| &client.address)
    }

    /// Without the port.
    pub fn client_text(&self) -> &str {
        self.received.client.as_ref().map_or(&self.connection.remote_text, |client| &client.text)
    }

    pub fn fields(&self) -> Fields<'_> {
        self.received.head.view(&self.received.bytes)
    }

    pub fn field(&self, id: FieldId) -> Option<&[u8]> {
        self.fields().get(id)
    }

    pub fn method_text(&self) -> &[u8] {
        let came = self.received.head.method_text.of(&self.received.bytes);
        // Of a head that could not be read there is none, until a page is fetched in its place.
        let is_ours = self.method != self.received.head.method || self.descent.is_internal && came.is_empty();
        match self.method.name() {
            Some(name) if is_ours => name.as_bytes(),
            _ => came,
        }
    }

    /// Without the question mark.
    pub fn query(&self) -> Option<&[u8]> {
        match &self.route.arguments {
            Arguments::Original => self.received.head.query.map(|span| span.of(&self.received.bytes)),
            Arguments::Replaced(text) => Some(text.as_slice()).filter(|text| !text.is_empty()),
        }
    }

    pub fn location(&self) -> &Location {
        self.generation.http().location(self.route.location)
    }

    pub fn server(&self) -> &Server {
        self.generation.http().server(self.route.server)
    }

    /// As received; of an absolute URL from the path on, as in nginx.
    pub fn request_uri(&self) -> &[u8] {
        if self.received.head.authority.is_none() {
            return self.received.head.target.of(&self.received.bytes);
        }
        let end = self.received.head.query.map_or(self.received.head.path.end, |query| query.end);
        &self.received.bytes[self.received.head.path.start as usize..end as usize]
    }
}
