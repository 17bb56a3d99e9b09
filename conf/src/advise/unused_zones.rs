//! A zone that nothing is cached in: `proxy_cache_path … keys_zone=api:10m;` without `proxy_cache api;`.

use crate::reading::Reading;

/// A zone that no location uses is most often one whose `proxy_cache` was forgotten.
pub(super) fn advise(reading: &mut Reading<'_>) {
    let unused: Vec<_> = (reading.declared.cache_zones.iter())
        .zip(&reading.used_zones)
        .filter(|(_, used)| !**used)
        .map(|(zone, _)| (zone.span, zone.name.clone()))
        .collect();
    for (span, name) in unused {
        reading
            .diagnostics
            .warning(span, format!("no \"proxy_cache\" uses the zone \"{name}\", so nothing is cached in it"))
            .help(format!(
                "remove it, or write proxy_cache {name}; in the location whose responses are the same for every client"
            ));
    }
}
