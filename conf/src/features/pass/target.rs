//! `proxy_pass`: whom a location passes requests to.
//!
//! A host that no `upstream` block names becomes an implicit upstream of one server. Whether a URI part is allowed
//! depends on the location and is checked where that is known, in `http`. Next: `mod`, which resolves it.

use super::Family;
use crate::address::PeerAddress;
use crate::declared::upstream::UpstreamId;
use crate::features::Level;
use crate::features::templates::Templates;
use crate::features::upstream::{default_server, empty};
use crate::reading::Reading;
use crate::source::Span;
use crate::suggest;
use crate::template::{self, Template};
use crate::tree::{Directive, Word};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassTarget {
    /// A group known at load.
    Upstream(UpstreamId),
    /// With variables: evaluates to `http://host[:port][/uri]`; the host is an upstream's name, an address or
    /// a name to resolve.
    Variables(Template),
}

impl Templates for PassTarget {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            PassTarget::Upstream(_) => {}
            PassTarget::Variables(url) => all.push(url),
        }
    }
}

#[derive(Debug, Clone)]
pub struct PassDraft {
    pub family: Family,
    pub target: PassTarget,
    /// As written, with the port unless it is the scheme's.
    pub host: String,
    pub port: u16,
    pub uri: Option<String>,
    /// As written, for the default `proxy_redirect`; `None` with variables.
    pub url: Option<String>,
    /// Whether TLS is used; with variables, whether it may be.
    pub may_be_encrypted: bool,
    pub span: Span,
}

impl PassDraft {
    /// Reports a URI part without a prefix that it could replace.
    pub(super) fn refuse_uri(&self, place: &str, reading: &mut Reading<'_>) {
        let Some(uri) = &self.uri else { return };
        let without = self.url.as_deref().and_then(|url| url.strip_suffix(uri.as_str())).unwrap_or_default();
        let name = self.family.directive("pass");
        reading
            .error(self.span, format!("\"{name}\" cannot have URI part in {place}"))
            .help(format!("there is no prefix to replace; write {name} {};", without.trim_end_matches(':')));
    }
}

/// With their default ports.
const SCHEMES: [(&str, u16); 2] = [("http://", 80), ("https://", 443)];

pub(super) fn read(family: Family, level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    if is_taken(level, directive, reading) {
        return;
    }
    let word = &directive.args[0];
    if !template::is_literal(&word.text) {
        // What stands before the first variable decides already: with another scheme every request would be a 500.
        let start = word.text.split('$').next().unwrap_or_default();
        let may_be = |scheme: &str| start.starts_with(scheme) || scheme.starts_with(start);
        if !SCHEMES.iter().any(|(scheme, _)| may_be(scheme)) {
            wrong_scheme(family, word, reading);
            return;
        }
        let may_be_encrypted = may_be("https://");
        let target = PassTarget::Variables(reading.template(word));
        let (host, span) = (String::new(), word.span);
        level.pass.draft =
            Some(PassDraft { family, target, host, port: 80, uri: None, url: None, may_be_encrypted, span });
        return;
    }
    let mut schemes = SCHEMES.iter();
    let Some((rest, port)) =
        schemes.find_map(|(scheme, port)| Some((word.text.strip_prefix(scheme)?, *port)))
    else {
        wrong_scheme(family, word, reading);
        return;
    };
    let may_be_encrypted = port == 443;
    let (host, uri) = split_uri(rest);
    let Some((target, host, port)) = target(host, Some(port), family, word, reading) else { return };
    let (target, uri) = (PassTarget::Upstream(target), uri.map(str::to_owned));
    let url = Some(word.text.clone());
    level.pass.draft =
        Some(PassDraft { family, target, host, port, uri, url, may_be_encrypted, span: word.span });
}

/// With their default ports.
const GRPC_SCHEMES: [(&str, u16); 2] = [("grpc://", 80), ("grpcs://", 443)];

pub(super) fn read_grpc(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    if is_taken(level, directive, reading) {
        return;
    }
    let (family, word) = (Family::Grpc, &directive.args[0]);
    let found = GRPC_SCHEMES.iter().find_map(|(scheme, port)| Some((word.text.strip_prefix(scheme)?, *port)));
    let (rest, usual) = found.unwrap_or((&word.text, 80));
    // As with a `proxy_pass`: what stands before the first variable decides already.
    let start = word.text.split('$').next().unwrap_or_default();
    if found.is_none() && start.contains("://") {
        wrong_scheme(family, word, reading);
        return;
    }
    let draft = if !template::is_literal(&word.text) {
        let target = PassTarget::Variables(reading.template(word));
        let may_be_encrypted = start.starts_with("grpcs://") || "grpcs://".starts_with(start);
        PassDraft {
            family,
            target,
            host: String::new(),
            port: 80,
            uri: None,
            url: None,
            may_be_encrypted,
            span: word.span,
        }
    } else {
        let (host, uri) = split_uri(rest);
        if uri.is_some() {
            let bare = word.text.strip_suffix(uri.unwrap_or_default()).unwrap_or_default();
            reading.error(word.span, "\"grpc_pass\" cannot have URI part").help(format!(
                "a call is passed on with its own path; write grpc_pass {};",
                bare.trim_end_matches(':')
            ));
            return;
        }
        let Some((id, host, port)) = target(host, Some(usual), family, word, reading) else { return };
        let (target, may_be_encrypted) = (PassTarget::Upstream(id), usual == 443);
        PassDraft { family, target, host, port, uri: None, url: None, may_be_encrypted, span: word.span }
    };
    level.pass.draft = Some(draft);
}

/// Whether a directive of another name already passes requests of the location on.
pub(super) fn is_taken(level: &Level, directive: &Directive, reading: &mut Reading<'_>) -> bool {
    let Some(draft) = &level.pass.draft else { return false };
    let (name, other) = (&directive.name.text, draft.family.directive("pass"));
    reading
        .error(directive.span, format!("\"{name}\" directive is duplicate: the location has a \"{other}\""))
        .help("a location passes its requests to one place; keep one of them");
    true
}

fn wrong_scheme(family: Family, word: &Word, reading: &mut Reading<'_>) {
    let (scheme, bare) = word.text.split_once("://").unwrap_or_default();
    let (family, scheme) = match (family, scheme) {
        (Family::Proxy, "grpc") => (Family::Grpc, "grpc://"),
        (Family::Proxy, "grpcs") => (Family::Grpc, "grpcs://"),
        (Family::Grpc, "https") => (family, "grpcs://"),
        _ => (family, usual_scheme(family)),
    };
    let bare = if bare.is_empty() { &word.text } else { bare };
    let name = family.directive("pass");
    reading.error(word.span, "invalid URL prefix").help(format!("write {name} {scheme}{bare};"));
}

/// The scheme without TLS.
fn usual_scheme(family: Family) -> &'static str {
    match family {
        Family::Proxy => SCHEMES[0].0,
        Family::Grpc => GRPC_SCHEMES[0].0,
        Family::FastCgi | Family::Uwsgi | Family::Scgi => "",
    }
}

/// Splits `host[/uri]` or `unix:/path[:/uri]`.
fn split_uri(rest: &str) -> (&str, Option<&str>) {
    if let Some(path) = rest.strip_prefix("unix:") {
        return match path.find(':') {
            Some(colon) => {
                let uri = &path[colon + 1..];
                (&rest[.."unix:".len() + colon], (!uri.is_empty()).then_some(uri))
            }
            None => (rest, None),
        };
    }
    match rest.find(['/', '?']) {
        Some(slash) => (&rest[..slash], Some(&rest[slash..])),
        None => (rest, None),
    }
}

/// The upstream of a host, with `$proxy_host` and `$proxy_port`; `usual` is the port that may be omitted, if
/// any.
pub(super) fn target(
    host: &str,
    usual: Option<u16>,
    family: Family,
    word: &Word,
    reading: &mut Reading<'_>,
) -> Option<(UpstreamId, String, u16)> {
    let named = |name: &str, reading: &Reading<'_>| {
        reading
            .declared
            .upstreams
            .iter()
            .position(|group| !group.implicit && group.name.eq_ignore_ascii_case(name))
    };
    if let Some(index) = named(host, reading) {
        return Some((UpstreamId(index as u32), host.to_owned(), usual.unwrap_or(0)));
    }
    let scheme = usual_scheme(family);
    let directive = family.directive("pass");
    let Some(address) = PeerAddress::parse(host, usual.unwrap_or(0)) else {
        reading
            .error(word.span, format!("invalid host or port in {directive} \"{}\"", word.text))
            .help(format!("write {scheme}host:port, {scheme}name-of-an-upstream or {scheme}unix:/path"));
        return None;
    };
    if has_no_port(&address) {
        reading.error(word.span, format!("no port in upstream \"{host}\"")).help(format!(
            "no upstream is named \"{host}\"; write {directive} {host}:9000; or the name of one"
        ));
        return None;
    }
    if let Some((name, port)) = host.split_once(':')
        && named(name, reading).is_some()
    {
        reading
            .error(word.span, format!("upstream \"{name}\" may not have port {port}"))
            .help(format!("ports are set in the upstream block; write {scheme}{name}"));
        return None;
    }
    let (shown, port) = match &address {
        PeerAddress::Unix(_) => ("localhost".to_owned(), 0),
        PeerAddress::Tcp(socket) => (host_header(host, usual.unwrap_or(0)), socket.port()),
        PeerAddress::Name(name) => (host_header(host, usual.unwrap_or(0)), name.port),
    };
    warn_of_misspelt_upstream(host, &address, word.span, reading);
    let upstreams = &mut reading.declared.upstreams;
    let index = match upstreams.iter().position(|group| {
        group.implicit && group.name == host && group.servers.iter().any(|server| server.address == address)
    }) {
        Some(index) => index,
        None => {
            let mut group = empty(host, word.span, true);
            group.servers.push(default_server(host, word.span, address));
            upstreams.push(group);
            upstreams.len() - 1
        }
    };
    Some((UpstreamId(index as u32), shown, port))
}

fn has_no_port(address: &PeerAddress) -> bool {
    match address {
        PeerAddress::Unix(_) => false,
        PeerAddress::Tcp(socket) => socket.port() == 0,
        PeerAddress::Name(name) => name.port == 0,
    }
}

fn host_header(host: &str, default_port: u16) -> String {
    host.strip_suffix(&format!(":{default_port}")).unwrap_or(host).to_owned()
}

/// A bare word that is nearly an upstream's name is hardly a host; nginx would ask the DNS and fail.
fn warn_of_misspelt_upstream(host: &str, address: &PeerAddress, span: Span, reading: &mut Reading<'_>) {
    if !matches!(address, PeerAddress::Name(_)) || host.contains(['.', ':']) || host == "localhost" {
        return;
    }
    let names: Vec<String> = reading
        .declared
        .upstreams
        .iter()
        .filter(|group| !group.implicit)
        .map(|group| group.name.clone())
        .collect();
    let Some(help) = suggest::did_you_mean(host, names.iter().map(String::as_str)) else { return };
    reading
        .diagnostics
        .warning(span, format!("no upstream is named \"{host}\", so it is taken for a host name"))
        .help(help);
}
