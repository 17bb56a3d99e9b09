//! The `$upstream_*` variables: one value per server asked, joined by commas, and by colons where another location asked.

use super::{Found, give, give_some};
use crate::request::Request;
use crate::sent_target;
use crate::tries::Try;
use millstream_conf::model::{PassTarget, PeerAddress};
use millstream_conf::variables::Builtin;
use millstream_wire::{FieldId, date};
use std::io::Write;
use std::time::Duration;

/// One text per try, separated as in nginx.
pub(super) fn each(request: &Request, out: &mut Vec<u8>, write: impl Fn(&Try, &mut Vec<u8>)) -> Found {
    for (index, one) in request.tries.list.iter().enumerate() {
        out.extend_from_slice(request.tries.separator(index));
        write(one, out);
    }
    if request.tries.list.is_empty() { Found::Nothing } else { Found::Value }
}

/// With three decimals; `-` if unknown.
pub(super) fn seconds(time: Option<Duration>, out: &mut Vec<u8>) {
    match time {
        Some(time) => super::seconds(time, out),
        None => out.push(b'-'),
    }
}

pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    _ = write!(out, "{value}");
}

pub(super) fn cookie(request: &Request, name: &str, out: &mut Vec<u8>) -> Found {
    let Some(headers) = &request.tries.headers else { return Found::Nothing };
    for value in headers.view().all_named(b"set-cookie") {
        let pair = value.split(|&byte| byte == b';').next().unwrap_or(value);
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        // As in nginx, spaces around the `=` mean nothing, and tabs do.
        let is_it = |left: &[u8]| unspaced(left).eq_ignore_ascii_case(name.as_bytes());
        if halves.next().is_some_and(is_it) {
            return give(unspaced(halves.next().unwrap_or_default()), out);
        }
    }
    Found::Nothing
}

fn unspaced(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(start, |last| last + 1);
    &text[start..end]
}

pub(super) fn of_entry(variable: Builtin, request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(cached) = &request.tries.cached else { return Found::Nothing };
    match variable {
        Builtin::UpstreamCacheAge => number(cached.age, out),
        Builtin::UpstreamCacheLastModified => match cached.last_modified {
            Some(modified) => out.extend_from_slice(&date::format_http(modified)),
            None => return Found::Nothing,
        },
        _ => {
            let headers = request.tries.headers.as_ref();
            return give_some(headers.and_then(|headers| headers.view().get(FieldId::ETag)), out);
        }
    }
    Found::Value
}

/// `$slice_range`.
pub(super) fn slice_range(request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(start) = request.cache.slice else { return Found::Nothing };
    request.cache.names_slice.set(true);
    let last = start.saturating_add(request.location().settings.slice).saturating_sub(1);
    out.extend_from_slice(b"bytes=");
    number(start, out);
    out.push(b'-');
    number(last, out);
    Found::Value
}

/// Responses of a socket, or over TLS, are not those of `localhost`, or of the same host without.
pub(super) fn sent_origin(request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(proxy) = request.location().settings.pass() else { return Found::Nothing };
    let mut write = |encrypted: bool, authority: &[u8]| {
        out.extend_from_slice(if encrypted { b"https://" } else { b"" });
        out.extend_from_slice(authority);
        Found::Value
    };
    match &proxy.target {
        PassTarget::Upstream(id) => {
            let group = request.generation.http().upstream(*id);
            let encrypted = proxy.http().is_some_and(|http| http.tls.is_some());
            let socket = group
                .servers
                .first()
                .filter(|server| group.implicit && matches!(server.address, PeerAddress::Unix(_)));
            let host = proxy.host().map_or("", |(host, _)| host);
            write(encrypted, socket.map_or(host, |server| &server.name).as_bytes())
        }
        PassTarget::Variables(template) => {
            let url = super::value(template, request);
            let Some(parts) = sent_target::parts(&url, proxy) else { return Found::Nothing };
            let is_socket = parts.authority.starts_with(b"unix:");
            write(parts.encrypted, if is_socket { parts.authority } else { parts.host().0 })
        }
    }
}

/// The received target, by which nginx names files; the sent one after an internal redirect or with variables
/// in `proxy_pass`. A URI of `proxy_pass` alone does not make two locations share responses: `proxy_redirect`
/// has written each location's prefix into them.
pub(super) fn sent_target(request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(proxy) = request.location().settings.pass() else { return Found::Nothing };
    let url = match &proxy.target {
        PassTarget::Upstream(_) => Vec::new(),
        PassTarget::Variables(template) => super::value(template, request),
    };
    let evaluated = sent_target::parts(&url, proxy).map(|parts| parts.uri).filter(|uri| !uri.is_empty());
    if evaluated.is_none() && !sent_target::is_replaced(request) {
        out.extend_from_slice(request.request_uri());
    } else {
        sent_target::append(out, request, proxy, evaluated);
    }
    Found::Value
}
