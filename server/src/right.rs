//! Who may purge and use the API: an address, or whoever shows the token. Strangers are refused, told why in the log,
//! and counted.
//!
//! Where nothing is written nobody may change anything, and this machine may read: a proxy on the same machine makes strangers
//! look local, and stock nginx says nothing of them. `local` is this machine as far as a request tells, for what it asks on its own
//! behalf; a browser that a web page of somebody else drives does not, be it by having its own name resolved to this
//! machine. It never looks at what is asked for. Before: `sender`, who a request is from; next: `answer/purge`, `admin`.

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

/// What a request wants to do, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privilege {
    name: &'static str,
    directives: &'static str,
    pages: Pages,
}

/// Which web pages may have made a browser send a request. A token is no page's to show: who shows it is asked nothing of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    /// None, where nothing is written; else any, for whom its address lets in, may read: no page learns what another origin
    /// answers. None may do more.
    NotHere,
    /// None, whatever the address: it is done by the request's being sent, and an address says whose browser it is, not whose page.
    None,
    /// The one that stands beside it.
    Own,
}

/// To purge.
pub const PURGE: Privilege = Privilege {
    name: "purge",
    directives: "proxy_cache_purge_allow and proxy_cache_purge_token",
    pages: Pages::None,
};
/// To use the API.
pub const API: Privilege =
    Privilege { name: "api", directives: "api_allow and api_token", pages: Pages::NotHere };
/// To use what the dashboard's page uses.
pub const DASHBOARD: Privilege =
    Privilege { name: "dashboard", directives: "api_allow and api_token", pages: Pages::Own };

/// Whether a request may, as the location has it that the right is of; a refusal is logged and counted.
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

/// Whether the dashboard's page itself, in which no figure stands, is for a request: under a name that is somebody else's it is for
/// nobody, unless a token has to be shown for the figures.
pub fn sees_page(right: &ManageRight, request: &Request) -> bool {
    right.token.is_some() || known_name(request).is_ok()
}

/// Why a request may not.
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

/// Why a request that shows no token may not, as far as it says whom it is from.
fn admits_address(right: &ManageRight, request: &Request, pages: Pages) -> Result<(), &'static str> {
    if right.token.is_some() && right.allow.is_none() && bearer(request).is_some() {
        return Err("the token is not the one that is configured");
    }
    let Some(allowed) = &right.allow else {
        return match right.token {
            Some(_) => Err("it has no token"),
            None if writes(request, pages) => Err("neither a list of addresses nor a token is configured"),
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

/// Whether a request changes something; what purges does, whatever its method.
fn writes(request: &Request, pages: Pages) -> bool {
    pages == Pages::None || !matches!(request.method, Method::Get | Method::Head)
}

/// Whether a request is one of this machine's programs, as far as it says.
fn local(request: &Request, pages: Pages) -> Result<(), &'static str> {
    sender::is_local(request)?;
    if pages == Pages::Own {
        return Ok(());
    }
    no_page(request)?;
    own_name(request)
}

/// Whether it was sent to a name that is this machine's. A page whose name is resolved to this machine once it is loaded is
/// of the same origin as what it then asks for, and a browser says nothing more of a GET; of any other method it says Origin.
/// Nothing is resolved to get to a Unix socket.
fn own_name(request: &Request) -> Result<(), &'static str> {
    let by_name = matches!(request.method, Method::Get | Method::Head)
        && matches!(request.connection.remote, Address::Tcp(_))
        && (request.head.authority.is_some()
            || request.field(FieldId::Host).is_some_and(|host| !host.is_empty()));
    let host = &*request.host;
    let is_known = || {
        is_this_machine(host)
            || request.generation.shared.hosts[request.connection.listener.get()].names(host)
    };
    if by_name && !is_known() { Err(STRANGE_NAME) } else { Ok(()) }
}

const STRANGE_NAME: &str = "it was sent to a name that is not a server_name here, and a web page can have its own name resolved to this machine";

/// The same where a page of ours asks, whatever the method: its own origin is what a page says whose name leads here. Names are
/// those that some server has word for word.
fn known_name(request: &Request) -> Result<(), &'static str> {
    let host = &*request.host;
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

/// Names that lead to this machine whatever a name server says, and addresses, which no name server is asked about.
fn is_this_machine(host: &[u8]) -> bool {
    host == b"localhost" || host.ends_with(b".localhost") || is_address(host)
}

/// Whether a host is an address, an IPv6 one in brackets.
pub(crate) fn is_address(host: &[u8]) -> bool {
    let bare = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host);
    std::str::from_utf8(bare).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Whether no web page made a browser send it, as far as browsers say.
fn no_page(request: &Request) -> Result<(), &'static str> {
    let fields = request.fields();
    let of_a_page = fields.named(b"origin").is_some()
        || fields.named(b"sec-fetch-site").is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
    if of_a_page {
        return Err("a web page made a browser send it");
    }
    Ok(())
}

/// Whether no other page than ours made a browser send it: one of the origin that it is sent to.
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
    if of_another { Err("a web page of another origin made a browser send it") } else { Ok(()) }
}

/// Whether a request that is admitted may change something where an address alone may not: it has the token, or is a program of this
/// machine where these are named (`local`).
pub fn may_change(right: &ManageRight, request: &Request) -> bool {
    let names_local = right.allow.as_ref().is_some_and(|allowed| allowed.contains(&Allowed::Local));
    shows_token(right, request) || names_local && sender::is_local(request).is_ok()
}

/// Whether a request has the token, where there is one.
fn shows_token(right: &ManageRight, request: &Request) -> bool {
    let shown = right.token.as_ref().zip(bearer(request));
    shown.is_some_and(|(token, shown)| equal(shown, token.as_bytes()))
}

/// The token of `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
fn bearer(request: &Request) -> Option<&[u8]> {
    let value = request.field(FieldId::Authorization)?;
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

/// Compares in a time that depends on the length of what was shown alone.
fn equal(shown: &[u8], token: &[u8]) -> bool {
    let mut difference = u8::from(shown.len() != token.len() || token.is_empty());
    for (at, byte) in shown.iter().enumerate() {
        let other = if token.is_empty() { 0 } else { token[at % token.len()] };
        difference |= std::hint::black_box(byte ^ other);
    }
    difference == 0
}
