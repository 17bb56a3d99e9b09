//! Whether the cache has a part in a request, and the key under which it has.
//!
//! A request whose answer depends on something that no key names must not come here: one with a body, or with fields that its
//! Connection takes away from the upstream, which key, Vary and conditions would count. Everybody who needs a request's
//! key takes it from [`key`]. Next: `cached`, which acts on it.

use super::{ignored_args, noted, query};
use crate::client_certificate;
use crate::forwarded;
use crate::request::Request;
use crate::sent_target;
use crate::shows::Shows;
use crate::variables::personal::shown_by_all;
use crate::variables::{self, holds};
use millstream_cache::key::{Parts, TooLong};
use millstream_cache::policy::{self, Asker};
use millstream_cache::{ADDRESS, is_note};
use millstream_conf::model::{AddressValue, Credentials, Pass, ProxyCache, Template, Variable};
use millstream_conf::variables::{Builtin, Source};
use millstream_net::buffers;
use millstream_telemetry::metrics::Counter;
use millstream_wire::accept_encoding::{self, AcceptEncoding};
use millstream_wire::cgi_name;
use millstream_wire::client_address::is_client_address;
use millstream_wire::connection::NamedFields;
use millstream_wire::credential::is_credential;
use millstream_wire::{FieldId, Method};

#[cfg(test)]
mod tests;

#[derive(Debug, PartialEq, Eq)]
pub enum Use {
    None,
    /// The method is cached, but this response may neither come from the cache nor go there.
    Past,
    /// `proxy_cache_verify` found a leak: the same as [`Use::Past`], for the whole location.
    Off,
    /// `proxy_cache_bypass`: no look-up, but the response is stored under the key.
    Bypass(Vec<u8>),
    Lookup(Vec<u8>),
}

/// Adds lines with what no field of the request says and responses vary by. They have no field's name and are not passed on.
pub fn note(request: &mut Request, cache: &ProxyCache) {
    let notes = cache.vary.unlisted && !request.generation.shared.reads.left_out.is_empty();
    if !cache.vary.address && !notes {
        return;
    }
    let bytes = &request.received.bytes;
    request.received.head.fields.retain(|field| !is_note(field.name(bytes)));
    if notes {
        noted::append(request, cache);
    }
    if cache.vary.address {
        note_address(request, cache);
    }
}

/// The client's address as sent upstream, and as it is if the configuration has chosen by it.
fn note_address(request: &mut Request, cache: &ProxyCache) {
    let mut told = buffers::take();
    for AddressValue { value, fields } in cache.addresses.iter() {
        if fields.is_empty() || fields.iter().any(|name| is_client_address(name.as_bytes())) {
            variables::evaluate(value, request, &mut told);
            told.push(b'\n');
        }
    }
    // What it was made of is not known.
    if sent_target::is_replaced(request) {
        told.extend_from_slice(&request.route.uri);
        told.push(b'?');
        told.extend_from_slice(request.query().unwrap_or_default());
        told.push(b'\n');
    }
    let chooses = is_shown_by_way(request, cache, Shows::ADDRESS);
    if chooses {
        for own in [Builtin::RemoteAddr, Builtin::RealipRemoteAddr, Builtin::ProxyProtocolAddr] {
            variables::append(&Variable::Builtin(own), request, &mut told);
            told.push(b'\n');
        }
    }
    let pass = request.location().settings.pass().filter(|pass| pass.exchange.passes_address);
    let trusts = pass.filter(|_| forwarded::is_trusted(request));
    if chooses || trusts.is_some() {
        let goes_on = |name: &[u8]| chooses || trusts.is_some_and(|pass| !is_made(pass, name));
        let told_by = |name: &[u8]| is_client_address(name) && goes_on(name);
        for (_, name, value) in request.fields().iter().filter(|(_, name, _)| told_by(name)) {
            told.extend(name.iter().map(u8::to_ascii_lowercase));
            told.push(b':');
            told.extend_from_slice(value);
            told.push(b'\n');
        }
    }
    request.received.append_field(ADDRESS, &told);
    buffers::give(told);
}

pub fn usage(request: &Request, cache: &ProxyCache) -> Use {
    if !policy::looks_up(cache, request.method) {
        return Use::None;
    }
    if cache.verify.is_some() && is_off(request) {
        return Use::Off;
    }
    // What answers a wish for another protocol is a connection, and that has one user.
    if !is_keyed(request)
        || request.is_upgrade()
        || request.is_extended_connect()
        || query::is_too_large(request)
        || is_for_its_client(request, cache)
    {
        return Use::Past;
    }
    let mut buffer = buffers::take();
    let bypass = cache.bypass.iter().any(|condition| holds(condition, request, &mut buffer));
    buffer.clear();
    match (evaluate(request, cache, &mut buffer), bypass) {
        (Ok(()), false) => Use::Lookup(buffer),
        (Ok(()), true) => Use::Bypass(buffer),
        (Err(TooLong), _) => {
            buffers::give(buffer);
            Use::Past
        }
    }
}

/// Whether a leak has turned the cache of the location off (`proxy_cache_verify`).
pub fn is_off(request: &Request) -> bool {
    let verified = request.generation.shared.zones.verified.of_location(request.route.location);
    verified.is_some_and(|location| location.leak().is_some())
}

/// The names of the client's fields that make it known to the upstream, and are not in the key (`proxy_cache_credentials public`).
pub fn credentials<'r>(request: &'r Request, cache: &'r ProxyCache) -> impl Iterator<Item = &'r [u8]> {
    let replaced = match &cache.credentials {
        Credentials::Public { replaced } => Some(replaced),
        Credentials::Unsaid | Credentials::Any => None,
    };
    let is_replaced = move |name: &[u8]| {
        replaced.is_none_or(|names| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())))
    };
    let fields = request.fields().iter();
    fields.map(|(id, name, _)| (id, name)).filter_map(move |(id, name)| {
        (is_credential(id, name) && !is_replaced(name) && !names_field(&cache.key, name)).then_some(name)
    })
}

/// Whether the upstream gets a credential that is not in the key (`proxy_cache_credentials public`).
pub fn asker(request: &Request, cache: &ProxyCache) -> Asker {
    if !cache.credentials.is_public() {
        return Asker::Anybody;
    }
    let shows = credentials(request, cache).next().is_some();
    // A certificate is a credential that no field shows; what it opens may be decided here as well as behind us.
    let is_certified =
        || client_certificate::shown(request).is_some() && !client_certificate::is_named_in(&cache.key);
    if shows || is_certified() || hands_on(request, cache) || is_shown_by_way(request, cache, Shows::WHO) {
        Asker::Known
    } else {
        Asker::Anybody
    }
}

/// Whether what is sent in the place of the client's fields, or besides them, shows who asks. It counts by what it is made
/// of as well as by its name.
fn hands_on(request: &Request, cache: &ProxyCache) -> bool {
    // Most hand nothing on.
    if cache.handed_on.is_empty() {
        return false;
    }
    let told = told(request, cache);
    cache.handed_on.iter().any(|(name, value)| {
        let name = name.as_bytes();
        let is_told = |variable: &&Variable| match variable.source() {
            Source::Path => told.in_force.has(Shows::PATH),
            Source::Query => told.in_force.has(Shows::QUERY),
            _ => false,
        };
        let shows = shown_by_all(value.variables().filter(|variable| !is_told(variable)), request);
        shows.has(Shows::WHO)
            || is_credential(FieldId::of(name), name)
                && shows.without(told.as_came | told.in_force | Shows::ADDRESS) != Shows::NOTHING
    })
}

/// Whether the user of a request with Authorization is made known to the upstream otherwise than by that field.
pub fn hands_on_authorization(request: &Request, cache: &ProxyCache) -> bool {
    request.field(FieldId::Authorization).is_some()
        && (hands_on(request, cache) || is_shown_by_way(request, cache, Shows::WHO))
}

/// Whether this of the client determines which resource the upstream is asked for, and the key does not contain that: what
/// the response says of its own URL (`public`) then holds for no other client's.
pub fn is_chosen(request: &Request, cache: &ProxyCache, what: Shows) -> bool {
    is_shown_by_way(request, cache, what)
        || shown_by_all(cache.resource.iter().flat_map(Template::variables), request).has(what)
}

/// Whether a response could not be for others even if it says so (`proxy_cache_credentials public`).
pub fn is_for_its_client(request: &Request, cache: &ProxyCache) -> bool {
    cache.credentials.is_public() && is_chosen(request, cache, Shows::WHO)
}

/// Which halves of a target the key contains.
struct ToldHalves {
    in_force: Shows,
    as_came: Shows,
}

fn told(request: &Request, cache: &ProxyCache) -> ToldHalves {
    use Builtin::{Args, DocumentUri, QueryString, RequestUri, Uri};
    let mut told = ToldHalves { in_force: Shows::NOTHING, as_came: Shows::NOTHING };
    for variable in cache.key.variables() {
        match variable {
            Variable::Builtin(Uri | DocumentUri) => told.in_force |= Shows::PATH,
            Variable::Builtin(Args | QueryString) => told.in_force |= Shows::QUERY,
            Variable::SentTarget => told.in_force |= Shows::PATH | Shows::QUERY,
            Variable::Builtin(RequestUri | Builtin::Request) => told.as_came |= Shows::PATH | Shows::QUERY,
            _ => {}
        }
    }
    // Arguments that the key leaves out may be those.
    if !cache.ignored_args.is_empty() {
        (told.in_force, told.as_came) =
            (told.in_force.without(Shows::QUERY), told.as_came.without(Shows::QUERY));
    }
    if is_named_part(request, cache) {
        told.in_force |= Shows::PATH | Shows::QUERY;
    }
    told
}

/// Whether how the configuration has led the request here reveals this of the client: by choices, or by a rewritten
/// target in a half that the key lacks.
fn is_shown_by_way(request: &Request, cache: &ProxyCache, what: Shows) -> bool {
    let is_untold = |half: Shows| !told(request, cache).in_force.has(half);
    let has_query = || request.query().is_some_and(|query| !query.is_empty());
    // Two ways may lead to one target.
    request.route.shows.way.has(what)
        || request.route.shows.path.has(what) && is_untold(Shows::PATH)
        || request.route.shows.query.has(what) && has_query() && is_untold(Shows::QUERY)
}

/// Whether the configuration sets this field for the upstream, so that the client's is dropped.
pub fn is_made(pass: &Pass, name: &[u8]) -> bool {
    let is_cgi = pass.is_cgi();
    pass.set_headers().iter().any(|set| match is_cgi {
        true => cgi_name::is_same(name, set.name.as_bytes()),
        false => name.eq_ignore_ascii_case(set.name.as_bytes()),
    })
}

pub fn names_field(key: &Template, name: &[u8]) -> bool {
    key.variables().any(|variable| {
        matches!(variable, Variable::RequestHeader(field) if cgi_name::is_same(name, field.as_bytes()))
    })
}

/// For any method; `None` if it is too long to store anything.
pub fn key(request: &Request, cache: &ProxyCache) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    evaluate(request, cache, &mut key).ok().map(|()| key)
}

/// Whether key and Vary contain everything that may have changed the response.
pub fn is_keyed(request: &Request) -> bool {
    !has_unkeyed_body(request) && NamedFields::of(request.fields()).is_empty()
}

pub fn key_of(request: &Request, cache: &ProxyCache, method: Method) -> Option<Vec<u8>> {
    if request.method == method { key(request, cache) } else { key(&with_method(request, method), cache) }
}

/// A copy with another method, which the key may contain.
pub fn with_method(request: &Request, method: Method) -> Request {
    let mut other = request.for_refresh();
    // The head keeps the method that came: one that differs from it is told by its name.
    other.method = method;
    other
}

fn evaluate(request: &Request, cache: &ProxyCache, key: &mut Vec<u8>) -> Result<(), TooLong> {
    let more = |key: &mut Vec<u8>, parts: &mut Parts| {
        if request.method == Method::Query {
            query::append_content(request, key, parts);
        }
        if is_named_part(request, cache) {
            let start = key.len() + PART.len();
            key.extend_from_slice(PART);
            key.extend_from_slice(&request.route.uri);
            parts.note(start, key.len());
            let start = key.len() + 1;
            key.push(b'?');
            key.extend_from_slice(request.query().unwrap_or_default());
            parts.note(start, key.len());
        }
    };
    let append = |variable: &Variable, key: &mut Vec<u8>| match variable {
        Variable::RequestHeader(name) if **name == *"accept-encoding" => {
            append_codings(variable, request, key);
        }
        _ => ignored_args::append(variable, request, &cache.ignored_args, key),
    };
    variables::evaluate_key(&cache.key, key, append, more)
        .inspect_err(|TooLong| request.worker.metrics.add(Counter::CacheKeysTooLong, 1))
}

/// `$http_accept_encoding` is in the key as the upstream is asked: by the codings of the client's class.
fn append_codings(variable: &Variable, request: &Request, key: &mut Vec<u8>) {
    let lines = request.fields().all(FieldId::AcceptEncoding);
    match accept_encoding::class(lines).and_then(AcceptEncoding::class_field) {
        Some(field) => key.extend_from_slice(field),
        None => _ = variables::append(variable, request, key),
    }
}

const PART: &[u8] = b"\nPART ";

/// Whether it is an included part whose key says which.
fn is_named_part(request: &Request, cache: &ProxyCache) -> bool {
    request.is_included() && may_be_of_the_page(&cache.key)
}

/// Whether a key may be the same for all parts of a page, as nginx's default with `$request_uri`: then one
/// part would be served for another.
fn may_be_of_the_page(key: &Template) -> bool {
    use Builtin::{DocumentUri, Request, RequestUri, Uri};
    let of_part =
        |variable: &Variable| matches!(variable, Variable::SentTarget | Variable::Builtin(Uri | DocumentUri));
    let of_page = |variable: &Variable| match variable {
        Variable::Builtin(builtin) => matches!(builtin, RequestUri | Request),
        // What they are made of may be it.
        Variable::Made(_) | Variable::Slot(_) => true,
        _ => false,
    };
    !key.variables().any(of_part) && key.variables().any(of_page)
}

/// A GET or HEAD with a body, which has no meaning (RFC 9110 §9.3.1) but which some applications read. A POST
/// is the operator's choice: `proxy_cache_methods` names it.
fn has_unkeyed_body(request: &Request) -> bool {
    matches!(request.method, Method::Get | Method::Head) && query::has_body(request)
}
