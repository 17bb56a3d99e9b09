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

pub use body::{BodyFile, KeptBody, PASSED_ON};
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

/// What has been answered so far, for variables and logs.
#[derive(Debug, Default, Clone)]
pub struct Sent {
    /// The status; 0 before the head is made.
    pub status: u16,
    /// The head as sent, kept only where the configuration reads `$sent_http_`.
    pub head: Vec<u8>,
    /// Trailer fields as sent.
    pub trailers: Vec<u8>,
    /// All bytes written, head included.
    pub bytes: u64,
    /// Bytes of the body written.
    pub body_bytes: u64,
    /// Whether the answer was written whole.
    pub complete: bool,
    /// Bytes into and out of compression, where the answer was compressed on its way.
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

/// The query string that is in force.
#[derive(Debug, Clone, Default)]
pub enum Arguments {
    /// As it came.
    #[default]
    Original,
    /// Set by an internal redirect.
    Replaced(Vec<u8>),
}

/// A request.
pub struct Request {
    /// The head's bytes (and nothing behind them).
    pub bytes: Vec<u8>,
    /// The parsed head; spans point into `bytes`.
    pub head: RequestHead,
    /// How the body is framed.
    pub framing: Framing,
    /// The thread that serves it.
    pub worker: Rc<Worker>,
    /// The configuration that serves it.
    pub generation: Rc<Generation>,
    /// Its connection.
    pub connection: Rc<ConnectionFacts>,
    /// Whom it came from, where that is not the connection's other end (`realip`).
    pub client: Option<ClientAddress>,
    /// When its first byte was read.
    pub started: Instant,
    /// The server that took it.
    pub server: ServerId,
    /// The location that took it.
    pub location: LocationId,
    /// `$uri`: the path, decoded and normalised.
    pub uri: Vec<u8>,
    /// The query string in force.
    pub arguments: Arguments,
    /// `$host`, lower case.
    pub host: Vec<u8>,
    /// Captures; an expression of a `map` may match while a value is being evaluated.
    pub captures: RefCell<Captures>,
    /// Variables that the configuration gives values to.
    pub slots: Rc<Slots>,
    /// Variables whose values stay once they were read: those that the configuration makes out of others, and a few of our own.
    pub made: Remembered,
    /// The method in force (an error page is fetched with GET).
    pub method: Method,
    /// Whether the connection may go on after the answer.
    pub keep_alive: bool,
    /// Whether the request waited in the buffer behind another one.
    pub pipelined: bool,
    /// Bytes of the body read so far, as they came, chunk framing included.
    pub body_received: u64,
    /// Changes of its URI so far, and of its location by name; bounded in `restart`.
    pub changes: u8,
    /// What it has of the page that its answer is made of (`filter/ssi`), where there is one.
    pub sheet: OnceCell<Box<Sheet>>,
    /// What another request wants that asks by it; nothing where it is a client's.
    pub wanted: Option<SubrequestPart>,
    /// Whether it is no longer where it came to: what a client alone cannot reach is open to it.
    pub is_internal: bool,
    /// Whether path or query in force are not those that came.
    pub is_rewritten: bool,
    /// What the path in force shows of who asks, by what it was made of.
    pub path_shows: Shows,
    /// The same of the query.
    pub query_shows: Shows,
    /// What has decided its way, by the conditions of `if` that were judged.
    pub way_shows: Shows,
    /// Whether a `rewrite` with `break` took the path out of the location that still answers: it need not begin as that does.
    pub is_outside: bool,
    /// Whether `try_files` found the URI in force below an `alias` that is a whole path by itself.
    pub extends_alias: bool,
    /// Whether an `error_page` is being answered: a failure now gets the built-in page.
    pub in_error_page: bool,
    /// The status that an `error_page` puts in place of the page's own.
    pub error_status: Option<u16>,
    /// Fields of responses with `X-Accel-Redirect`, or in whose place an error page comes, that belong to the response they led to.
    pub accel_fields: Option<Box<Headers>>,
    /// What `sticky cookie` tells the client of the server that was chosen last.
    pub session_cookie: Option<Box<[u8]>>,
    /// What was answered.
    pub sent: Sent,
    /// `$limit_rate`: bytes a second, where something else than the location says so.
    pub limit_rate: Option<u64>,
    /// `X-Accel-Charset`: the charset that stands in place of the location's, known or not.
    pub accel_charset: Option<Box<[u8]>>,
    /// What the limits made of it.
    pub limited: Passed,
    /// `$upstream_cache_status`.
    pub cache_status: Option<CacheStatus>,
    /// Why the cache did not answer it, with the number of the location where that was counted.
    pub missed: Option<(u32, Cause)>,
    /// Where the piece of a sliced answer begins that is being asked for (`slice`).
    pub slice: Option<u64>,
    /// The answer as a whole of which it asks for a piece.
    pub whole: Option<Rc<Sliced>>,
    /// Whether `$slice_range` was read, so that the upstream was asked for that piece.
    pub names_slice: Cell<bool>,
    /// What the request asks of the cache, where clients are heard.
    pub wish: Wish,
    /// Who asks, as far as the cache minds.
    pub asker: Asker,
    /// `Cache-Status`, where it is wanted.
    pub report: Option<Box<CacheReport>>,
    /// What was read of the body.
    pub body: KeptBody,
    /// The file with a name that holds the body.
    pub body_file: Option<Box<BodyFile>>,
    /// Fields of the upstream's answer for the client that asked, where some of them are not stored.
    pub own_head: Option<Box<Headers>>,
    /// The upstream servers asked.
    pub tries: Tries,
    /// Whether a connection to an upstream was looked for, or a subrequest made, whatever came of it.
    pub has_asked: Cell<bool>,
    /// Who visits (`userid`), read when it is first asked for.
    visitor: OnceCell<Rc<Visitor>>,
    /// The trace that it belongs to, made when it is first asked for.
    pub trace: OnceCell<Rc<Trace>>,
    /// `$request_id`, made when first read.
    id: OnceCell<[u8; 32]>,
}

impl Request {
    /// A request that has not been read yet.
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

    /// Makes a finished request ready for the next one; its vectors keep their room.
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

    /// Takes over what an expression captured of a text.
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

    /// Comes into a location, or what stands in its `limit_except` for the method; the connection may be kept for as long as its
    /// settings say.
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

    /// Gives the buffer that a long head was read into back, for what may take long.
    pub fn tighten(&mut self) {
        if self.bytes.capacity() > 2 * self.bytes.len().max(512) {
            let tight = Vec::from(self.bytes.as_slice());
            buffers::give(std::mem::replace(&mut self.bytes, tight));
        }
    }

    /// Whether it is a subrequest whose answer becomes a part of another.
    pub fn is_included(&self) -> bool {
        matches!(self.wanted, Some(SubrequestPart::Body | SubrequestPart::Variable))
    }

    /// Makes it a part of a page, with a query of its own.
    pub fn set_page(&mut self, query: Vec<u8>, sheet: Sheet) {
        self.arguments = Arguments::Replaced(query);
        self.sheet = OnceCell::from(Box::new(sheet));
    }

    /// What it has of its page.
    pub fn sheet(&self) -> &Sheet {
        self.sheet.get_or_init(Box::default)
    }

    /// Its random id, made when it is first asked for.
    pub fn id(&self) -> &[u8; 32] {
        self.id.get_or_init(id::random)
    }

    /// Notes why the request goes to the upstream, where a report is wanted.
    pub fn report_forward(&mut self, forward: Forward, detail: Option<&'static str>) {
        if let Some(report) = &mut self.report {
            (report.forward, report.detail) = (Some(forward), detail);
        }
    }

    /// The client's address.
    pub fn client(&self) -> &Address {
        self.client.as_ref().map_or(&self.connection.remote, |client| &client.address)
    }

    /// The client's address as text, without port.
    pub fn client_text(&self) -> &str {
        self.client.as_ref().map_or(&self.connection.remote_text, |client| &client.text)
    }

    /// The request's fields.
    pub fn fields(&self) -> Fields<'_> {
        self.head.view(&self.bytes)
    }

    /// A field's first value.
    pub fn field(&self, id: FieldId) -> Option<&[u8]> {
        self.fields().get(id)
    }

    /// The method as text.
    pub fn method_text(&self) -> &[u8] {
        let came = self.head.method_text.of(&self.bytes);
        // Of a head that could not be read there is none, until a page is fetched in its place.
        let is_ours = self.method != self.head.method || self.is_internal && came.is_empty();
        match self.method.name() {
            Some(name) if is_ours => name.as_bytes(),
            _ => came,
        }
    }

    /// The query string in force, without the question mark.
    pub fn query(&self) -> Option<&[u8]> {
        match &self.arguments {
            Arguments::Original => self.head.query.map(|span| span.of(&self.bytes)),
            Arguments::Replaced(text) => Some(text.as_slice()).filter(|text| !text.is_empty()),
        }
    }

    /// The location in force.
    pub fn location(&self) -> &Location {
        self.generation.http().location(self.location)
    }

    /// The server in force.
    pub fn server(&self) -> &Server {
        self.generation.http().server(self.server)
    }

    /// Path and query as they came; of an absolute-form target the path on, as in nginx.
    pub fn request_uri(&self) -> &[u8] {
        if self.head.authority.is_none() {
            return self.head.target.of(&self.bytes);
        }
        let end = self.head.query.map_or(self.head.path.end, |query| query.end);
        &self.bytes[self.head.path.start as usize..end as usize]
    }
}
