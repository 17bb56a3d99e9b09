//! A zone that nothing is cached in: `proxy_cache_path … keys_zone=api:10m;` without `proxy_cache api;`. A cluster in which nothing takes
//! part.

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

/// A cluster does nothing by itself, and the zones are easily forgotten.
pub(super) fn advise_clusters(reading: &mut Reading<'_>) {
    let declared = &reading.declared;
    let limits = declared.request_zones.iter().map(|zone| &zone.zone);
    let limits = limits.chain(declared.connection_zones.iter().map(|zone| &zone.zone));
    let caches = declared.cache_zones.iter().filter_map(|zone| Some(&zone.cluster.as_ref()?.0));
    let used: Vec<&String> =
        limits.filter_map(|zone| Some(&zone.sync.as_ref()?.cluster)).chain(caches).collect();
    let unused = declared.clusters.iter().filter(|cluster| !used.contains(&&cluster.name));
    let unused: Vec<_> = unused.map(|cluster| (cluster.span, cluster.name.clone())).collect();
    for (span, name) in unused {
        reading.diagnostics.warning(span, format!("no zone uses the cluster \"{name}\"")).help(format!(
            "add cluster={name} to proxy_cache_path to share purges, or sync to limit_req_zone or limit_conn_zone to share limits"
        ));
    }
}
