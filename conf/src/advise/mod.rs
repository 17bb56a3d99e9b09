//! Warnings about what is allowed and most often not meant, one file per rule.
//!
//! A file from nginx keeps its meaning, and nginx shares what an upstream says nothing about, whoever it was made for. So
//! nothing is changed here, only told: at every start, and by `-t`. Next: `locations` and `check`, which ask.

mod users;
mod certificates;
mod members;
mod unlisted;
mod cookies;
mod bodies;
mod hosts;
mod passwords;
mod strangers;
mod api_beside_pass;
mod other_family;
mod grpc_over_http1;
mod unused_zones;
mod unobeyed;

use crate::features::Level;
use crate::features::pass::http::SetHeader;
use crate::features::pass::{CommonLevel, Family};
use crate::model::{Http, ProxyCache, Settings};
use crate::reading::Reading;
use crate::source::Span;

struct Cached<'a> {
    family: Family,
    written: &'a CommonLevel,
    sent: &'a [SetHeader],
    cache: &'a ProxyCache,
    span: Span,
}

pub use other_family::advise as written;

pub fn location(level: &Level, settings: &Settings, reading: &mut Reading<'_>) {
    if let Some(cached) = cached(level, settings) {
        users::advise(&cached, reading);
        certificates::advise(&cached, reading);
        cookies::advise(&cached, reading);
        bodies::advise(&cached, reading);
        hosts::advise(&cached, reading);
        passwords::advise(&cached, settings, reading);
        unlisted::advise(&cached, reading);
    }
    strangers::advise(level, settings, reading);
    api_beside_pass::advise(level, reading);
}

fn cached<'a>(level: &'a Level, settings: &'a Settings) -> Option<Cached<'a>> {
    let cache = settings.cache()?;
    let family = level.pass.draft.as_ref()?.family;
    let written = level.pass.common(family);
    let span = written.cache.zone_at()?;
    Some(Cached { family, written, sent: level.pass.sent(family).fields, cache, span })
}

/// Call it only for an http block without errors: what is missing may otherwise be what is wrong.
pub fn whole(http: &Http, reading: &mut Reading<'_>) {
    unused_zones::advise(reading);
    unused_zones::advise_clusters(reading);
    unobeyed::advise(&http.locations, reading);
    grpc_over_http1::advise(http, reading);
    members::advise(http, reading);
}
