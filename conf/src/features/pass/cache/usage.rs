//! What comes of the directives of the cache in a location: defaults, and what must fit together.
//!
//! Defaults are nginx's where nginx has the directive, except that one fill per key is the rule. Before: `made`, which knows what the
//! upstream is told; next: `millstream-cache`'s `policy` and `millstream-server`'s `answer/cached`.

use std::sync::Arc;
use std::time::Duration;

use super::ignored_args::IgnoredArg;
use super::{CacheMethods, Heuristic, Valid, ZoneChoice};
use crate::declared::cache_zone::CacheZoneId;
use crate::features::Level;
use crate::features::pass::failures::UseStale;
use crate::features::pass::sharing::{AddressValue, CacheVary, Credentials, Invalidation, StaleWhile};
use crate::features::pass::{CommonLevel, Family, Sent, made};
use crate::features::right::ManageRight;
use crate::features::templates::record;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::{Part, Template, Variable};
use crate::variables::Builtin;

/// nginx's `proxy_cache_key` where none is written.
const DEFAULT_CACHE_KEY: &str = "$scheme$proxy_host$request_uri";

record! {
    /// `proxy_cache*` of a location.
    pub struct ProxyCache {
        /// The zone; where a request chooses it, `crate::zones` puts each in its place.
        pub zone: CacheZoneId,
        /// `proxy_cache_key`; by default what nginx documents as `$scheme$proxy_host$request_uri`, with the target as it is
        /// sent in its last place.
        pub key: Template,
        /// `proxy_cache_ignore_args`: arguments of the query that are no part of the key.
        pub ignored_args: Arc<[IgnoredArg]>,
        /// Whether the key contains `$http_authorization`, or what a `proxy_set_header` makes Authorization of, so that
        /// answers to credentials may be stored.
        pub key_names_credential: bool,
        /// `proxy_cache_credentials`.
        pub credentials: Credentials,
        /// `proxy_cache_vary`.
        pub vary: CacheVary,
        /// What tells the upstream the client's address; nothing without `proxy_cache_vary address`.
        pub addresses: Arc<[AddressValue]>,
        /// `proxy_cache_invalidation`.
        pub invalidation: Invalidation,
        /// Request fields, in lower case, which `proxy_set_header` makes of what neither the key nor the client's field of
        /// that name tells: an answer that varies by one cannot be found by what clients send.
        pub made_fields: Arc<[Box<str>]>,
        /// `proxy_cache_valid`, in file order; the first that fits decides.
        pub valid: Vec<Valid>,
        /// Where each of `valid` was written.
        pub valid_spans: Arc<[Span]>,
        /// `proxy_cache_methods`: whether POST is among them (GET and HEAD always are).
        pub cache_post: bool,
        /// Whether QUERY (RFC 10008) is among them; its body is then a part of the key.
        pub cache_query: bool,
        /// `proxy_cache_lock`.
        pub lock: bool,
        /// `proxy_cache_lock_timeout`, default 5 s: then a waiter asks the upstream itself and stores nothing.
        pub lock_timeout: Duration,
        /// How long a few requests wait for the first response to a key that nothing is stored of; `None` = `lock_timeout`,
        /// which holds as it is where it is written.
        pub lock_patience: Option<Duration>,
        /// `proxy_cache_lock_age`, default 5 s: then one more request may fill.
        pub lock_age: Duration,
        /// `proxy_cache_unread_timeout`, default 3 s: how long a fill goes on that nobody reads any more.
        pub unread_timeout: Option<Duration>,
        /// `proxy_cache_fill_timeout`: an answer that is still arriving then is not kept.
        pub fill_timeout: Option<Duration>,
        /// `proxy_cache_use_stale`.
        pub use_stale: UseStale,
        /// `proxy_cache_stale_while_updating`: the longest that `updating` grants; `None` = no bound.
        pub stale_while_updating: Option<StaleWhile>,
        /// `proxy_cache_stale_if_error`: the longest that the other words grant; `None` = no bound.
        pub stale_if_error: Option<Duration>,
        /// `proxy_cache_background_update`.
        pub background_update: bool,
        /// `proxy_cache_bypass`: asked of the upstream where one is neither empty nor `0`.
        pub bypass: Vec<Template>,
        /// `proxy_no_cache`: not stored where one is neither empty nor `0`.
        pub no_cache: Vec<Template>,
        /// `proxy_cache_min_uses`, default 1.
        pub min_uses: u32,
        /// `proxy_cache_revalidate`.
        pub revalidate: bool,
        /// `proxy_cache_convert_head`, default on: a HEAD is asked as GET and stored; off: passed as it is, not stored.
        pub convert_head: bool,
        /// `proxy_cache_max_range_offset`: a range that begins beyond is passed on as it is; `None` = the whole is always
        /// fetched.
        pub max_range_offset: Option<u64>,
        /// `proxy_cache_client_control`, default off as in nginx: whether Cache-Control (and Pragma) of a request may force
        /// a refresh, ask for a fresher answer, or ask for a stored one only (RFC 9111 §5.2.1).
        pub client_control: bool,
        /// `proxy_cache_heuristic`: hundredths of the time since Last-Modified that an answer without any lifetime is fresh
        /// for (RFC 9111 §4.2.2), and the longest; `None` = off, the default.
        pub heuristic: Option<Heuristic>,
        /// `proxy_cache_refresh_ahead`: an entry in use is refreshed in the background this long before it expires; zero =
        /// off, the default.
        pub refresh_ahead: Duration,
        /// `proxy_cache_tag`: templates whose values, split at spaces and commas, are tags of an answer, beside those of
        /// its Surrogate-Key, Cache-Tag and xkey fields.
        pub tags: Vec<Template>,
        /// `proxy_cache_explain`: answers carry Cache-Status (RFC 9211). Default off.
        pub explain: bool,
        /// `proxy_cache_purge`: a request for which one is neither empty nor `0` purges (a key that ends in `*`: by prefix).
        pub purge: Vec<Template>,
        /// `proxy_cache_purge_methods off`: PURGE and BAN are passed to the upstream as any method. Default on.
        pub purge_methods: bool,
        /// `proxy_cache_purge_soft on`: PURGE marks stale instead of removing. Default off.
        pub purge_soft: bool,
        /// Who may purge.
        pub purge_right: Arc<ManageRight>,
        /// Where the directives stand that decide here about the cache, for `explain`: name and place of each in force,
        /// inherited ones included; those of the outermost level first, in each in file order.
        pub written: Arc<[(&'static str, Span)]>,
    }
}

impl Default for ProxyCache {
    /// What holds where nothing is written; the key is empty.
    fn default() -> Self {
        ProxyCache {
            zone: CacheZoneId(0),
            key: Template::default(),
            ignored_args: Arc::from([]),
            key_names_credential: false,
            credentials: Credentials::Any,
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
            explain: false,
            purge: Vec::new(),
            purge_methods: true,
            purge_soft: false,
            purge_right: Arc::default(),
            written: Arc::from([]),
        }
    }
}

/// What the cache of a location is resolved from.
pub(in crate::features::pass) struct Of<'a> {
    /// Everything said there.
    pub level: &'a Level,
    /// Whose cache.
    pub family: Family,
    /// What is said of that.
    pub common: &'a CommonLevel,
    /// What the location makes of them for the upstream.
    pub sent: Sent<'a>,
}

/// `proxy_cache` and its kind; `None` = off.
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
            Some(true) => made::public(&of.sent, &key, reading),
            _ => Credentials::Any,
        },
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
        explain: cache.explain.unwrap_or(or.explain),
        purge: purge.conditions.clone().unwrap_or_default(),
        purge_methods: purge.methods.unwrap_or(or.purge_methods),
        purge_soft: purge.soft.unwrap_or(or.purge_soft),
        purge_right: purge.right.right(),
        written: of.level.deciding(of.family).map(|written| (written.name, written.span)).collect(),
    })
}

/// Says what differs from nginx wherever there is a cache.
fn note(family: Family, key_names_credential: bool, span: Span, reading: &mut Reading<'_>) {
    let key = family.directive("cache_key");
    if !key_names_credential {
        reading.diagnostics.idle(
            span,
            format!(
                "responses to requests with Authorization are shared only if their Cache-Control allows it (RFC 9111 §3.5); add $http_authorization \
                to {key} to store one per credential"
            ),
        );
    }
    reading.diagnostics.idle(
        span,
        format!(
            "request fields that can make the upstream respond as if to another request (X-Forwarded-Host, X-Forwarded-Proto, Forwarded, \
            X-Original-URL, X-HTTP-Method-Override …) are not passed on if the response may be cached; set one with proxy_set_header, or add it to \
            {key}"
        ),
    );
}

/// After an internal redirect `$request_uri` is still the client's, and one client's file would be found as the answer
/// of a URL that gives each another; so the last part is the target as it is sent, as it is in nginx where nothing is
/// written.
///
/// An application is sent both: the client's target, and the script that the location found for it.
fn default_key(family: Family) -> Template {
    use Variable::Builtin as Fixed;
    let (source, parts): (_, Box<[Variable]>) = match family {
        Family::Proxy => (
            DEFAULT_CACHE_KEY,
            [Fixed(Builtin::Scheme), Fixed(Builtin::ProxyHost), Variable::SentTarget].into(),
        ),
        _ => (
            "$scheme$host$request_uri$uri",
            [Builtin::Scheme, Builtin::Host, Builtin::RequestUri, Builtin::Uri].map(Fixed).into(),
        ),
    };
    Template { parts: parts.into_iter().map(Part::Variable).collect(), source: source.into() }
}

/// Without the range in its key every piece would be found as the first one, and without the request's field no piece
/// would be asked for at all. Where both are missing, answers are whole and right, and only the directive is idle.
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
    let write_key = format!("{name} {}$slice_range;", key.source);
    match (names_range(key), is_asked_for) {
        (true, true) => {}
        (false, true) => {
            let at = of.common.cache.key.as_ref().map_or(span, |(_, span)| *span);
            let message = format!(
                "with \"slice\" the \"{name}\" must contain $slice_range, or all pieces become one entry"
            );
            reading.error(at, message).help(format!("write {write_key}"));
        }
        (true, false) => {
            reading
                .error(span, "with \"slice\" the upstream must be asked for the range of the piece")
                .help("write proxy_set_header Range $slice_range;");
        }
        (false, false) => {
            reading
                .diagnostics
                .warning(span, "\"slice\" has no effect: neither the request to the upstream nor the key contains $slice_range")
                .help(format!("write proxy_set_header Range $slice_range; and {write_key}"));
        }
    }
}
