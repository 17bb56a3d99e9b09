//! In which coding a client gets an answer: the one place that chooses.
//!
//! The conditions are nginx's (`gzip*`); beyond them `no-transform` is honoured (RFC 9111 §5.2.2.6) and weights count
//! (RFC 9110 §12.5.3). Next: `compressor`, which makes it; a cached answer is coded once and kept, see `representation/hit`.

use crate::request::Request;
use crate::route::capture;
use millstream_conf::model::{Gzip, GzipHttpVersion, GzipProxied, Settings};
use millstream_wire::accept_encoding::Weights;
use millstream_wire::{Coding, FieldId, Fields, Headers, Version, cache_control};

pub struct Plain<'a> {
    pub status: u16,
    pub fields: Fields<'a>,
    pub length: Option<u64>,
}

struct Rule<'a> {
    coding: Coding,
    enabled: bool,
    min_length: u64,
    types: &'a [String],
    any_type: bool,
}

impl Rule<'_> {
    fn covers(&self, plain: &Plain<'_>) -> bool {
        self.enabled
            && plain.length.is_none_or(|length| length >= self.min_length)
            && covers_type(self.any_type, self.types, plain.fields)
    }
}

/// `*` also covers a response without a type, as in nginx.
pub(super) fn covers_type(any_type: bool, types: &[String], fields: Fields<'_>) -> bool {
    any_type || fields.get(FieldId::ContentType).is_some_and(|value| lists(types, value))
}

/// `text/html` always counts.
fn lists(types: &[String], value: &[u8]) -> bool {
    let media = value.split(|&byte| byte == b';').next().unwrap_or(value).trim_ascii();
    media.eq_ignore_ascii_case(b"text/html")
        || types.iter().any(|listed| media.eq_ignore_ascii_case(listed.as_bytes()))
}

pub(super) fn varies(fields: Fields<'_>) -> bool {
    let is_it = |member: &[u8]| member == b"*" || member.eq_ignore_ascii_case(b"accept-encoding");
    let members = |value| <[u8]>::split(value, |&byte| byte == b',').map(<[u8]>::trim_ascii);
    fields.all(FieldId::Vary).any(|value| members(value).any(is_it))
}

/// A subrequest accepts none: the page around it is coded.
fn weights(request: &Request) -> Weights {
    Weights::read(request.fields().all(FieldId::AcceptEncoding).filter(|_| !request.is_included()))
}

pub(super) fn takes(request: &Request, coding: Coding, fields: Fields<'_>) -> bool {
    let weights = weights(request);
    weights.takes(coding) && is_allowed(request, coding, fields)
}

macro_rules! rule {
    ($coding:expr, $of:expr) => {
        Rule {
            coding: $coding,
            enabled: $of.enabled,
            min_length: $of.min_length,
            types: &$of.types,
            any_type: $of.any_type,
        }
    };
}

/// Preferred codings first: those that make text smallest.
fn rules(settings: &Settings) -> [Rule<'_>; 3] {
    let Settings { gzip, brotli, zstd, .. } = settings;
    [rule!(Coding::Br, brotli), rule!(Coding::Zstd, zstd), rule!(Coding::Gzip, gzip)]
}

/// The client's favourite of the location's codings; `None` is the plain body.
pub fn choose(request: &Request, plain: &Plain<'_>) -> Option<Coding> {
    let rules = rules(&request.location().settings);
    if !rules.iter().any(|rule| rule.enabled) {
        return None;
    }
    let weights = weights(request);
    if weights.is_none() || !may_be_coded(plain) {
        return None;
    }
    let suits = |rule: &&Rule<'_>| {
        weights.takes(rule.coding) && rule.covers(plain) && is_allowed(request, rule.coding, plain.fields)
    };
    weights.best(rules.iter().filter(suits).map(|rule| rule.coding))
}

/// Codings that the client accepts and prefers to none, its favourites first; equals in their order.
pub fn by_preference(request: &Request, offered: impl Iterator<Item = Coding>) -> Vec<Coding> {
    let weights = weights(request);
    let nothing = Headers::default();
    let mut left: Vec<Coding> =
        offered.filter(|coding| is_allowed(request, *coding, nothing.view())).collect();
    let mut ordered = Vec::new();
    while let Some(best) = weights.best(left.iter().copied()) {
        left.retain(|coding| *coding != best);
        ordered.push(best);
    }
    ordered
}

/// Whether some client would get a coded response, so that this one varies (`gzip_vary`).
pub fn is_offered(settings: &Settings, plain: &Plain<'_>) -> bool {
    let rules = rules(settings);
    rules.iter().any(|rule| rule.enabled)
        && may_be_coded(plain)
        && rules.iter().any(|rule| rule.covers(plain))
}

fn may_be_coded(plain: &Plain<'_>) -> bool {
    matches!(plain.status, 200 | 403 | 404)
        && plain.fields.get(FieldId::ContentEncoding).is_none()
        && !cache_control::parse(plain.fields.all(FieldId::CacheControl)).no_transform
}

/// As in nginx, only gzip has conditions.
fn is_allowed(request: &Request, coding: Coding, fields: Fields<'_>) -> bool {
    let gzip = &request.location().settings.gzip;
    coding != Coding::Gzip
        || (gzip.http_version == GzipHttpVersion::Http10 || request.received.head.version != Version::Http10)
            && (request.field(FieldId::Via).is_none() || for_proxied(gzip, request, fields))
            && !is_disabled(gzip, request)
}

/// `gzip_disable`; an expression that hits its limit counts as a match, as the plain body is always right.
fn is_disabled(gzip: &Gzip, request: &Request) -> bool {
    let agent = || request.field(FieldId::UserAgent).unwrap_or_default();
    gzip.disable.iter().any(|regex| !matches!(capture(regex, agent()), Ok(None)))
}

/// `gzip_proxied`, for requests with Via. As in nginx, with anything but `off` a response without Expires and
/// Cache-Control is compressed, unless `no_last_modified` or `no_etag` prevents it.
fn for_proxied(gzip: &Gzip, request: &Request, fields: Fields<'_>) -> bool {
    let rule = &gzip.proxied;
    if *rule == GzipProxied::default() {
        return false;
    }
    if rule.any || rule.auth && request.field(FieldId::Authorization).is_some() {
        return true;
    }
    if let Some(expires) = fields.get(FieldId::Expires) {
        let now = millstream_net::clock::wall().seconds;
        let date = fields.get(FieldId::Date).and_then(millstream_wire::date::parse_http).unwrap_or(now);
        return rule.expired && millstream_wire::date::parse_http(expires).is_some_and(|at| at < date);
    }
    if fields.has(FieldId::CacheControl) {
        let control = cache_control::parse(fields.all(FieldId::CacheControl));
        return rule.no_cache && control.no_cache.is_present()
            || rule.no_store && control.no_store
            || rule.private && control.private.is_present();
    }
    !(rule.no_last_modified && fields.has(FieldId::LastModified) || rule.no_etag && fields.has(FieldId::ETag))
}
