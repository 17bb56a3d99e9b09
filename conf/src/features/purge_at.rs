//! A location where every request purges: `proxy_cache_purge ZONE KEY`, as in the free purge module.
//!
//! Its row stands with those of purging, in `pass/purge`. Next: `millstream-server`'s `content/purge`.

use std::sync::Arc;

use super::location::LocationMatch;
use super::pass::{FAMILIES, Family};
use super::right::ManageRight;
use super::templates::record;
use super::{Feature, Level, Place, Row};
use crate::declared::cache_zone::CacheZoneId;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::Template;

record! {
    /// `proxy_cache_purge ZONE KEY` of a location of its own, as in the free purge module.
    pub struct PurgeAt {
        pub zone: CacheZoneId,
        /// A key that ends in `*` purges by prefix.
        pub key: Template,
        pub soft: bool,
        pub right: Arc<ManageRight>,
    }
}

/// Its settings stand in the families.
#[derive(Debug, Clone, Default)]
pub struct PurgeAtLevel;

impl Feature for PurgeAtLevel {
    type Settings = Option<Arc<PurgeAt>>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> Option<Arc<PurgeAt>> {
        let level = place.level;
        let (family, zone, key, span) = written(level)?;
        if matches!(place.matches, LocationMatch::Server)
            || level.pass.draft.is_some()
            || level.api.own.is_some()
        {
            refuse(family, span, reading);
            return None;
        }
        reading.obeyed.extend(level.deciding(family).map(|written| written.span));
        let purge = &level.pass.common(family).purge;
        let (soft, right) = (purge.soft.unwrap_or(false), purge.right.right());
        Some(Arc::new(PurgeAt { zone, key: key.clone(), soft, right }))
    }
}

pub const ROWS: &[Row] = &[];

fn written(level: &Level) -> Option<(Family, CacheZoneId, &Template, Span)> {
    FAMILIES.iter().find_map(|family| {
        let (zone, key, span) = level.pass.common(*family).purge.at.as_ref()?;
        Some((*family, *zone, key, *span))
    })
}

pub fn refuse_outside(level: &Level, reading: &mut Reading<'_>) {
    if let Some((family, _, _, span)) = written(level) {
        refuse(family, span, reading);
    }
}

fn refuse(family: Family, span: Span, reading: &mut Reading<'_>) {
    let name = family.directive("cache_purge");
    reading
        .error(
            span,
            format!(
                "\"{name}\" with a zone and a key needs a separate location, because every request there purges"
            ),
        )
        .help(format!("write location ~ ^/purge(/.*) {{ {name} zone key; }}"));
}
