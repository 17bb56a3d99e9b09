//! One request from its first byte to its log line: what came, where it was routed, what was answered.
//!
//! A request owns its bytes, so it can outlive the read that brought it; its vectors are recycled per thread, so
//! a cache hit allocates nothing. It does no I/O: the client's side is `client`, the upstream's `gateway`.

mod body;
mod connection_facts;
mod id;
mod visitor;
mod protocol;
mod derived;
mod traced;

pub use body::{BodyFile, KeptBody, PASSED_ON, UNWRITABLE};
pub use connection_facts::{ClientAddress, ConnectionFacts};
pub use derived::SubrequestPart;
pub use visitor::{GivenId, Visitor, VisitorCookie, VisitorId};

use crate::browser;
use crate::cache_report::{CacheReport, Forward};
use crate::generation::Generation;
use crate::limit_zone::passed::Passed;
use crate::page::Sheet;
use crate::remembered::Remembered;
use crate::route::Captured;
use crate::shows::Shows;
use crate::slots::{Captures, Slots};
use crate::trace::Trace;
use crate::tries::Tries;
use crate::worker::Worker;
use millstream_cache::Sliced;
use millstream_cache::policy::{Asker, Wish};
use millstream_conf::model::{Location, LocationId, Server, ServerId};
use millstream_net::{Address, buffers};
use millstream_telemetry::metrics::{CacheStatus, Cause};
use millstream_wire::h1::framing::Framing;
use millstream_wire::h1::head::RequestHead;
use millstream_wire::{FieldId, Fields, Headers, Method};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// The response so far, for variables and logs.
#[derive(Debug, Default, Clone)]
pub struct Sent {
    /// 0 before the head is made.
    pub status: u16,
    /// As sent; kept only if the configuration reads `$sent_http_`.
    pub head: Vec<u8>,
    pub trailers: Vec<u8>,
    /// Head included.
    pub bytes: u64,
    pub body_bytes: u64,
    pub complete: bool,
    /// Bytes before and after compression, if compressed here.
    pub compressed: Option<(u64, u64)>,
}

impl Sent {
    fn clear(&mut self) {
        self.head.clear();
        self.trailers.clear();
        let (head, trailers) = (std::mem::take(&mut self.head), std::mem::take(&mut self.trailers));
        *self = Sent { head, trailers, ..Sent::default() };
    }
}

#[derive(Debug, Clone, Default)]
pub enum Arguments {
    #[default]
    Original,
    Replaced(Vec<u8>),
}

pub struct Request {
    pub bytes: Vec<u8>,
    /// Spans point into `bytes`.
    pub head: RequestHead,
    pub framing: Framing,
    pub worker: Rc<Worker>,
    pub generation: Rc<Generation>,
    pub connection: Rc<ConnectionFacts>,
    /// The client by `realip`, if not the peer.
    pub client: Option<ClientAddress>,
    /// Time of its first byte.
    pub started: Instant,
    pub server: ServerId,
    pub location: LocationId,
    /// `$uri`: the path, decoded and normalized.
    pub uri: Vec<u8>,
    pub arguments: Arguments,
    /// `$host`, lower case.
    pub host: Vec<u8>,
    /// In a cell, as an expression of a `map` may match during an evaluation.
    pub captures: RefCell<Captures>,
    pub slots: Rc<Slots>,
    /// Variables that keep their first value: those made of others, and a few built-in ones.
    pub made: Remembered,
    /// An error page uses GET.
    pub method: Method,
    pub keep_alive: bool,
    /// Whether it waited in the buffer behind another request.
    pub pipelined: bool,
    /// As received, chunk framing included.
    pub body_received: u64,
    /// Bytes of the body so far without its framing; for a subrequest, the length that its parent knew.
    pub body_octets: u64,
    /// Internal redirects so far; `restart` has the limit.
    pub changes: u8,
    pub sheet: OnceCell<Box<Sheet>>,
    /// What the parent of a subrequest wants; `None` for a client's request.
    pub wanted: Option<SubrequestPart>,
    /// After an internal redirect: may use internal locations.
    pub is_internal: bool,
    /// Whether path or query differ from the original.
    pub is_rewritten: bool,
    /// What the path reveals about the client, by its sources.
    pub path_shows: Shows,
    /// The same for the query.
    pub query_shows: Shows,
    /// What the conditions that routed it reveal.
    pub way_shows: Shows,
    /// Whether `rewrite … break` took the path out of the location that still handles it.
    pub is_outside: bool,
    /// Whether `try_files` found the URI below an `alias` that is a whole path.
    pub extends_alias: bool,
    /// Whether an `error_page` is being served: a further failure gets the built-in page.
    pub in_error_page: bool,
    /// Replaces the page's own status.
    pub error_status: Option<u16>,
    /// Fields left by responses with `X-Accel-Redirect`, or replaced by an error page.
    pub accel_fields: Option<Box<Headers>>,
    /// `sticky cookie` for the server chosen last.
    pub session_cookie: Option<Box<[u8]>>,
    pub sent: Sent,
    /// `$limit_rate` in bytes a second, if not the location's.
    pub limit_rate: Option<u64>,
    /// `X-Accel-Charset`, known or not.
    pub accel_charset: Option<Box<[u8]>>,
    pub limited: Passed,
    /// `$upstream_cache_status`.
    pub cache_status: Option<CacheStatus>,
    /// Why the cache missed, and the location that counted it.
    pub missed: Option<(u32, Cause)>,
    /// Start of the requested slice.
    pub slice: Option<u64>,
    /// The response that the slice belongs to.
    pub whole: Option<Rc<Sliced>>,
    /// Whether `$slice_range` was read, so that the upstream was asked for the slice.
    pub names_slice: Cell<bool>,
    /// The client's Cache-Control, if it counts.
    pub wish: Wish,
    pub asker: Asker,
    pub report: Option<Box<CacheReport>>,
    pub body: KeptBody,
    pub body_file: Option<Box<BodyFile>>,
    /// The response's fields for this client only, if some are not stored.
    pub own_head: Option<Box<Headers>>,
    pub tries: Tries,
    /// Whether an upstream connection or a subrequest was attempted.
    pub has_asked: Cell<bool>,
    visitor: OnceCell<Rc<Visitor>>,
    pub trace: OnceCell<Rc<Trace>>,
    id: OnceCell<[u8; 32]>,
}

impl Request {
    pub fn new(
        worker: Rc<Worker>,
        generation: Rc<Generation>,
        connection: Rc<ConnectionFacts>,
        now: Instant,
    ) -> Self {
        let slots = Slots::with(generation.http().slots.len());
        Request {
            bytes: Vec::new(),
            head: RequestHead::default(),
            framing: Framing::None,
            worker,
            generation,
            connection,
            client: None,
            started: now,
            server: ServerId(0),
            location: LocationId(0),
            uri: Vec::new(),
            arguments: Arguments::Original,
            host: Vec::new(),
            captures: RefCell::default(),
            slots: Rc::new(slots),
            made: Remembered::default(),
            method: Method::Get,
            keep_alive: true,
            pipelined: false,
            body_received: 0,
            body_octets: 0,
            changes: 0,
            sheet: OnceCell::new(),
            wanted: None,
            is_internal: false,
            is_rewritten: false,
            path_shows: Shows::NOTHING,
            query_shows: Shows::NOTHING,
            way_shows: Shows::NOTHING,
            is_outside: false,
            extends_alias: false,
            in_error_page: false,
            error_status: None,
            accel_fields: None,
            accel_charset: None,
            session_cookie: None,
            sent: Sent::default(),
            limit_rate: None,
            limited: Passed::default(),
            cache_status: None,
            missed: None,
            slice: None,
            whole: None,
            names_slice: Cell::new(false),
            wish: Wish::default(),
            asker: Asker::default(),
            report: None,
            body: KeptBody::Unread,
            body_file: None,
            own_head: None,
            tries: Tries::default(),
            has_asked: Cell::new(false),
            visitor: OnceCell::new(),
            trace: OnceCell::new(),
            id: OnceCell::new(),
        }
    }

    /// Keeps its buffers for the next request.
    pub fn reset(&mut self, connection: Rc<ConnectionFacts>, now: Instant) {
        self.bytes.clear();
        self.head.clear();
        self.framing = Framing::None;
        self.connection = connection;
        self.client = None;
        self.started = now;
        self.uri.clear();
        self.arguments = Arguments::Original;
        self.host.clear();
        self.captures.get_mut().clear();
        match Rc::get_mut(&mut self.slots) {
            Some(slots) => slots.reset(self.generation.http().slots.len()),
            None => self.slots = Rc::new(Slots::with(self.generation.http().slots.len())),
        }
        self.made.clear();
        self.method = Method::default();
        self.keep_alive = true;
        self.pipelined = false;
        self.body_received = 0;
        self.body_octets = 0;
        self.changes = 0;
        self.sheet.take();
        self.wanted = None;
        self.is_internal = false;
        self.is_rewritten = false;
        (self.path_shows, self.query_shows) = (Shows::NOTHING, Shows::NOTHING);
        self.way_shows = Shows::NOTHING;
        self.is_outside = false;
        self.extends_alias = false;
        self.in_error_page = false;
        self.error_status = None;
        self.accel_fields = None;
        self.session_cookie = None;
        self.sent.clear();
        self.limit_rate = None;
        self.accel_charset = None;
        self.limited = Passed::default();
        self.cache_status = None;
        self.missed = None;
        (self.slice, self.whole) = (None, None);
        self.names_slice.set(false);
        self.wish = Wish::default();
        self.asker = Asker::default();
        self.report = None;
        self.body = KeptBody::Unread;
        self.body_file = None;
        self.own_head = None;
        self.tries.clear();
        self.has_asked.set(false);
        self.visitor.take();
        self.trace.take();
        self.id.take();
    }

    pub fn take_captures(&self, captured: Captured, text: &[u8], shows: Shows) {
        for (slot, group) in captured.named {
            let (start, end) = captured.groups.get(usize::from(group)).copied().unwrap_or_default();
            self.slots.set(slot, &text[start as usize..end as usize], shows);
        }
        let mut captures = self.captures.borrow_mut();
        captures.text.clear();
        captures.text.extend_from_slice(text);
        captures.groups = captured.groups;
        captures.shows = shows;
        captures.have_shown |= shows;
    }

    /// Enters a location, or its `limit_except` for the method; keep-alive follows its settings.
    pub fn enter(&mut self, location: LocationId) {
        let mut found = self.generation.http().location(location);
        self.location = location;
        if let Some(except) = &found.except
            && !except.methods.iter().any(|method| method.as_bytes() == self.method_text())
        {
            self.location = except.location;
            found = self.generation.http().location(except.location);
        }
        let settings = &found.settings;
        self.keep_alive = self.keep_alive
            && !settings.keepalive.timeout.is_zero()
            && !browser::is_excluded(settings.keepalive.disable, self.method, self.fields())
            && self.connection.requests.get() < settings.keepalive.requests
            && self.started.saturating_duration_since(self.connection.opened) < settings.keepalive.time;
    }

    /// Frees the buffer of a long head before a long wait.
    pub fn tighten(&mut self) {
        if self.bytes.capacity() > 2 * self.bytes.len().max(512) {
            let tight = Vec::from(self.bytes.as_slice());
            buffers::give(std::mem::replace(&mut self.bytes, tight));
        }
    }

    /// Whether its response becomes part of another one.
    pub fn is_included(&self) -> bool {
        matches!(self.wanted, Some(SubrequestPart::Body | SubrequestPart::Variable))
    }

    pub fn set_page(&mut self, query: Vec<u8>, sheet: Sheet) {
        self.arguments = Arguments::Replaced(query);
        self.sheet = OnceCell::from(Box::new(sheet));
    }

    pub fn sheet(&self) -> &Sheet {
        self.sheet.get_or_init(Box::default)
    }

    pub fn id(&self) -> &[u8; 32] {
        self.id.get_or_init(id::random)
    }

    pub fn report_forward(&mut self, forward: Forward, detail: Option<&'static str>) {
        if let Some(report) = &mut self.report {
            (report.forward, report.detail) = (Some(forward), detail);
        }
    }

    pub fn client(&self) -> &Address {
        self.client.as_ref().map_or(&self.connection.remote, |client| &client.address)
    }

    /// Without the port.
    pub fn client_text(&self) -> &str {
        self.client.as_ref().map_or(&self.connection.remote_text, |client| &client.text)
    }

    pub fn fields(&self) -> Fields<'_> {
        self.head.view(&self.bytes)
    }

    pub fn field(&self, id: FieldId) -> Option<&[u8]> {
        self.fields().get(id)
    }

    pub fn method_text(&self) -> &[u8] {
        let came = self.head.method_text.of(&self.bytes);
        // Of a head that could not be read there is none, until a page is fetched in its place.
        let is_ours = self.method != self.head.method || self.is_internal && came.is_empty();
        match self.method.name() {
            Some(name) if is_ours => name.as_bytes(),
            _ => came,
        }
    }

    /// Without the question mark.
    pub fn query(&self) -> Option<&[u8]> {
        match &self.arguments {
            Arguments::Original => self.head.query.map(|span| span.of(&self.bytes)),
            Arguments::Replaced(text) => Some(text.as_slice()).filter(|text| !text.is_empty()),
        }
    }

    pub fn location(&self) -> &Location {
        self.generation.http().location(self.location)
    }

    pub fn server(&self) -> &Server {
        self.generation.http().server(self.server)
    }

    /// As received; of an absolute URL from the path on, as in nginx.
    pub fn request_uri(&self) -> &[u8] {
        if self.head.authority.is_none() {
            return self.head.target.of(&self.bytes);
        }
        let end = self.head.query.map_or(self.head.path.end, |query| query.end);
        &self.bytes[self.head.path.start as usize..end as usize]
    }
}
