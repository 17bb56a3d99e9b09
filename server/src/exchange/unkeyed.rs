//! Fields that make applications respond as if to another request: not passed upstream if the cache is involved.
//!
//! A client with such a field would decide what everyone else gets under the same key (cache poisoning). One passes if `proxy_cache_key`
//! names it (`$http_x_forwarded_host`) or a `proxy_set_header` sets it. X-Forwarded-For, X-Real-IP and their like are not in the table:
//! they say who asks, not what for, and logs need them; they are dropped if responses vary by the client's address. The table has the
//! reasons.

use crate::caching::keyed::names_field;
use crate::failure;
use crate::forwarded;
use crate::request::Request;
use millstream_conf::model::{Level, Pass, ProxyCache, Template};
use millstream_net::Address;
use millstream_wire::cgi_name;
use millstream_wire::client_address::is_client_address;
use millstream_wire::{FieldId, Fields, list};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Field, and applications that use it.
const TABLE: &[(&str, &str)] = &[
    // For the host, scheme, port or prefix, which ends up in links and redirects.
    ("Forwarded", "RFC 7239 host= and proto=: Spring, Quarkus, Werkzeug-based middleware, Go frameworks"),
    (
        "X-Forwarded-Host",
        "Rails, Symfony, Django (USE_X_FORWARDED_HOST), Express, Spring, Laravel, WordPress",
    ),
    ("X-Forwarded-Proto", "Rails, Symfony, Django (SECURE_PROXY_SSL_HEADER), Express, Spring, ASP.NET Core"),
    ("X-Forwarded-Protocol", "gunicorn (secure_scheme_headers), older Django set-ups"),
    ("X-Forwarded-Scheme", "Rack, Ingress-NGINX set-ups; responds with a redirect to https"),
    ("X-Forwarded-Https", "PHP frameworks behind TLS terminators"),
    ("X-AppEngine-Https", "WordPress and PHP frameworks on that platform"),
    ("CF-Visitor", "{\"scheme\":\"https\"}: WordPress and its plugins behind that CDN"),
    ("Ssl-Offloaded", "Magento (its default offloader header), back ends of load balancers"),
    ("X-Forwarded-Ssl", "Rack, gunicorn (secure_scheme_headers), Spring"),
    ("X-Forwarded-Port", "Symfony, Rails, Spring, Werkzeug ProxyFix"),
    ("X-Forwarded-Prefix", "Spring, Symfony, Werkzeug ProxyFix, ASP.NET Core, Traefik back ends"),
    ("X-Forwarded-Server", "Apache httpd back ends, Joomla, Magento"),
    ("X-Forwarded-By", "application firewalls' back ends"),
    ("X-Forwarded", "ancestor of RFC 7239's field"),
    ("X-Scheme", "ingress controllers' back ends"),
    ("X-Url-Scheme", "IIS and Microsoft ISA back ends, Joomla"),
    ("Front-End-Https", "Exchange and IIS back ends, WordPress plugins"),
    ("X-Https", "PHP frameworks behind TLS terminators"),
    ("X-Script-Name", "WSGI prefix middleware"),
    ("X-Host", "named first in published studies of cache poisoning, reflected by many applications"),
    ("X-Original-Host", "Azure Application Gateway back ends"),
    ("X-Real-Host", "back ends of hand-written proxies"),
    ("X-Backend-Host", "back ends of hand-written proxies"),
    ("X-Host-Override", "Apache Sling, Google back ends"),
    ("X-Http-Host-Override", "older PHP frameworks"),
    ("Base-Url", "back ends of hand-written proxies"),
    ("X-Base-Url", "back ends of hand-written proxies"),
    ("X-Invoke-Status", "Next.js: responds with the error page of this status"),
    ("X-Original-Forwarded-Host", "ingress controllers' back ends"),
    ("X-Forwarded-Context", "Java application servers behind API gateways"),
    ("X-Client-Scheme", "back ends of hosted load balancers"),
    ("X-ARR-SSL", "IIS Application Request Routing back ends"),
    ("X-SSL", "PHP frameworks behind TLS terminators"),
    ("Fastly-SSL", "back ends of that CDN"),
    ("CloudFront-Forwarded-Proto", "back ends of that CDN"),
    // For the target.
    ("X-Forwarded-Path", "API gateways' back ends"),
    ("X-Forwarded-Uri", "Traefik and Caddy forward-auth back ends"),
    ("X-Forwarded-Query", "API gateways' back ends"),
    ("X-Original-URL", "Symfony before 4.1, Zend, IIS URL Rewrite, Envoy back ends"),
    ("X-Rewrite-URL", "Symfony before 4.1, Zend, ISAPI_Rewrite"),
    ("X-Override-URL", "PHP frameworks"),
    ("X-Original-URI", "ingress controllers' back ends"),
    ("X-Original-Path", "Envoy back ends"),
    ("X-Envoy-Original-Path", "Envoy back ends"),
    ("X-Request-URI", "application servers' connectors"),
    ("X-Rewrite-Path", "back ends of hand-written proxies"),
    ("X-Sendfile-Type", "Rack::Sendfile: the field that names the file, instead of the file itself"),
    ("X-Accel-Mapping", "Rack::Sendfile: which file of the server is sent"),
    ("X-Proxy-URL", "back ends of hand-written proxies"),
    ("X-Http-Destinationurl", "back ends of hand-written proxies"),
    ("Destination", "WebDAV (RFC 4918 §10.3), which no stored method uses"),
    ("X-Middleware-Subrequest", "Next.js: skips middleware, the login included"),
    ("X-Invoke-Path", "Next.js"),
    ("X-Invoke-Query", "Next.js"),
    ("X-Matched-Path", "Next.js"),
    ("X-Now-Route-Matches", "Next.js"),
    ("X-Middleware-Prefetch", "Next.js: an empty object for the page (CVE-2023-46298)"),
    ("X-Nextjs-Data", "Next.js: an empty 200 for a redirect"),
    ("X-HTTP-Path-Override", "back ends of hand-written proxies"),
    // For the method.
    ("X-Forwarded-Method", "Traefik and Caddy forward-auth back ends"),
    ("X-HTTP-Method-Override", "Rack::MethodOverride, Express method-override, Symfony, Laravel, Play"),
    ("X-HTTP-Method", "Microsoft and SAP OData services, Symfony"),
    ("X-Method-Override", "Express method-override, IBM services"),
    ("X-Override-Method", "back ends of hand-written proxies"),
    ("X-Original-Method", "ingress controllers' forward-auth back ends"),
];

/// Fields that request another form of a page. They are passed on, as applications need them; the response is
/// not shared unless key or Vary names them.
const FORMS: &[&str] = &[
    // Next.js: the page's components for its router in place of HTML.
    "RSC",
];

/// Whether a request asks for a form that neither key nor Vary names.
pub(super) fn asks_for_unnamed_form(request: Fields<'_>, cache: &ProxyCache, answer: Fields<'_>) -> bool {
    !cache.vary.unlisted
        && FORMS.iter().any(|form| {
            request.named(form.as_bytes()).is_some()
                && !names_field(&cache.key, form.as_bytes())
                && !answer.lists(FieldId::Vary, form)
        })
}

/// Fields with the client's address that are not passed on.
pub(super) enum HiddenAddresses<'a> {
    None,
    All,
    /// Those outside the key, if no trusted proxy sent them and responses vary by address (`proxy_cache_vary
    /// address`).
    Unkeyed(&'a Template),
}

impl<'a> HiddenAddresses<'a> {
    pub(super) fn of(request: &Request, pass: &'a Pass) -> Self {
        match &pass.cache {
            _ if !pass.exchange.passes_address => HiddenAddresses::All,
            Some(cache) if cache.vary.address && !forwarded::is_trusted(request) => {
                note_unbelieved(request);
                HiddenAddresses::Unkeyed(&cache.key)
            }
            Some(cache) if cache.vary.address => {
                note_contradiction(request);
                HiddenAddresses::None
            }
            _ => HiddenAddresses::None,
        }
    }

    pub(super) fn has(&self, id: FieldId, name: &[u8]) -> bool {
        let is_address = || {
            matches!(id, FieldId::Other | FieldId::Forwarded | FieldId::XForwardedFor | FieldId::XRealIp)
                && is_client_address(name)
        };
        match self {
            HiddenAddresses::None => false,
            HiddenAddresses::All => is_address(),
            HiddenAddresses::Unkeyed(key) => is_address() && !names_field(key, name),
        }
    }
}

/// Logs once that a proxy in front seems to be untrusted: then all its clients are one. Clients that forge
/// the field come from elsewhere.
fn note_unbelieved(request: &Request) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.load(Ordering::Relaxed) {
        return;
    }
    let named = [(FieldId::XForwardedFor, "X-Forwarded-For"), (FieldId::XRealIp, "X-Real-IP")];
    let Some((_, name)) = named.iter().find(|(id, _)| request.field(*id).is_some()) else { return };
    let peer = &request.connection.remote;
    let is_near = match peer {
        Address::Tcp(peer) => match peer.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_private(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
        },
        Address::Unix(_) => true,
    };
    if is_near && !SAID.swap(true, Ordering::Relaxed) {
        let what = format_args!(
            "{name} from {peer} is not passed on. If a proxy connects from this address, have it set X-Forwarded-For \
             (nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for), then add it to trusted_proxy, or \
             to --trust-proxy of serve; a trusted proxy that does not set X-Forwarded-For lets clients choose their \
             address"
        );
        failure::log(request, Level::Warn, what);
    }
}

/// Logs once that a trusted proxy names one client in X-Real-IP and another in X-Forwarded-For: it sets only one of them, and a client may
/// have sent the other.
fn note_contradiction(request: &Request) {
    static LOGGED: AtomicBool = AtomicBool::new(false);
    if LOGGED.load(Ordering::Relaxed) {
        return;
    }
    let real = request.fields().all(FieldId::XRealIp).last().and_then(forwarded::address);
    let (Some(real), true) = (real, request.fields().has(FieldId::XForwardedFor)) else { return };
    let mut lines = request.fields().all(FieldId::XForwardedFor);
    let is_named = lines
        .any(|line| list::elements(line).filter_map(forwarded::address).any(|one| one.ip() == real.ip()));
    if !is_named && !LOGGED.swap(true, Ordering::Relaxed) {
        let what = format_args!(
            "X-Forwarded-For from {} does not contain the address in X-Real-IP, and takes precedence: if the proxy \
             sets only X-Real-IP, clients can choose their address; have the proxy set or remove X-Forwarded-For",
            request.connection.remote
        );
        failure::log(request, Level::Warn, what);
    }
}

/// Whether a field is removed. `key`: the `proxy_cache_key`.
pub(super) fn ends_here(id: FieldId, name: &[u8], key: &Template) -> bool {
    // What the table of fields knows is nearly always something else, and cheap to tell.
    let known = matches!(
        id,
        FieldId::Other | FieldId::Forwarded | FieldId::XForwardedHost | FieldId::XForwardedProto
    );
    known
        && TABLE.iter().any(|(field, _)| cgi_name::is_same(name, field.as_bytes()))
        && !names_field(key, name)
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}
