//! The cache of a location: its defaults, and what must fit together.
//!
//! Defaults are nginx's where nginx has the directive, except that one fill per key is the rule. Before: `rights`, which
//! says who may purge; next: `model::ProxyCache`, the result.

use std::time::Duration;

use super::{made, rights, sharing};
use crate::inherit::Level;
use crate::model::{Part, ProxyCache, Template, Variable};
use crate::reading::Reading;
use crate::variables::Builtin;

/// nginx's `proxy_cache_key` where none is written.
const DEFAULT_CACHE_KEY: &str = "$scheme$proxy_host$request_uri";

/// `proxy_cache` and its family; `None` = off.
pub(super) fn proxy_cache(level: &Level, reading: &mut Reading<'_>) -> Option<ProxyCache> {
    let (zone, span) = level.proxy_cache?;
    let zone = zone?;
    let key = level.proxy_cache_key.clone().unwrap_or_else(default_key);
    check_slice(level, &key, reading);
    let key_names_credential = made::names_credential(level, &key);
    if !key_names_credential {
        reading.diagnostics.idle(
            span,
            "answers to requests with Authorization are shared only where their Cache-Control allows it (RFC 9111 §3.5); \
             put $http_authorization into proxy_cache_key to keep one per credential",
        );
    }
    reading.diagnostics.idle(
        span,
        "fields by which a client could pass its request off as another one (X-Forwarded-Host, X-Forwarded-Proto, Forwarded, \
         X-Original-URL, X-HTTP-Method-Override …) are not passed on where the cache has a part in the request; \
         set one with proxy_set_header, or name it in proxy_cache_key",
    );
    sharing::warn_of_users(level, &key, reading);
    sharing::warn_of_cookies(level, reading);
    sharing::warn_of_bodies(level, &key, reading);
    sharing::warn_of_hosts(level, &key, span, reading);
    let vary = sharing::vary(level, reading);
    reading.obeyed.extend(level.written.iter().map(|(_, span)| *span));
    let methods = level.proxy_cache_methods.unwrap_or_default();
    Some(ProxyCache {
        zone,
        made_fields: made::fields(level, &key),
        credentials: made::credentials(level, &key),
        vary,
        invalidation: level.proxy_cache_invalidation.unwrap_or_default(),
        key,
        key_names_credential,
        valid: level.proxy_cache_valid.iter().flatten().map(|(valid, _)| *valid).collect(),
        valid_spans: level.proxy_cache_valid.iter().flatten().map(|(_, span)| *span).collect(),
        cache_post: methods.post,
        cache_query: methods.query,
        // One fill per key is the safe default: waiting costs nothing here, since waiters stream from the fill.
        lock: level.proxy_cache_lock.unwrap_or(true),
        lock_timeout: level.proxy_cache_lock_timeout.unwrap_or(Duration::from_secs(5)),
        lock_age: level.proxy_cache_lock_age.unwrap_or(Duration::from_secs(5)),
        unread_timeout: level.proxy_cache_unread_timeout.unwrap_or(Some(Duration::from_secs(3))),
        fill_timeout: level.proxy_cache_fill_timeout.flatten(),
        use_stale: level.proxy_cache_use_stale.unwrap_or_default(),
        stale_while_updating: level.proxy_cache_stale_while_updating.flatten(),
        stale_if_error: level.proxy_cache_stale_if_error.flatten(),
        background_update: level.proxy_cache_background_update.unwrap_or(false),
        bypass: level.proxy_cache_bypass.clone().unwrap_or_default(),
        no_cache: level.proxy_no_cache.clone().unwrap_or_default(),
        min_uses: level.proxy_cache_min_uses.unwrap_or(1),
        revalidate: level.proxy_cache_revalidate.unwrap_or(false),
        convert_head: level.proxy_cache_convert_head.unwrap_or(true),
        max_range_offset: level.proxy_cache_max_range_offset,
        client_control: level.proxy_cache_client_control.unwrap_or(false),
        heuristic: level.proxy_cache_heuristic.flatten(),
        refresh_ahead: level.proxy_cache_refresh_ahead.unwrap_or(Duration::ZERO),
        tags: level.proxy_cache_tags.clone().unwrap_or_default(),
        explain: level.proxy_cache_explain.unwrap_or(false),
        purge: level.proxy_cache_purge.clone().unwrap_or_default(),
        purge_methods: level.proxy_cache_purge_methods.unwrap_or(true),
        purge_soft: level.proxy_cache_purge_soft.unwrap_or(false),
        purge_right: rights::purge(level, reading),
        written: level.written.as_slice().into(),
    })
}

/// After an internal redirect `$request_uri` is still the client's, and one client's file would be found as the answer
/// of a URL that gives each another; so the last part is the target as it is sent, as it is in nginx where nothing is
/// written.
fn default_key() -> Template {
    let parts =
        [Variable::Builtin(Builtin::Scheme), Variable::Builtin(Builtin::ProxyHost), Variable::SentTarget];
    Template { parts: parts.map(Part::Variable).into(), source: DEFAULT_CACHE_KEY.into() }
}

/// Without the range in its key every piece would be found as the first one, and without the request's field no piece
/// would be asked for at all. Where both are missing, answers are whole and right, and only the directive is idle.
fn check_slice(level: &Level, key: &Template, reading: &mut Reading<'_>) {
    let Some((1.., span)) = level.slice else { return };
    let names_range = |value: &Template| {
        value.variables().any(|variable| matches!(variable, Variable::Builtin(Builtin::SliceRange)))
    };
    let fields = level.proxy_set_headers.as_deref().unwrap_or_default();
    let is_asked_for =
        fields.iter().any(|field| field.name.eq_ignore_ascii_case("range") && names_range(&field.value));
    let write_key = format!("proxy_cache_key {}$slice_range;", key.source);
    match (names_range(key), is_asked_for) {
        (true, true) => {}
        (false, true) => {
            let written = level.written.iter().find(|(name, _)| *name == "proxy_cache_key");
            let at = written.map_or(span, |(_, span)| *span);
            reading
                .error(at, "with \"slice\" the \"proxy_cache_key\" must contain $slice_range, or all pieces become one entry")
                .help(format!("write {write_key}"));
        }
        (true, false) => {
            reading
                .error(span, "with \"slice\" the upstream must be asked for the range of the piece")
                .help("write proxy_set_header Range $slice_range;");
        }
        (false, false) => {
            reading
                .diagnostics
                .warning(span, "\"slice\" does nothing here: neither the upstream nor the key is told the range of a piece")
                .help(format!("write proxy_set_header Range $slice_range; and {write_key}"));
        }
    }
}
