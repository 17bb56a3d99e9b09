//! Who may purge and use the API: an address, or a client with the token. Others are refused, with the reason in the log,
//! and counted.
//!
//! By default no one may change anything, and this machine may read: behind a proxy on the same machine every client looks local, and
//! stock nginx does not forward their addresses. `local` means this machine's own programs as far as a request tells, and no browser
//! driven by a foreign web page, even one that rebinds its name to this machine. What is requested plays no role here. Before: `sender`,
//! who a request is from; next: `content/purge`, `millstream-admin`'s `api`.

#[cfg(test)]
mod tests;

use crate::failure;
use crate::location_text::located;
use crate::network::{contains, is_local};
use crate::request::Request;
use crate::sender;
use millstream_conf::model::{Allowed, Level, LocationId, ManageRight, ServerName};
use millstream_net::Address;
use millstream_telemetry::metrics::Counter;
use millstream_wire::{FieldId, Method};
use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privilege {
    name: &'static str,
    directives: &'static str,
    pages: Pages,
}

/// Web pages that may cause a request. With a token this is not checked, as no page knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    /// By default none; otherwise reading is open to all pages of an admitted address, as none can read
    /// another origin's response. Changes never are.
    NotHere,
    /// None, whatever the address: the request itself has the effect, and an address identifies a browser,
    /// not a page.
    None,
    Own,
}

pub const PURGE: Privilege = Privilege {
    name: "purge",
    directives: "proxy_cache_purge_allow and proxy_cache_purge_token",
    pages: Pages::None,
};
pub const API: Privilege =
    Privilege { name: "api", directives: "api_allow and api_token", pages: Pages::NotHere };
pub const DASHBOARD: Privilege =
    Privilege { name: "dashboard", directives: "api_allow and api_token", pages: Pages::Own };

/// `of`: the location of the right. A refusal is logged and counted.
pub fn admits(right: &ManageRight, request: &Request, privilege: Privilege, of: LocationId) -> bool {
    let Err(why) = judge(right, request, privilege.pages) else { return true };
    request.worker.metrics.add(Counter::ManageRefused, 1);
    if failure::logs(request).enabled(Level::Error) {
        let (Privilege { name, directives, .. }, of) = (privilege, located(request, of));
        let what = format_args!("{name} refused: {why}; access is controlled by {directives} of {of}");
        failure::log(request, Level::Error, what);
    }
    false
}

/// Whether the dashboard's page, which has no figures, may be served: not under a foreign host name, unless
/// the figures need a token.
pub fn sees_page(right: &ManageRight, request: &Request) -> bool {
    right.token.is_some() || known_name(request).is_ok()
}

fn judge(right: &ManageRight, request: &Request, pages: Pages) -> Result<(), &'static str> {
    if shows_token(right, request) {
        return Ok(());
    }
    admits_address(right, request, pages)?;
    match pages {
        Pages::NotHere if matches!(request.method, Method::Get | Method::Head) => Ok(()),
        Pages::NotHere | Pages::None => no_page(request),
        Pages::Own => own_page(request).and_then(|()| known_name(request)),
    }
}

fn admits_address(right: &ManageRight, request: &Request, pages: Pages) -> Result<(), &'static str> {
    if right.token.is_some() && right.allow.is_none() && bearer(request).is_some() {
        return Err("the token does not match the configured one");
    }
    let Some(allowed) = &right.allow else {
        return match right.token {
            Some(_) => Err("the request has no token"),
            None if writes(request, pages) => Err("neither an address list nor a token is configured"),
            None => local(request, pages),
        };
    };
    let of_list = sender::is_of(request, |address| {
        allowed.iter().any(|allowed| matches!(allowed, Allowed::Of(network) if contains(network, address)))
    });
    // A list that has this machine means its programs, not the pages that its browser shows.
    let of_list = of_list.and_then(|()| if is_local(request.client()) { own_name(request) } else { Ok(()) });
    if of_list.is_err() && allowed.contains(&Allowed::Local) { local(request, pages) } else { of_list }
}

/// A purge does, whatever its method.
fn writes(request: &Request, pages: Pages) -> bool {
    pages == Pages::None || !matches!(request.method, Method::Get | Method::Head)
}

/// Whether a program on this machine seems to have sent it.
fn local(request: &Request, pages: Pages) -> Result<(), &'static str> {
    sender::is_local(request)?;
    if pages == Pages::Own {
        return Ok(());
    }
    no_page(request)?;
    own_name(request)
}

/// Whether Host is a name of this machine. A page can rebind its own name to this machine after loading; its
/// requests are then same-origin, and a browser sends Origin only for methods other than GET. A Unix socket
/// needs no name.
fn own_name(request: &Request) -> Result<(), &'static str> {
    let by_name = matches!(request.method, Method::Get | Method::Head)
        && matches!(request.connection.remote, Address::Tcp(_))
        && (request.received.head.authority.is_some()
            || request.field(FieldId::Host).is_some_and(|host| !host.is_empty()));
    let host = &*request.route.host;
    let is_known = || {
        is_this_machine(host)
            || request.generation.shared.hosts[request.connection.listener.get()].names(host)
    };
    if by_name && !is_known() { Err(STRANGE_NAME) } else { Ok(()) }
}

const STRANGE_NAME: &str = "the Host of the request is not a configured server_name, so the request may come from a \
    web page whose name was rebound to this machine";

/// The same for a page of ours, with any method: a rebound page would send its own Origin. Known names are
/// those that a server has literally.
fn known_name(request: &Request) -> Result<(), &'static str> {
    let host = &*request.route.host;
    let is_written = || {
        let names = request.generation.http().servers.iter().flat_map(|server| &server.names);
        names.into_iter().any(|name| matches!(name, ServerName::Exact(text) if text.as_bytes() == host))
    };
    let is_socket = matches!(request.connection.remote, Address::Unix(_));
    if host.is_empty() || is_socket || is_this_machine(host) || is_written() {
        return Ok(());
    }
    Err(STRANGE_NAME)
}

/// Names that never depend on a name server, and addresses.
fn is_this_machine(host: &[u8]) -> bool {
    host == b"localhost" || host.ends_with(b".localhost") || is_address(host)
}

pub fn is_address(host: &[u8]) -> bool {
    let bare = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host);
    std::str::from_utf8(bare).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Whether no web page caused it, as far as browsers tell.
fn no_page(request: &Request) -> Result<(), &'static str> {
    let fields = request.fields();
    let of_a_page = fields.named(b"origin").is_some()
        || fields.named(b"sec-fetch-site").is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
    if of_a_page {
        return Err("the request was sent by a web page");
    }
    Ok(())
}

/// Whether no page of another origin caused it.
fn own_page(request: &Request) -> Result<(), &'static str> {
    let fields = request.fields();
    let is_own = |origin: &[u8]| {
        let host = request.field(FieldId::Host).unwrap_or_default();
        let of_origin = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        of_origin.is_some_and(|of_origin| of_origin.eq_ignore_ascii_case(host))
    };
    let is_same = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    let of_another = fields.named(b"origin").is_some_and(|origin| !is_own(origin))
        || fields.named(b"sec-fetch-site").is_some_and(|site| !is_same(site));
    if of_another { Err("the request was sent by a web page of another origin") } else { Ok(()) }
}

/// Whether an admitted request may make changes, for which an address is not enough: with the token, or from
/// this machine with `local`.
pub fn may_change(right: &ManageRight, request: &Request) -> bool {
    let names_local = right.allow.as_ref().is_some_and(|allowed| allowed.contains(&Allowed::Local));
    shows_token(right, request) || names_local && sender::is_local(request).is_ok()
}

fn shows_token(right: &ManageRight, request: &Request) -> bool {
    let shown = right.token.as_ref().zip(bearer(request));
    shown.is_some_and(|(token, shown)| equal(shown, token.as_bytes()))
}

/// RFC 6750 §2.1.
fn bearer(request: &Request) -> Option<&[u8]> {
    let value = request.field(FieldId::Authorization)?;
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

/// In a time that depends only on the length of `shown`.
fn equal(shown: &[u8], token: &[u8]) -> bool {
    let mut difference = u8::from(shown.len() != token.len() || token.is_empty());
    for (at, byte) in shown.iter().enumerate() {
        let other = if token.is_empty() { 0 } else { token[at % token.len()] };
        difference |= std::hint::black_box(byte ^ other);
    }
    difference == 0
}
