//! Who may manage: the rights of purging and of the API in one location, and warnings where strangers are let in.
//!
//! Nobody is let in here that the configuration does not name. Next: `model::ManageRight`, the result.

use std::sync::Arc;

use crate::inherit::Level;
use crate::model::{Api, LocationMatch, ManageRight, Network, PurgeAt};
use crate::reading::Reading;
use crate::source::Span;

/// `api` with the right to use it.
pub(super) fn api(level: &Level, reading: &mut Reading<'_>) -> Option<Api> {
    let (write, span) = level.api?;
    if write {
        warn_of_strangers("api_allow", level.api_allow.as_deref(), "change", reading);
    }
    if level.proxy_pass.is_some() {
        reading
            .diagnostics
            .warning(span, "\"api\" and \"proxy_pass\" stand in one location; the API answers")
            .help("give the API a location of its own");
    }
    Some(Api { write, right: right(level.api_allow.as_deref(), level.api_token.as_deref()) })
}

/// `proxy_cache_purge zone key`, which needs a location of its own.
pub(super) fn purge_at(
    level: &Level,
    matches: &LocationMatch,
    reading: &mut Reading<'_>,
) -> Option<Arc<PurgeAt>> {
    let (zone, key, span) = level.purge_at.as_ref()?;
    if matches!(matches, LocationMatch::Server) || level.proxy_pass.is_some() || level.api.is_some() {
        refuse_purge_at(*span, reading);
        return None;
    }
    reading.obeyed.extend(level.written.iter().map(|(_, span)| *span));
    Some(Arc::new(PurgeAt {
        zone: *zone,
        key: key.clone(),
        soft: level.proxy_cache_purge_soft.unwrap_or(false),
        right: purge(level, reading),
    }))
}

/// Reports a `proxy_cache_purge zone key` that does not stand in a location of its own.
pub fn refuse_purge_at(span: Span, reading: &mut Reading<'_>) {
    reading
        .error(span, "\"proxy_cache_purge\" with a zone and a key needs a location of its own, as every request there purges")
        .help("write location ~ ^/purge(/.*) { proxy_cache_purge zone key; }");
}

/// The right to purge.
pub(super) fn purge(level: &Level, reading: &mut Reading<'_>) -> Arc<ManageRight> {
    let allow = level.proxy_cache_purge_allow.as_deref();
    warn_of_strangers("proxy_cache_purge_allow", allow, "purge", reading);
    right(allow, level.proxy_cache_purge_token.as_deref())
}

fn right(allow: Option<&[(Network, Span)]>, token: Option<&str>) -> Arc<ManageRight> {
    Arc::new(ManageRight {
        allow: allow.map(|networks| networks.iter().map(|(network, _)| *network).collect()),
        token: token.map(str::to_owned),
    })
}

/// `all` needs no token, so one that is written beside it keeps nobody out.
fn warn_of_strangers(name: &str, allow: Option<&[(Network, Span)]>, verb: &str, reading: &mut Reading<'_>) {
    for (network, span) in allow.into_iter().flatten() {
        if matches!(network, Network::All | Network::Ip(_, 0)) {
            reading
                .diagnostics
                .warning(
                    *span,
                    format!("with this \"{name}\" everybody may {verb} what is cached, without a token"),
                )
                .help("write the addresses that may, and a token for the others");
        }
    }
}
