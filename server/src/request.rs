//! One request from its first byte to its log line: what came, where it was routed, what was answered.
//!
//! A request owns its bytes, so it can outlive the read that brought it; its vectors are recycled per thread, so
//! a cache hit allocates nothing. It does no I/O: the client's side is `client`, the upstream's `gateway`.

use crate::browser;
use crate::cache_report::{CacheReport, Forward};
use crate::generation::Generation;
use crate::judged::ClientCertificate;
use crate::limit_zone::passed::Passed;
use crate::page::Sheet;
use crate::remembered::Remembered;
use crate::route::Captured;
use crate::slots::Slots;
use crate::tries::Tries;
use crate::worker::Worker;
use millstream_cache::policy::{Asker, Wish};
use millstream_conf::model::{Location, LocationId, Server, ServerId};
use millstream_net::proxy_protocol::Proxied;
use millstream_net::stream::TlsInfo;
use millstream_net::{Address, buffers, clock};
use millstream_telemetry::metrics::{CacheStatus, Cause};
use millstream_wire::h1::framing::Framing;
use millstream_wire::h1::head::RequestHead;
use millstream_wire::{FieldId, Fields, Headers, Method, Version};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;
use tempfile::TempPath;

/// What holds for a connection as a whole.
#[derive(Debug)]
pub struct ConnectionFacts {
    /// `$connection`.
    pub serial: u64,
    /// The client's address.
    pub remote: Address,
    /// Its text without port, as logs and `X-Forwarded-For` want it.
    pub remote_text: Box<str>,
    /// The address that accepted it.
    pub local: Address,
    /// Index of the listener that accepted it, in the configuration in force.
    pub listener: Cell<usize>,
    /// Whether it came to a TLS port without TLS: each of its requests is refused (497).
    pub is_plain_on_tls: bool,
    /// Whom a proxy speaks for (`listen … proxy_protocol`).
    pub proxied: Option<Box<Proxied>>,
    /// TLS facts, where it is encrypted; boxed, for most connections idle without any.
    pub tls: Option<Box<TlsInfo>>,
    /// The certificate that the client showed.
    pub certificate: Option<Box<ClientCertificate>>,
    /// When it was accepted.
    pub opened: Instant,
    /// Requests so far, the present one included.
    pub requests: Cell<u64>,
}

/// Whom a request came from, as a trusted proxy says.
#[derive(Debug, Clone)]
pub struct ClientAddress {
    /// The address; port 0 where it was not said.
    pub address: Address,
    /// Its text without port.
    pub text: Box<str>,
}

/// Captures of the regular expression that matched last: text and byte ranges of its groups.
#[derive(Debug, Default, Clone)]
pub struct Captures {
    /// What was matched against.
    pub text: Vec<u8>,
    /// Group 0 is the whole match; a group that took no part is empty.
    pub groups: Vec<(u32, u32)>,
}

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

impl Captures {
    fn clear(&mut self) {
        self.text.clear();
        self.groups.clear();
    }
}

impl Sent {
    fn clear(&mut self) {
        self.head.clear();
        self.trailers.clear();
        let (head, trailers) = (std::mem::take(&mut self.head), std::mem::take(&mut self.trailers));
        *self = Sent { head, trailers, ..Sent::default() };
    }
}

/// The beginning of a request's body, or all of it.
#[derive(Debug, Default)]
pub struct EarlyBody {
    /// What was read.
    pub bytes: Vec<u8>,
    /// Whether that is all.
    pub is_whole: bool,
}

/// A file with a name that holds a request's body; gone with the request, unless it is to stay.
#[derive(Debug)]
pub struct BodyFile {
    /// Its path.
    pub path: PathBuf,
    /// What removes it.
    pub removed_by: Option<TempPath>,
}

/// What of the answer to a subrequest is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The head alone.
    Head,
    /// The body, which becomes a part of another answer.
    Body,
    /// The body, which becomes the value of a variable.
    Variable,
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
    /// Variables that the configuration makes out of others, as far as they were read.
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
    pub wanted: Option<Wanted>,
    /// Whether it is no longer where it came to: what a client alone cannot reach is open to it.
    pub is_internal: bool,
    /// Whether path or query in force are not those that came.
    pub is_rewritten: bool,
    /// Whether a `rewrite` with `break` took the path out of the location that still answers: it need not begin as that does.
    pub is_outside: bool,
    /// Whether `try_files` found the URI in force below an `alias` that is a whole path by itself.
    pub extends_alias: bool,
    /// Whether an `error_page` is being answered: a failure now gets the built-in page.
    pub in_error_page: bool,
    /// The status that an `error_page` puts in place of the page's own.
    pub error_status: Option<u16>,
    /// Fields of an answer with `X-Accel-Redirect`, or in whose place an error page comes, that belong to the answer it led to.
    pub accel_fields: Option<Box<Headers>>,
    /// What was answered.
    pub sent: Sent,
    /// `$limit_rate`: bytes a second, where something else than the location says so.
    pub limit_rate: Option<u64>,
    /// What the limits made of it.
    pub limited: Passed,
    /// `$upstream_cache_status`.
    pub cache_status: Option<CacheStatus>,
    /// Where the piece of a sliced answer begins that is being asked for (`slice`).
    pub slice: Option<u64>,
    /// What the request asks of the cache, where clients are heard.
    pub wish: Wish,
    /// Who asks, as far as the cache minds.
    pub asker: Asker,
    /// `Cache-Status`, where it is wanted.
    pub report: Option<Box<CacheReport>>,
    /// A body that was read before it was known who answers (QUERY: it belongs to the key).
    pub body: Option<Box<EarlyBody>>,
    /// The body as it was read to be passed on, where that is in memory.
    pub read_body: Option<Rc<Vec<u8>>>,
    /// The file with a name that holds the body.
    pub body_file: Option<Box<BodyFile>>,
    /// Fields of the upstream's answer for the client that asked, where some of them are not stored.
    pub own_head: Option<Box<Headers>>,
    /// The upstream servers asked.
    pub tries: Tries,
    /// Whether `$secure_link` is being made, out of what may name it.
    pub is_checking_link: Cell<bool>,
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
            is_outside: false,
            extends_alias: false,
            in_error_page: false,
            error_status: None,
            accel_fields: None,
            sent: Sent::default(),
            limit_rate: None,
            limited: Passed::default(),
            cache_status: None,
            slice: None,
            wish: Wish::default(),
            asker: Asker::default(),
            report: None,
            body: None,
            read_body: None,
            body_file: None,
            own_head: None,
            tries: Tries::default(),
            is_checking_link: Cell::new(false),
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
        self.is_outside = false;
        self.extends_alias = false;
        self.in_error_page = false;
        self.error_status = None;
        self.accel_fields = None;
        self.sent.clear();
        self.limit_rate = None;
        self.limited = Passed::default();
        self.cache_status = None;
        self.slice = None;
        self.wish = Wish::default();
        self.asker = Asker::default();
        self.report = None;
        self.body = None;
        self.read_body = None;
        self.body_file = None;
        self.own_head = None;
        self.tries.clear();
        self.id.take();
    }

    /// Takes over what an expression captured of a text.
    pub fn take_captures(&self, captured: Captured, text: &[u8]) {
        for (slot, group) in captured.named {
            let (start, end) = captured.groups.get(usize::from(group)).copied().unwrap_or_default();
            self.slots.set(slot, &text[start as usize..end as usize]);
        }
        let mut captures = self.captures.borrow_mut();
        captures.text.clear();
        captures.text.extend_from_slice(text);
        captures.groups = captured.groups;
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

    /// A request of its own by which this one asks: a GET of a path of the same server, without body, query, conditions and ranges, for
    /// these are about what the client wants. As in nginx, `$request_uri`, `$request_id` and the fields are the client's, the variables
    /// that the configuration sets are one for both, and what the limits have counted is not counted again.
    pub fn subrequest(&self, path: &[u8], wanted: Wanted) -> Box<Request> {
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
        sub.id = OnceCell::from(*self.id());
        sub
    }

    /// Whether it is a subrequest whose answer becomes a part of another.
    pub fn is_included(&self) -> bool {
        matches!(self.wanted, Some(Wanted::Body | Wanted::Variable))
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
        self.id.get_or_init(random_id)
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
        copy.asker = self.asker;
        copy.wanted = self.wanted;
        copy.is_internal = self.is_internal;
        copy.is_rewritten = self.is_rewritten;
        copy.is_outside = self.is_outside;
        copy.extends_alias = self.extends_alias;
        copy
    }

    /// Counts in its location why the cache did not answer, or the answer was not stored.
    pub fn count_miss(&self, cause: Cause) {
        if let Some(&location) = self.generation.shared.miss_locations.get(self.location.0 as usize) {
            self.worker.metrics.miss(location, cause, clock::wall().unix_milliseconds());
        }
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
        if self.method == Method::Other || self.method == self.head.method {
            self.head.method_text.of(&self.bytes)
        } else {
            self.method.name().unwrap_or_default().as_bytes()
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

    /// Whether the answer has a body on the wire.
    pub fn wants_body(&self) -> bool {
        self.method != Method::Head && self.wanted != Some(Wanted::Head)
    }

    /// Whether the request wishes for another protocol (RFC 9110 §7.8) that its location lets it have (`proxy_upgrade`).
    /// `h2c` is none of them: an HTTP that nobody here could look into.
    pub fn is_upgrade(&self) -> bool {
        self.location().settings.pass().and_then(|pass| pass.http()).is_some_and(|http| http.upgrade)
            && self.wishes_upgrade()
    }

    fn wishes_upgrade(&self) -> bool {
        let fields = self.fields();
        self.is_http11()
            && self.framing == Framing::None
            && fields.connection_lists("upgrade")
            && fields.has(FieldId::Upgrade)
            && !fields.lists(FieldId::Upgrade, "h2c")
    }

    /// Whether the request speaks HTTP/1.1 (chunked answers, interim answers).
    pub fn is_http11(&self) -> bool {
        self.head.version == Version::Http11
    }
}

fn random_id() -> [u8; 32] {
    use std::hash::BuildHasher;
    // The standard library's hasher is keyed by the system's random source; a counter keeps ids apart on a thread.
    let keys = std::hash::RandomState::new();
    let (high, low) = (keys.hash_one(1u8), keys.hash_one(2u8));
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let mut text = [0u8; 32];
    for (index, byte) in bytes.iter().enumerate() {
        text[2 * index] = b"0123456789abcdef"[usize::from(byte >> 4)];
        text[2 * index + 1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    text
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
