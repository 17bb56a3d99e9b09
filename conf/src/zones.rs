//! Zones that a request chooses: `proxy_cache $zone;`.
//!
//! Nothing about a cache is looked up by name while a request is answered but this one name. So a location that leaves the choice to
//! the request has a face for each zone, with the zone fixed as if it had been written, and has no cache itself: that is what the
//! request gets which chooses none. Before: `features/pass/cache`; next: `millstream-server`'s `caching/zone`, which chooses.

use std::sync::Arc;

use crate::declared::cache_zone::{CacheZone, CacheZoneId};
use crate::features::{Handler, Settings};

/// Takes the cache out of settings whose zone a request chooses; returns these settings for each zone, with
/// its name.
pub fn apart(settings: &mut Settings, zones: &[CacheZone]) -> Vec<(Box<str>, Settings)> {
    let Handler::Pass(pass) = &mut settings.content else { return Vec::new() };
    if pass.chosen_zone.is_none() {
        return Vec::new();
    }
    let pass = Arc::make_mut(pass);
    let (cache, chosen) = (pass.cache.take(), pass.chosen_zone.take());
    let fixed = |(index, zone): (usize, &CacheZone)| {
        let mut fixed = settings.clone();
        // The location itself checks the health of its servers, once.
        fixed.health_check = None;
        if let (Handler::Pass(pass), Some(cache)) = (&mut fixed.content, cache.clone()) {
            let zone = CacheZoneId(index as u32);
            Arc::make_mut(pass).cache = Some(crate::model::ProxyCache { zone, ..cache });
        }
        (zone.name.as_str().into(), fixed)
    };
    let in_zones = zones.iter().enumerate().map(fixed).collect();
    if let Handler::Pass(pass) = &mut settings.content {
        Arc::make_mut(pass).chosen_zone = chosen;
    }
    in_zones
}
