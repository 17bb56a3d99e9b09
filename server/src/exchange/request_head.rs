//! The head that goes upstream, written anew: request line, `proxy_set_header`s, the client's other end-to-end fields,
//! and our own framing. In FastCGI the same fields go on as parameters (`params`).
//!
//! Hop-by-hop fields never pass (RFC 9110 §7.6.1), and no value can contain a line end. Names with other characters than letters, digits
//! and hyphens are dropped (`ignore_invalid_headers`, `underscores_in_headers`): an application that maps `_` and `-` to one name would
//! take them for fields that a proxy vouches for. Next: `unkeyed`, what else is held back if the response is to be shared.

use super::Rest;
use super::unkeyed::{self, HiddenAddresses};
use crate::caching::keyed;
use crate::request::Request;
use crate::sent_target;
use crate::variables;
use millstream_cache::{Entry, is_note};
use millstream_conf::model::{HttpPass, HttpVersion, Pass, SetHeader, Template, Variable};
use millstream_conf::variables::Builtin;
use millstream_net::buffers;
use millstream_wire::accept_encoding::{self, AcceptEncoding};
use millstream_wire::cgi_name;
use millstream_wire::connection::NamedFields;
use millstream_wire::h1::encode;
use millstream_wire::h2::hpack::encoder as block;
use millstream_wire::octets::is_token;
use millstream_wire::{FieldId, Method};
use smallvec::SmallVec;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestFraming {
    None,
    Length(u64),
    Chunked,
}

impl RequestFraming {
    fn has_body(self) -> bool {
        !matches!(self, RequestFraming::None | RequestFraming::Length(0))
    }
}

pub(super) struct RequestPlan<'a> {
    pub(super) request: &'a Request,
    pub(super) proxy: &'a Pass,
    pub(super) method: Method,
    pub(super) uri: Option<&'a [u8]>,
    /// Leaves out the client's conditions and ranges: the whole response is wanted.
    pub(super) caching: bool,
    pub(super) confirm: Option<&'a Entry>,
    pub(super) rest: Option<&'a Rest>,
    pub(super) framed: RequestFraming,
    pub(super) codings: Option<AcceptEncoding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrittenHead {
    pub(super) keep: bool,
    pub(super) upgrade: bool,
}

pub(super) fn write(out: &mut Vec<u8>, plan: &RequestPlan<'_>, http: &HttpPass) -> WrittenHead {
    append_method(out, plan, http.method.as_ref());
    out.push(b' ');
    sent_target::append(out, plan.request, plan.proxy, plan.uri);
    let http11 = http.http_version == HttpVersion::Http11;
    out.extend_from_slice(if http11 { b" HTTP/1.1\r\n" } else { b" HTTP/1.0\r\n" });
    let mut written = WrittenHead { keep: http11, upgrade: false };
    let mut host = buffers::take();
    append_host(&mut host, plan, http11);
    if !host.is_empty() {
        encode::field(out, b"Host", &host);
    }
    buffers::give(host);
    let is_upgrade = plan.request.is_upgrade();
    // What a server leaves unread it takes for the next request on the connection: someone else's.
    let is_last = written.keep && plan.method.has_no_use_for_body() && plan.framed.has_body();
    let may_switch = plan.request.may_switch();
    for set in &http.set_headers {
        if !(is_host(set)
            || is_upgrade && is_of_upgrade(&set.name)
            || is_last && set.name.eq_ignore_ascii_case("connection")
            || !may_switch && asks_to_switch(plan.request, set))
        {
            append_set(out, plan, set, &mut written);
        }
    }
    if is_upgrade {
        append_upgrade(out, plan.request);
        written.upgrade = true;
    } else if is_last {
        encode::field(out, b"Connection", b"close");
        written.keep = false;
    }
    match plan.framed {
        RequestFraming::None if sets_length(plan, b"0") => encode::field(out, b"Content-Length", b"0"),
        RequestFraming::None => {}
        // There is no body that would be misread without it.
        RequestFraming::Length(0) if sets_length(plan, b"") => {}
        RequestFraming::Length(length) => encode::number_field(out, b"Content-Length", length),
        RequestFraming::Chunked => encode::field(out, b"Transfer-Encoding", b"chunked"),
    }
    for (name, value) in conditions(plan) {
        encode::field(out, name, &value);
    }
    for (_, name, value) in going_on(plan) {
        encode::field(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
    written
}

/// As an HTTP/2 header block (RFC 9113 §8.3.1). `method` is `proxy_method`'s.
pub(super) fn write_block(
    out: &mut Vec<u8>,
    plan: &RequestPlan<'_>,
    method: Option<&Template>,
    wants_trailers: bool,
) -> WrittenHead {
    let request = plan.request;
    let mut text = buffers::take();
    append_method(&mut text, plan, method);
    block::field(out, b":method", &text);
    block::field(out, b":scheme", if plan.proxy.tls().is_some() { b"https" } else { b"http" });
    let set = plan.proxy.set_headers();
    text.clear();
    append_host(&mut text, plan, true);
    block::field(out, b":authority", &text);
    text.clear();
    sent_target::append(&mut text, request, plan.proxy, plan.uri);
    block::field(out, b":path", &text);
    for set in set.iter().filter(|set| may_be_set(set.name.as_bytes())) {
        text.clear();
        variables::evaluate(&set.value, request, &mut text);
        if set.name.eq_ignore_ascii_case("accept-encoding") {
            keep_codings_within(plan.codings, &set.value, &mut text, 0);
        }
        blank_ends(&mut text);
        let value = text.trim_ascii();
        if !value.is_empty() {
            block::field(out, set.name.as_bytes(), value);
        }
    }
    let says_length = request.field(FieldId::ContentLength).is_some();
    match plan.framed {
        // Of a call none is known that its client did not say, however fast its body came.
        RequestFraming::Length(length) if length > 0 && (plan.proxy.grpc().is_none() || says_length) => {
            block::number_field(out, b"content-length", length);
        }
        RequestFraming::None | RequestFraming::Length(0) if sets_length(plan, b"0") => {
            block::field(out, b"content-length", b"0");
        }
        _ => {}
    }
    if wants_trailers && request.fields().lists(FieldId::Te, "trailers") {
        block::field(out, b"te", b"trailers");
    }
    for (name, value) in conditions(plan) {
        block::field(out, name, &value);
    }
    for (_, name, value) in going_on(plan) {
        block::field(out, name, value);
    }
    buffers::give(text);
    WrittenHead { keep: true, upgrade: false }
}

/// Whether HTTP/2 allows the field (RFC 9113 §8.2.2).
fn may_be_set(name: &[u8]) -> bool {
    let id = FieldId::of(name);
    !id.is_hop_by_hop() && !matches!(id, FieldId::Host | FieldId::ContentLength) && is_token(name)
}

fn is_host(set: &SetHeader) -> bool {
    set.name.eq_ignore_ascii_case("host")
}

/// The last `Host` set, as only one may be sent (RFC 9112 §3.2). If it is empty but needed, `$proxy_host`, as
/// in nginx.
fn append_host(out: &mut Vec<u8>, plan: &RequestPlan<'_>, is_due: bool) {
    if let Some(host) = plan.proxy.set_headers().iter().rfind(|set| is_host(set)) {
        variables::evaluate(&host.value, plan.request, out);
        blank_ends(out);
    }
    if out.trim_ascii().is_empty() {
        out.clear();
        if is_due {
            variables::append(&Variable::Builtin(Builtin::ProxyHost), plan.request, out);
        }
    }
}

/// Blanks line ends, which decoded variables ($uri) may have.
fn blank_ends(value: &mut [u8]) {
    if memchr::memchr3(b'\r', b'\n', 0, value).is_some() {
        value.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
    }
}

fn append_method(out: &mut Vec<u8>, plan: &RequestPlan<'_>, method: Option<&Template>) {
    if plan.method != plan.request.method
        && let Some(name) = plan.method.name()
    {
        out.extend_from_slice(name.as_bytes());
        return;
    }
    if let Some(template) = method {
        let start = out.len();
        variables::evaluate(template, plan.request, out);
        if is_token(&out[start..]) {
            return;
        }
        out.truncate(start);
    }
    out.extend_from_slice(plan.request.method_text());
}

/// One `proxy_set_header`; dropped if empty. Framing cannot be set, except that of no body (`sets_length`).
fn append_set(out: &mut Vec<u8>, plan: &RequestPlan<'_>, set: &SetHeader, written: &mut WrittenHead) {
    let name = set.name.as_bytes();
    if name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding") {
        return;
    }
    let start = out.len();
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    let from = out.len();
    variables::evaluate(&set.value, plan.request, out);
    if name.eq_ignore_ascii_case(b"accept-encoding") {
        keep_codings_within(plan.codings, &set.value, out, from);
    }
    if out.len() == from {
        out.truncate(start);
        return;
    }
    let value = &mut out[from..];
    blank_ends(value);
    if name.eq_ignore_ascii_case(b"connection") {
        written.keep &= !value.eq_ignore_ascii_case(b"close");
    } else if name.eq_ignore_ascii_case(b"upgrade") {
        written.upgrade = true;
    }
    out.extend_from_slice(b"\r\n");
}

fn is_of_upgrade(name: &str) -> bool {
    name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("upgrade")
}

/// Whether a field requests another protocol, which is not for HTTP/1.0 clients (RFC 9110 §7.8).
fn asks_to_switch(request: &Request, set: &SetHeader) -> bool {
    let is_connection = set.name.eq_ignore_ascii_case("connection");
    set.name.eq_ignore_ascii_case("upgrade")
        || is_connection
            && variables::value(&set.value, request)
                .split(|byte| *byte == b',')
                .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
}

/// The client's upgrade (RFC 9110 §7.8); both fields are hop-by-hop.
fn append_upgrade(out: &mut Vec<u8>, request: &Request) {
    encode::field(out, b"Connection", b"upgrade");
    for value in request.fields().all(FieldId::Upgrade) {
        encode::field(out, b"Upgrade", value);
    }
}

/// Whether the request is sent with the client's credential (RFC 9111 §3.5). A configured one is the proxy's
/// own and identifies no one.
pub(super) fn has_credential(request: &Request, proxy: &Pass) -> bool {
    let mut made =
        proxy.set_headers().iter().filter(|set| set.name.eq_ignore_ascii_case("authorization")).peekable();
    if made.peek().is_none() {
        return request.field(FieldId::Authorization).is_some();
    }
    made.any(|set| {
        set.value.variables().next().is_some() && !variables::value(&set.value, request).is_empty()
    })
}

/// Whether `proxy_set_header Content-Length` has this value, for a request without a body: an empty one drops
/// the length, and 0 is sent, which some servers demand of every POST.
fn sets_length(plan: &RequestPlan<'_>, length: &[u8]) -> bool {
    let mut set = plan.proxy.set_headers().iter();
    set.any(|set| {
        set.name.eq_ignore_ascii_case("content-length")
            && variables::value(&set.value, plan.request) == length
    })
}

pub(super) type Added<'a> = SmallVec<[(&'static [u8], Cow<'a, [u8]>); 4]>;

/// Conditions for revalidation (RFC 9111 §4.3.1), and the range of a missing rest.
pub(super) fn conditions<'a>(plan: &RequestPlan<'a>) -> Added<'a> {
    let mut fields = SmallVec::new();
    if let Some(entry) = plan.confirm {
        let modified = entry.head().fields().get(FieldId::LastModified);
        fields.extend(modified.map(|value| (&b"If-Modified-Since"[..], value.into())));
        fields.extend(entry.head().etag().map(|value| (&b"If-None-Match"[..], value.into())));
    }
    if let Some(rest) = plan.rest {
        fields.extend(rest.fields());
    }
    fields
}

pub(super) fn going_on<'a>(
    plan: &'a RequestPlan<'a>,
) -> impl Iterator<Item = (FieldId, &'a [u8], &'a [u8])> + use<'a> {
    let fields = plan.request.fields();
    let named = NamedFields::of(fields);
    let keyed = plan.caching || plan.request.cache.status.is_some();
    let key = plan.proxy.cache.as_ref().filter(|_| keyed).map(|cache| &cache.key);
    let hidden = HiddenAddresses::of(plan.request, plan.proxy);
    let settings = &plan.request.server().settings.client_header;
    let goes_on = |name: &[u8]| !settings.ignore_invalid || is_plain(name, settings.underscores);
    let passes = plan.proxy.exchange.passes_fields;
    // Whoever reads such a field goes by its name in CGI.
    let folds = keyed || plan.proxy.is_cgi();
    let (asked, mut is_asked) = (plan.codings.and_then(AcceptEncoding::class_field), false);
    let lines = fields.iter().map(move |(id, name, value)| {
        let meant = if folds { cgi_name::field_of(id, name) } else { id };
        (meant, name, value, id == FieldId::Other && !goes_on(name), meant != id)
    });
    let goes = lines.filter(move |(id, name, _, is_invalid, is_respelled)| {
        let stays = !passes
            || *is_invalid
            // Stored responses are told apart by these, and in no other spelling.
            || (keyed && *is_respelled && matches!(id, FieldId::AcceptEncoding | FieldId::AcceptLanguage))
            || id.is_hop_by_hop()
            || matches!(id, FieldId::Host | FieldId::ContentLength | FieldId::Expect | FieldId::Trailer)
            || (plan.caching && is_condition(*id))
            // Ours stand in their place.
            || (plan.confirm.is_some() && is_precondition(*id))
            || keyed::is_made(plan.proxy, name)
            || named.has(name)
            || key.is_some_and(|key| unkeyed::ends_here(*id, name, key))
            || is_note(name)
            || hidden.has(*id, name);
        !stays
    });
    goes.filter_map(move |(id, name, value, ..)| match asked {
        // In one line, however many came.
        Some(asked) if id == FieldId::AcceptEncoding => {
            (!std::mem::replace(&mut is_asked, true)).then_some((id, name, asked))
        }
        _ => Some((id, name, value)),
    })
}

pub(super) fn is_condition(id: FieldId) -> bool {
    is_precondition(id) || matches!(id, FieldId::Range | FieldId::IfRange)
}

fn is_precondition(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::IfModifiedSince | FieldId::IfUnmodifiedSince | FieldId::IfNoneMatch | FieldId::IfMatch
    )
}

fn is_plain(name: &[u8], underscores: bool) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_' && underscores)
}

/// The codings that an upstream is asked for where its response may be stored: those of the client's class, so that what is stored for
/// one client of it is right for all. `None`: the client's field is passed on unchanged.
pub(super) fn codings_of(request: &Request, proxy: &Pass) -> Option<AcceptEncoding> {
    if proxy.cache.is_none() && !request.location().settings.shadow {
        return None;
    }
    accept_encoding::class(request.fields().all(FieldId::AcceptEncoding))
}

/// Reduces a configured Accept-Encoding to the client's class, as it may differ within a class.
pub(super) fn keep_codings_within(
    class: Option<AcceptEncoding>,
    made_by: &Template,
    out: &mut Vec<u8>,
    from: usize,
) {
    if out.len() == from || made_by.variables().next().is_none() {
        return;
    }
    let Some(class) = class else { return };
    let fitting = match accept_encoding::folded(std::iter::once(&out[from..])) {
        Some(made) => {
            let (gzip, br, zstd) = (made.gzip && class.gzip, made.br && class.br, made.zstd && class.zstd);
            let deflate = made.deflate && class.deflate;
            AcceptEncoding { gzip, br, zstd, deflate, ..AcceptEncoding::default() }
        }
        None => class,
    };
    out.truncate(from);
    out.extend_from_slice(fitting.class_field().unwrap_or(b"identity"));
}
