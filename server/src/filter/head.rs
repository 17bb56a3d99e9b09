//! The head of an answer as bytes: status line, our own fields, the answer's, `add_header`, framing.
//!
//! A cached answer's head is made once per location and kept ([`Fixed`]); at a hit only the date, the age, Connection and
//! those `add_header`s that read the request are written.

use crate::failure::server_text;
use crate::filter::coding::{self, Plain};
use crate::filter::sink::{Onward, Sink, Writing};
use crate::filter::{charset, expires};
use crate::request::Request;
use crate::variables::{self, userid};
use crate::worker::Stage;
use millstream_conf::model::{AddHeader, Expires, ServerTokens, Settings, Template, Variable};
use millstream_conf::variables::Builtin;
use millstream_net::clock;
use millstream_wire::h1::encode as line;
use millstream_wire::{Coding, FieldId, Fields, Headers, date};

pub struct HeadPlan<'a> {
    pub status: u16,
    pub fields: Fields<'a>,
    pub length: Option<u64>,
    pub chunked: bool,
    pub coding: Option<Coding>,
    /// Seconds, for a cached response (RFC 9111 §5.1).
    pub age: Option<u64>,
}

/// The constant part of a head.
pub struct Fixed {
    pub bytes: Vec<u8>,
    /// Offset of the date's 29 bytes; `None` if the response's own date is passed on.
    pub date_at: Option<usize>,
    adds: Adds,
    /// `expires`, computed for each response, with its Last-Modified. All `add_header`s follow it.
    expires: Option<(Expires, Option<i64>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adds {
    None,
    /// Those with variable values; the others are in the constant part.
    Varying,
    /// All, because their values depend on fields before them.
    All,
}

/// Fields that are written anew or never passed on (RFC 9110 §7.6.1, RFC 9112 §6).
fn is_ours(id: FieldId) -> bool {
    id.is_hop_by_hop() || matches!(id, FieldId::ContentLength | FieldId::Trailer)
}

pub fn encode(out: &mut Vec<u8>, request: &mut Request, plan: &HeadPlan<'_>) -> bool {
    let status = request.outgoing(plan.status);
    let handed_on =
        request.descent.accel_fields.take().map(|first| with_handed_on(status, plan.fields, first.view()));
    let fields = handed_on.as_ref().map_or(plan.fields, Headers::view);
    let plan = &HeadPlan { status, fields, ..*plan };
    request.sent.status = status;
    draft(request, plan.fields);
    let mut sink = Sink::new(out, Writing::of(request));
    let stamp = expires::in_force(request, status).and_then(|expires| {
        let modified = plan.fields.get(FieldId::LastModified).and_then(date::parse_http);
        expires::stamp(&expires, modified, clock::wall().seconds, clock::utc_offset)
    });
    fixed_part(&mut sink, request, plan, stamp.is_some());
    request.sent.head.clear();
    let age = if stamp.is_some() { None } else { plan.age };
    if let Some(stamp) = stamp {
        stamp.write(&mut sink);
    }
    finish(sink, request, age, true, status);
    request.gets_body(status)
}

/// RFC 9110 §15.2.
pub fn interim(out: &mut Vec<u8>, request: &Request, status: u16, fields: Fields<'_>) {
    let mut sink = Sink::new(out, Writing::of(request));
    sink.status(status);
    for (_, name, value) in fields.iter() {
        sink.field(name, value);
    }
    sink.end(Onward::Unsaid);
}

/// Keeps fields for `$sent_http_` variables before the head is made: `expires`, and the charset, which
/// Content-Type lacks at this point, as in nginx.
pub fn draft(request: &mut Request, fields: Fields<'_>) {
    request.sent.head.clear();
    if !request.generation.shared.reads.sent_heads || can_be_fixed(request) {
        return;
    }
    // In place of the status line.
    request.sent.head.push(b'\n');
    for (_, name, value) in fields.iter() {
        line::field(&mut request.sent.head, name, value);
    }
}

/// The response's own fields and those left by earlier ones, such as `X-Accel-Redirect`'s. Its own type and
/// ranges take precedence; a local response already has the earlier type (`media_type`). Location and
/// Content-Range are kept once.
fn with_handed_on(status: u16, own: Fields<'_>, first: Fields<'_>) -> Headers {
    let is_typed = matches!(status, 204 | 304) || own.has(FieldId::ContentType);
    // A part, and what was not changed, say nothing of ranges (`chosen`), and are not to say another's.
    let is_ranged = matches!(status, 206 | 304 | 416) || own.has(FieldId::AcceptRanges);
    let once = [FieldId::Location, FieldId::ContentRange].map(|id| (id, first.has(id)));
    // Both heads are as long as their upstreams like: neither is gone through for each line of the other.
    let mut headers = Headers::copied_from(first, |id, _, _| match id {
        FieldId::ContentType => !is_typed,
        FieldId::AcceptRanges => !is_ranged,
        _ => true,
    });
    for (id, name, value) in own.iter() {
        if !once.contains(&(id, true)) {
            headers.push(name, value);
        }
    }
    headers
}

/// False if a variable decides which fields exist, or is in Content-Type or Server.
pub fn can_be_fixed(request: &Request) -> bool {
    let settings = &request.location().settings;
    let says_itself = match &settings.headers.server_tokens {
        ServerTokens::Text(text) => text.variables().next().is_none(),
        _ => true,
    };
    says_itself
        && !matches!(settings.headers.expires, Expires::Variable(..))
        && charset::is_fixed(&settings.charset)
}

pub fn fixed(request: &Request, plan: &HeadPlan<'_>) -> Fixed {
    let mut bytes = Vec::with_capacity(512);
    let settings = &request.location().settings;
    let expires = expires::in_force(request, plan.status).map(|expires| {
        let modified = plan.fields.get(FieldId::LastModified).and_then(date::parse_http);
        (expires.into_owned(), modified)
    });
    let mut sink = Sink::new(&mut bytes, Writing::of(request));
    let date_at = fixed_part(&mut sink, request, plan, expires.is_some());
    let adds = || applying(&settings.headers.add, plan.status);
    if expires.is_some() || adds().any(|add| names_sent(&add.value)) {
        return Fixed { bytes, date_at, adds: Adds::All, expires };
    }
    for add in adds().filter(|add| is_constant(&add.value)) {
        write_add(&mut sink, request, add);
    }
    let varies = adds().any(|add| !is_constant(&add.value));
    Fixed { bytes, date_at, adds: if varies { Adds::Varying } else { Adds::None }, expires }
}

pub fn from_fixed(
    out: &mut Vec<u8>,
    request: &mut Request,
    fixed: &Fixed,
    age: Option<u64>,
    status: u16,
) -> bool {
    request.sent.status = status;
    request.sent.head.clear();
    let mut sink = Sink::new(out, Writing::of(request));
    sink.prepared(&fixed.bytes, fixed.date_at);
    let mut age = age;
    if fixed.adds != Adds::None {
        if stamp_fixed(&mut sink, fixed) {
            age = None;
        }
        add_fields(&mut sink, request, status, |add| fixed.adds == Adds::All || !is_constant(&add.value));
    }
    finish(sink, request, age, false, status);
    request.gets_body(status)
}

/// Writes `expires`, if set. Its lifetime starts with this response's Date, so no Age is sent: a cache would
/// subtract it (RFC 9111 §4.2.3).
fn stamp_fixed(sink: &mut Sink<'_>, fixed: &Fixed) -> bool {
    let Some((expires, modified)) = &fixed.expires else { return false };
    let stamp = expires::stamp(expires, *modified, clock::wall().seconds, clock::utc_offset);
    stamp.inspect(|stamp| stamp.write(sink)).is_some()
}

/// `stamped`: `expires` replaces the response's own fields.
fn fixed_part(sink: &mut Sink<'_>, request: &Request, plan: &HeadPlan<'_>, stamped: bool) -> Option<usize> {
    let settings = &request.location().settings;
    let is_coded = || plan.fields.has(FieldId::ContentEncoding);
    sink.status(plan.status);
    if plan.fields.get(FieldId::Server).is_none() {
        sink.made(b"Server", |out| out.extend_from_slice(&server_text(request)));
    }
    let mut date_at = None;
    if plan.fields.get(FieldId::Date).is_none() {
        date_at = Some(sink.date());
    }
    for (id, name, value) in plan.fields.iter() {
        if is_ours(id) && !(plan.status == 101 && id == FieldId::Upgrade)
            || plan.age.is_some() && id == FieldId::Age
            || id == FieldId::ContentType && (value.is_empty() || plan.status == 204)
            || stamped && matches!(id, FieldId::Expires | FieldId::CacheControl)
            || plan.coding.is_some() && id == FieldId::AcceptRanges
            || matches!(id, FieldId::LastModified | FieldId::ETag) && is_set(settings, plan.status, name)
        {
            continue;
        }
        if id == FieldId::ContentType
            && let Some(named) = charset::named(request, plan.status, value, is_coded())
        {
            sink.field(name, &named);
        } else if plan.coding.is_some() && id == FieldId::ETag && !value.starts_with(b"W/") {
            // The coded bytes differ, so a strong validator no longer holds (RFC 9110 §8.8.1).
            let weak = [b"W/", value].concat();
            sink.field(name, &weak);
        } else {
            sink.field(name, value);
        }
    }
    if let Some(coding) = plan.coding {
        sink.field(b"Content-Encoding", coding.name().as_bytes());
    }
    sink.framing(plan.chunked, plan.length.filter(|_| !matches!(plan.status, 100..=199 | 204 | 304)));
    vary(sink, settings, plan);
    date_at
}

/// Whether an `add_header` replaces a field: as in nginx Last-Modified and ETag are not doubled.
fn is_set(settings: &Settings, status: u16, name: &[u8]) -> bool {
    applying(&settings.headers.add, status).any(|add| name.eq_ignore_ascii_case(add.name.as_bytes()))
}

/// `gzip_vary`, for every client (RFC 9110 §12.5.5).
fn vary(sink: &mut Sink<'_>, settings: &Settings, plan: &HeadPlan<'_>) {
    let plain = Plain { status: plan.status, fields: plan.fields, length: plan.length };
    let is_decoded = || {
        settings.gunzip.enabled
            && plan.fields.get(FieldId::ContentEncoding).is_some_and(|coding| coding == b"gzip")
    };
    if settings.gzip.vary
        && (plan.coding.is_some() || coding::is_offered(settings, &plain) || is_decoded())
        && !coding::varies(plan.fields)
    {
        sink.field(b"Vary", b"Accept-Encoding");
    }
}

/// Adds the whole response's Vary to a part or a 304 (RFC 9110 §15.3.7, §15.4.5).
pub fn vary_as_whole(request: &Request, headers: &mut Headers, length: Option<u64>) {
    let settings = &request.location().settings;
    let plain = Plain { status: 200, fields: headers.view(), length };
    if settings.gzip.vary && coding::is_offered(settings, &plain) && !coding::varies(headers.view()) {
        headers.push(b"Vary", b"Accept-Encoding");
    }
}

fn finish(mut sink: Sink<'_>, request: &mut Request, age: Option<u64>, adds: bool, status: u16) {
    if let Some(age) = age {
        sink.number(b"Age", age);
    }
    if let Some(report) = &request.cache.report {
        sink.made(b"Cache-Status", |out| report.write(out, status));
    }
    if let Some(cookie) = &request.reply.session_cookie {
        sink.field(b"Set-Cookie", cookie);
    }
    if adds {
        add_fields(&mut sink, request, status, |_| true);
    }
    if let Some((cookie, p3p)) = userid::cookie(request) {
        sink.field(b"Set-Cookie", &cookie);
        if !p3p.is_empty() {
            sink.field(b"P3P", p3p.as_bytes());
        }
    }
    // Whoever is answered while the process stops is told that nothing follows, however long the request has waited.
    request.keep_alive &= request.worker.stage() == Stage::Running;
    sink.end(match status {
        101 => Onward::Upgrade,
        _ if request.keep_alive => Onward::Keep(request.location().settings.keepalive.header),
        _ => Onward::Close,
    });
    keep_sent(request, &sink);
}

fn add_fields(sink: &mut Sink<'_>, request: &mut Request, status: u16, which: impl Fn(&AddHeader) -> bool) {
    if !request.generation.shared.reads.sent_heads {
        for add in applying(&request.location().settings.headers.add, status).filter(|add| which(add)) {
            write_add(sink, request, add);
        }
        return;
    }
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    for add in applying(&settings.headers.add, status).filter(|add| which(add)) {
        // Its value may name what was said before it (`$sent_http_`).
        keep_sent(request, sink);
        write_add(sink, request, add);
    }
}

/// Of several for one validator the last, as in nginx.
pub(super) fn applying(adds: &[AddHeader], status: u16) -> impl Iterator<Item = &AddHeader> {
    adds.iter().enumerate().filter_map(move |(at, add)| {
        let is_set_again = || {
            let mut later = adds[at + 1..].iter().filter(|later| add_applies(later, status));
            later.any(|later| later.name.eq_ignore_ascii_case(&add.name))
        };
        (add_applies(add, status) && !(is_validator(&add.name) && is_set_again())).then_some(add)
    })
}

fn is_validator(name: &str) -> bool {
    name.eq_ignore_ascii_case("etag") || name.eq_ignore_ascii_case("last-modified")
}

/// The statuses without `always`, as in nginx.
fn add_applies(add: &AddHeader, status: u16) -> bool {
    add.always || expires::is_ordinary(status)
}

pub(super) fn write_add(sink: &mut Sink<'_>, request: &Request, add: &AddHeader) {
    sink.made(add.name.as_bytes(), |out| variables::evaluate(&add.value, request, out));
}

fn is_constant(value: &Template) -> bool {
    value.variables().all(|variable| matches!(variable, Variable::Builtin(Builtin::UpstreamCacheStatus)))
}

fn names_sent(value: &Template) -> bool {
    value.variables().any(|variable| matches!(variable, Variable::SentHeader(_)))
}

fn keep_sent(request: &mut Request, sink: &Sink<'_>) {
    if request.generation.shared.reads.sent_heads {
        let kept = request.sent.head.len();
        request.sent.head.extend_from_slice(&sink.said()[kept..]);
    }
}
