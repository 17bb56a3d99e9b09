//! Strangers may manage the cache: `proxy_cache_purge_allow all;`, or `api_allow all;` with `write=on`.

use crate::features::Level;
use crate::features::pass::FAMILIES;
use crate::features::right::{Allowed, RightLevel, Write};
use crate::model::{Handler, Settings};
use crate::network::Network;
use crate::reading::Reading;

pub(super) fn advise(level: &Level, settings: &Settings, reading: &mut Reading<'_>) {
    for family in FAMILIES {
        let purge = &level.pass.common(*family).purge;
        let caches = settings.cache().is_some()
            && level.pass.draft.as_ref().is_some_and(|draft| draft.family == *family);
        if caches || matches!(settings.content, Handler::Purge(_)) && purge.at.is_some() {
            warn(&family.directive("cache_purge_allow"), &purge.right, "purge", reading);
        }
    }
    if matches!(&settings.content, Handler::Api(api) if api.write == Write::On) {
        warn("api_allow", &level.api.right, "change", reading);
    }
}

/// `all` needs no token, so a token written beside it keeps no one out.
fn warn(name: &str, right: &RightLevel, verb: &str, reading: &mut Reading<'_>) {
    for (allowed, span) in right.allow.iter().flatten() {
        if matches!(allowed, Allowed::Of(Network::All | Network::Ip(_, 0))) {
            reading
                .diagnostics
                .warning(
                    *span,
                    format!("with this \"{name}\", every client may {verb} what is cached, without a token"),
                )
                .help("list the addresses that may, and use a token for other clients");
        }
    }
}
