//! What comes of the directives of the cache in a location: defaults, and what must fit together.
//!
//! Defaults are nginx's where nginx has the directive, except that one fill per key is the rule. Before: `made`, which knows what the
//! upstream is told; next: `millstream-cache`'s `policy` and `millstream-server`'s `cached`.

use std::sync::Arc;
use std::time::Duration;

use super::ignored_args::IgnoredArg;
use super::verify::CacheVerify;
use super::{CacheMethods, Heuristic, Valid, ZoneChoice};
use crate::declared::cache_zone::CacheZoneId;
use crate::features::Level;
use crate::features::pass::failures::UseStale;
use crate::features::pass::sharing::{AddressValue, CacheVary, Credentials, Invalidation, StaleWhile};
use crate::features::pass::{CommonLevel, Family, Sent, made};
use crate::features::right::ManageRight;
use crate::features::templates::record;
use crate::lexer::quoted;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::{Part, Template, Variable};
use crate::variables::Builtin;

/// nginx's default `proxy_cache_key`.
const DEFAULT_CACHE_KEY: &str = "$scheme$proxy_host$request_uri";

record! {
    pub struct ProxyCache {
        /// If a request chooses it, `crate::zones` makes one location per zone.
        pub zone: CacheZoneId,
        /// By default what nginx documents as `$scheme$proxy_host$request_uri`, ending in the target as it is
        /// sent.
        pub key: Template,
        /// Arguments of the query that are not part of the key.
        pub ignored_args: Arc<[IgnoredArg]>,
        /// Whether the key contains `$http_authorization`, or what `proxy_set_header` sets Authorization to,
        /// so that responses to requests with credentials may be stored.
        pub key_names_credential: bool,
        pub credentials: Credentials,
        /// What is sent to the upstream and may show who asks, unless the key contains it: request fields,
        /// in lower case, and values without such a name.
        pub handed_on: Arc<[(Box<str>, Template)]>,
        /// What decides which resource is asked for and is not contained in the key.
        pub resource: Arc<[Template]>,
        pub vary: CacheVary,
        /// What tells the upstream the client's address; empty without `proxy_cache_vary address`.
        pub addresses: Arc<[AddressValue]>,
        pub invalidation: Invalidation,
        /// Request fields, in lower case, that `proxy_set_header` sets to values which neither the key nor
        /// the client's field of that name determines: a response that varies by one cannot be selected by
        /// what clients send.
        pub made_fields: Arc<[Box<str>]>,
        /// In file order; the first match decides.
        pub valid: Vec<Valid>,
        pub valid_spans: Arc<[Span]>,
        /// Whether POST is in `proxy_cache_methods` (GET and HEAD always are).
        pub cache_post: bool,
        /// Whether QUERY (RFC 10008) is; its body is then part of the key.
        pub cache_query: bool,
        pub lock: bool,
        /// Then a waiter asks the upstream itself and stores nothing.
        pub lock_timeout: Duration,
        /// How long requests wait for the first response to a key with nothing stored; `None` =
        /// `lock_timeout`, which applies unchanged if it is written.
        pub lock_patience: Option<Duration>,
        /// Then one more request may fill.
        pub lock_age: Duration,
        /// How long a fill continues without readers.
        pub unread_timeout: Option<Duration>,
        /// A response that is still arriving then is not stored.
        pub fill_timeout: Option<Duration>,
        pub use_stale: UseStale,
        /// The longest that `updating` allows; `None` = no limit.
        pub stale_while_updating: Option<StaleWhile>,
        /// The longest that the other words allow; `None` = no limit.
        pub stale_if_error: Option<Duration>,
        pub background_update: bool,
        /// Bypasses the cache if one is neither empty nor `0`.
        pub bypass: Vec<Template>,
        /// Not stored if one is neither empty nor `0`.
        pub no_cache: Vec<Template>,
        pub min_uses: u32,
        pub revalidate: bool,
        /// On: a HEAD is sent as GET and stored; off: sent as it is, not stored.
        pub convert_head: bool,
        /// A range that starts beyond is passed on as it is; `None` = the whole response is always fetched.
        pub max_range_offset: Option<u64>,
        /// Whether the request's Cache-Control (and Pragma) may force a refresh, or ask for a fresher or only
        /// a stored response (RFC 9111 §5.2.1). Off as in nginx.
        pub client_control: bool,
        /// Freshness of responses without a lifetime, from Last-Modified (RFC 9111 §4.2.2); `None` = off, the
        /// default.
        pub heuristic: Option<Heuristic>,
        /// An entry in use is refreshed in the background this long before it expires; zero = off, the
        /// default.
        pub refresh_ahead: Duration,
        /// Values, split at spaces and commas, are tags of a response, with those of its Surrogate-Key,
        /// Cache-Tag and xkey fields.
        pub tags: Vec<Template>,
        /// Hits that are compared with what the upstream responds; `None` = off, the default.
        pub verify: Option<CacheVerify>,
        /// Responses carry Cache-Status (RFC 9211).
        pub explain: bool,
        /// A request for which one is neither empty nor `0` purges (a key that ends in `*`: by prefix).
        pub purge: Vec<Template>,
        /// Off: PURGE and BAN are passed to the upstream like any method. Default on.
        pub purge_methods: bool,
        /// PURGE marks stale instead of removing. Default off.
        pub purge_soft: bool,
        pub purge_right: Arc<ManageRight>,
        /// Directives in force that decide about this cache, for `explain`: the outermost level's first, each
        /// level's in file order.
        pub written: Arc<[(&'static str, Span)]>,
    }
}

impl Default for ProxyCache {
    /// The defaults; the key is empty.
    fn default() -> Self {
        ProxyCache {
            zone: CacheZoneId(0),
            key: Template::default(),
            ignored_args: Arc::from([]),
            key_names_credential: false,
            credentials: Credentials::Unsaid,
            handed_on: Arc::from([]),
            resource: Arc::from([]),
            vary: CacheVary::default(),
            addresses: Arc::from([]),
            invalidation: Invalidation::On,
            made_fields: Arc::from([]),
            valid: Vec::new(),
            valid_spans: Arc::from([]),
            cache_post: false,
            cache_query: false,
            // Waiting costs nothing here, since waiters stream from the fill.
            lock: true,
            lock_timeout: Duration::from_secs(5),
            lock_patience: Some(Duration::from_secs(2)),
            lock_age: Duration::from_secs(5),
            unread_timeout: Some(Duration::from_secs(3)),
            fill_timeout: None,
            use_stale: UseStale::default(),
            stale_while_updating: None,
            stale_if_error: None,
            background_update: false,
            bypass: Vec::new(),
            no_cache: Vec::new(),
            min_uses: 1,
            revalidate: false,
            convert_head: true,
            max_range_offset: None,
            client_control: false,
            heuristic: None,
            refresh_ahead: Duration::ZERO,
            tags: Vec::new(),
            verify: None,
            explain: false,
            purge: Vec::new(),
            purge_methods: true,
            purge_soft: false,
            purge_right: Arc::default(),
            written: Arc::from([]),
        }
    }
}

pub(in crate::features::pass) struct Of<'a> {
    pub level: &'a Level,
    pub family: Family,
    pub common: &'a CommonLevel,
    pub sent: Sent<'a>,
}

/// `None` = off.
pub(in crate::features::pass) fn resolve(of: Of<'_>, reading: &mut Reading<'_>) -> Option<ProxyCache> {
    let (cache, sharing, purge) = (&of.common.cache, &of.common.sharing, &of.common.purge);
    let (choice, span) = cache.zone.as_ref()?;
    let or = ProxyCache::default();
    let zone = match choice {
        ZoneChoice::Off => return None,
        ZoneChoice::Fixed(zone) => *zone,
        ZoneChoice::Chosen(_) => or.zone,
    };
    let key = cache.key.as_ref().map_or_else(|| default_key(of.family), |(key, _)| key.clone());
    check_slice(&of, &key, reading);
    let key_names_credential = made::names_credential(of.sent.fields, &key);
    note(of.family, key_names_credential, *span, reading);
    reading.obeyed.extend(of.level.deciding(of.family).map(|written| written.span));
    let methods = cache.methods.map_or_else(CacheMethods::default, |(methods, _)| methods);
    Some(ProxyCache {
        zone,
        made_fields: made::fields(of.sent.fields, &key, reading),
        credentials: match sharing.credentials {
            Some(true) => made::public(&of.sent),
            Some(false) => Credentials::Any,
            None => Credentials::Unsaid,
        },
        handed_on: made::handed_on(&of.sent, &key, reading),
        resource: made::resource(&of.sent, &key, reading),
        addresses: match sharing.vary {
            Some((vary, _)) if vary.address => made::addresses(of.family, &of.sent, reading),
            _ => or.addresses,
        },
        vary: sharing.vary.map_or(or.vary, |(vary, _)| vary),
        invalidation: sharing.invalidation.unwrap_or(or.invalidation),
        ignored_args: cache.ignored_args.clone().unwrap_or_default().into(),
        key,
        key_names_credential,
        valid: cache.valid.iter().flatten().map(|(valid, _)| *valid).collect(),
        valid_spans: cache.valid.iter().flatten().map(|(_, span)| *span).collect(),
        cache_post: methods.post,
        cache_query: methods.query,
        lock: cache.lock.unwrap_or(or.lock),
        lock_timeout: cache.lock_timeout.unwrap_or(or.lock_timeout),
        lock_patience: or.lock_patience.filter(|_| cache.lock_timeout.is_none()),
        lock_age: cache.lock_age.unwrap_or(or.lock_age),
        unread_timeout: cache.unread_timeout.unwrap_or(or.unread_timeout),
        fill_timeout: cache.fill_timeout.unwrap_or(or.fill_timeout),
        use_stale: cache.use_stale.unwrap_or(or.use_stale),
        stale_while_updating: sharing.stale_while_updating.unwrap_or(or.stale_while_updating),
        stale_if_error: sharing.stale_if_error.unwrap_or(or.stale_if_error),
        background_update: cache.background_update.unwrap_or(or.background_update),
        bypass: cache.bypass.clone().unwrap_or_default(),
        no_cache: cache.no_cache.clone().unwrap_or_default(),
        min_uses: cache.min_uses.unwrap_or(or.min_uses),
        revalidate: cache.revalidate.unwrap_or(or.revalidate),
        convert_head: cache.convert_head.unwrap_or(or.convert_head),
        max_range_offset: cache.max_range_offset,
        client_control: cache.client_control.unwrap_or(or.client_control),
        heuristic: cache.heuristic.and_then(|(guess, _)| guess),
        refresh_ahead: cache.refresh_ahead.unwrap_or(or.refresh_ahead),
        tags: cache.tags.clone().unwrap_or_default(),
        verify: cache.verify.unwrap_or(or.verify),
        explain: cache.explain.unwrap_or(or.explain),
        purge: purge.conditions.clone().unwrap_or_default(),
        purge_methods: purge.methods.unwrap_or(or.purge_methods),
        purge_soft: purge.soft.unwrap_or(or.purge_soft),
        purge_right: purge.right.right(),
        written: of.level.deciding(of.family).map(|written| (written.name, written.span)).collect(),
    })
}

/// Notes what differs from nginx for any cache.
fn note(family: Family, key_names_credential: bool, span: Span, reading: &mut Reading<'_>) {
    let key = family.directive("cache_key");
    if !key_names_credential {
        reading.diagnostics.idle(
            span,
            format!(
                "responses to requests with Authorization are shared only if their Cache-Control allows it (RFC 9111 §3.5); to store one per \
                 credential, write {} public and {} origin unlisted address, and add $http_authorization to {key}",
                family.directive("cache_credentials"),
                family.directive("cache_vary")
            ),
        );
    }
    reading.diagnostics.idle(
        span,
        format!(
            "request fields that can make the upstream respond as if to another request (X-Forwarded-Host, X-Forwarded-Proto, Forwarded, \
            X-Original-URL, X-HTTP-Method-Override …) are not passed on if the response may be cached; one that {key} contains is passed on"
        ),
    );
}

/// After an internal redirect `$request_uri` is still the client's, so one client's file could be served for
/// a URL that gives each client another. Hence the last part is the target as it is sent, as nginx does by
/// default. An application is sent both: the client's target, and the script that the location found for it.
fn default_key(family: Family) -> Template {
    use Variable::Builtin as Fixed;
    let (source, parts): (_, Box<[Variable]>) = match family {
        Family::Proxy => {
            (DEFAULT_CACHE_KEY, [Fixed(Builtin::Scheme), Variable::SentOrigin, Variable::SentTarget].into())
        }
        _ => (
            "$scheme$host$is_request_port$request_port$request_uri$uri",
            // The host with the port is sent as HTTP_HOST.
            [
                Builtin::Scheme,
                Builtin::Host,
                Builtin::IsRequestPort,
                Builtin::RequestPort,
                Builtin::RequestUri,
                Builtin::Uri,
            ]
            .map(Fixed)
            .into(),
        ),
    };
    Template { parts: parts.into_iter().map(Part::Variable).collect(), source: source.into() }
}

/// Without the range in its key every slice would be found as the first one, and without the request's field
/// no slice would be requested at all. If both are missing, responses are whole and correct, and only the
/// directive has no effect.
fn check_slice(of: &Of<'_>, key: &Template, reading: &mut Reading<'_>) {
    let Some((1.., span)) = of.level.slice.size else { return };
    let names_range = |value: &Template| {
        value.variables().any(|variable| matches!(variable, Variable::Builtin(Builtin::SliceRange)))
    };
    let is_asked_for = of
        .sent
        .fields
        .iter()
        .any(|field| field.name.eq_ignore_ascii_case("range") && names_range(&field.value))
        // An application may look for it under any name.
        || of.sent.params.iter().any(|param| names_range(&param.value));
    let name = of.family.directive("cache_key");
    let write_key = format!("{name} {};", quoted(&format!("{}$slice_range", key.source)));
    match (names_range(key), is_asked_for) {
        (true, true) => {}
        (false, true) => {
            let at = of.common.cache.key.as_ref().map_or(span, |(_, span)| *span);
            let message = format!(
                "with \"slice\" the \"{name}\" must contain $slice_range, or all slices become one entry"
            );
            reading.error(at, message).help(format!("write {write_key}"));
        }
        (true, false) => {
            reading
                .error(span, "with \"slice\" the request to the upstream must contain the range of the slice")
                .help(ask_for_slices(of));
        }
        (false, false) => {
            reading
                .diagnostics
                .warning(span, "\"slice\" has no effect: neither the request to the upstream nor the key contains $slice_range")
                .help(format!("{} and {write_key}", ask_for_slices(of)));
        }
    }
}

/// How to have slices requested. A location's own fields or parameters replace all inherited ones, so those in force are named
/// with the new one.
fn ask_for_slices(of: &Of<'_>) -> String {
    if !matches!(of.family, Family::Proxy) {
        let param = of.family.directive("param");
        return format!(
            "write {param} HTTP_RANGE $slice_range; next to the other {param} directives, since those of a location replace inherited ones"
        );
    }
    let mut fields: Vec<String> = (of.sent.fields.iter())
        .filter(|field| !field.name.eq_ignore_ascii_case("range"))
        .map(|field| format!("proxy_set_header {} {};", field.name, quoted(&field.value.source)))
        .collect();
    let is_alone = fields.is_empty();
    fields.push("proxy_set_header Range $slice_range;".to_owned());
    match is_alone {
        true => format!("write {}", fields.concat()),
        false => format!("the location needs all of {} (its own replace inherited ones)", fields.join(" ")),
    }
}
