//! Tables of what is shown of each of many: servers' zones, locations, upstream servers, zones of caches and limits.

use super::{FamilyKind, FigureWalk, Labels};
use crate::metrics::{
    CacheSnapshot, CacheStatus, CacheTier, CertificateEnd, HttpSnapshot, LimitOutcome, LimitSnapshot,
    LocationSnapshot, PeerTiming, ProcessSnapshot, Snapshot, UpstreamPeer,
};

struct Family<T> {
    name: &'static str,
    kind: FamilyKind,
    doc: &'static str,
    samples: fn(&mut FigureWalk<'_>, &Labels<'_>, &T),
}

macro_rules! families {
    ($table:ident of $of:ty { $($name:literal $kind:ident $doc:literal $samples:expr;)* }) => {
        const $table: &[Family<$of>] =
            &[$(Family { name: $name, kind: FamilyKind::$kind, doc: $doc, samples: $samples },)*];
    };
}

families! { SERVERS of HttpSnapshot {
    "millstream_zone_responses_total" Counter "Completed requests, by the zone of their server and by status class; `none` means that there was no response."
        |s, labels, zone| responses(s, labels, zone);
    "millstream_zone_processing" Gauge "Requests in progress, by zone, except those that complete at once, such as hits in memory."
        |s, labels, zone| s.value(labels, zone.processing);
    "millstream_zone_bytes_received_total" Counter "Bytes received from clients, by zone."
        |s, labels, zone| s.value(labels, zone.received);
    "millstream_zone_bytes_sent_total" Counter "Bytes sent to clients, by zone."
        |s, labels, zone| s.value(labels, zone.sent);
    "millstream_zone_cache_requests_total" Counter "Requests to locations with a cache, by zone and `$upstream_cache_status`."
        |s, labels, zone| by_status(s, labels, &zone.cache);
    "millstream_zone_request_duration_seconds" Histogram "Time from the first byte of a request to the last byte of its response, by zone."
        |s, labels, zone| s.histogram(labels, &zone.latency);
} }

families! { LOCATIONS of LocationSnapshot {
    "millstream_location_responses_total" Counter "Completed requests, by the zone of their location and by status class; `none` means that there was no response."
        |s, labels, location| responses(s, labels, &location.http);
    "millstream_location_processing" Gauge "Requests in progress, by location, except those that complete at once, such as hits in memory."
        |s, labels, location| s.value(labels, location.http.processing);
    "millstream_location_bytes_received_total" Counter "Bytes received from clients, by location."
        |s, labels, location| s.value(labels, location.http.received);
    "millstream_location_bytes_sent_total" Counter "Bytes sent to clients, by location."
        |s, labels, location| s.value(labels, location.http.sent);
    "millstream_location_cache_requests_total" Counter "Requests to locations with a cache, by location and `$upstream_cache_status`."
        |s, labels, location| by_status(s, labels, &location.http.cache);
    "millstream_location_request_duration_seconds" Histogram "Time from the first byte of a request to the last byte of its response, by location."
        |s, labels, location| s.histogram(labels, &location.http.latency);
    "millstream_origin_requests_total" Counter "Requests to upstream servers on behalf of clients, by location, including retries."
        |s, labels, location| s.value(labels, location.origin.requests);
    "millstream_origin_duration_seconds_total" Counter "Duration of requests to upstream servers on behalf of clients, by location."
        |s, labels, location| s.time(labels, location.origin.time);
    "millstream_origin_saved_requests_total" Counter "Requests served from the cache without an upstream server, by location."
        |s, labels, location| s.value(labels, location.origin.saved_requests);
    "millstream_origin_saved_duration_seconds_total" Counter "Time that the upstream servers would have taken for the requests served from the cache, by location, estimated from their mean time."
        |s, labels, location| s.time(labels, location.origin.saved_time);
} }

families! { PEERS of UpstreamPeer {
    "millstream_upstream_peer_requests_total" Counter "Requests for which an upstream server was selected."
        |s, labels, peer| s.value(labels, peer.counts.requests);
    "millstream_upstream_peer_responses_total" Counter "Responses of an upstream server, by status class."
        |s, labels, peer| by_class(s, labels, &peer.counts.responses);
    "millstream_upstream_peer_active" Gauge "Requests in progress on an upstream server."
        |s, labels, peer| s.value(labels, peer.counts.active);
    "millstream_upstream_peer_failures_total" Counter "Failed exchanges with an upstream server."
        |s, labels, peer| s.value(labels, peer.counts.failures);
    "millstream_upstream_peer_outages_total" Counter "Times that an upstream server reached `max_fails` and became unavailable."
        |s, labels, peer| s.value(labels, peer.counts.outages);
    "millstream_upstream_peer_up" Gauge "1 if an upstream server is available; 0 if it is `down`, unavailable after failures, unhealthy, or ejected."
        |s, labels, peer| s.value(labels, u64::from(peer.up));
    "millstream_upstream_peer_health_checks_total" Counter "Health checks of an upstream server (`health_check`)."
        |s, labels, peer| s.value(labels, peer.checks);
    "millstream_upstream_peer_health_checks_failed_total" Counter "Failed health checks."
        |s, labels, peer| s.value(labels, peer.failed_checks);
    "millstream_upstream_peer_ejections_total" Counter "Times that an upstream server was ejected (`outlier_ejection`)."
        |s, labels, peer| s.value(labels, peer.ejections);
    "millstream_upstream_peer_bytes_received_total" Counter "Bytes received from an upstream server."
        |s, labels, peer| s.value(labels, peer.counts.received);
    "millstream_upstream_peer_bytes_sent_total" Counter "Bytes sent to an upstream server."
        |s, labels, peer| s.value(labels, peer.counts.sent);
    "millstream_upstream_peer_connect_duration_seconds" Histogram "Time to connect to an upstream server, including the TLS handshake."
        |s, labels, peer| s.histogram(labels, peer.counts.timing(PeerTiming::Connect));
    "millstream_upstream_peer_header_duration_seconds" Histogram "Time from sending a request to an upstream server to its response header."
        |s, labels, peer| s.histogram(labels, peer.counts.timing(PeerTiming::Header));
    "millstream_upstream_peer_response_duration_seconds" Histogram "Time from sending a request to an upstream server to the end of its response."
        |s, labels, peer| s.histogram(labels, peer.counts.timing(PeerTiming::Response));
} }

families! { CACHES of CacheSnapshot {
    "millstream_cache_responses_total" Counter "Responses to requests handled by a cache zone, by `$upstream_cache_status`."
        |s, labels, cache| by_status(s, labels, &cache.responses);
    "millstream_cache_bytes_total" Counter "Bytes of responses to requests handled by a cache zone, as sent to clients."
        |s, labels, cache| by_status(s, labels, &cache.bytes);
    "millstream_cache_waits_total" Counter "Requests that waited for the response to another request (`proxy_cache_lock`)."
        |s, labels, cache| s.value(labels, cache.waits);
    "millstream_cache_wait_seconds_total" Counter "Time that requests waited for the response to another request."
        |s, labels, cache| s.time(labels, cache.waited);
    "millstream_cache_stale_on_error_total" Counter "Stale responses sent because the upstream failed, and background refreshes that failed."
        |s, labels, cache| s.value(labels, cache.stale_on_error);
} }

families! { TIERS of CacheTier {
    "millstream_cache_entries" Gauge "Entries in a tier of a cache zone; in memory, also variants and remembered misses."
        |s, labels, tier| s.value(labels, tier.entries);
    "millstream_cache_size_bytes" Gauge "Bytes in a tier of a cache zone."
        |s, labels, tier| s.value(labels, tier.bytes);
    "millstream_cache_max_size_bytes" Gauge "The limit on the bytes in a tier of a cache zone, if there is one."
        |s, labels, tier| tier.max_bytes.into_iter().for_each(|most| s.value(labels, most));
    "millstream_cache_evictions_total" Counter "Entries removed from a tier of a cache zone to make room."
        |s, labels, tier| s.value(labels, tier.evictions);
} }

families! { CERTIFICATES of CertificateEnd {
    "millstream_certificate_expiry_timestamp_seconds" Gauge "When a certificate of a server expires, in seconds since 1970."
        |s, labels, end| s.value(labels, end.not_after);
} }

families! { PROCESS of ProcessSnapshot {
    "process_cpu_seconds_total" Counter "CPU time of the process, user and system."
        |s, labels, process| s.time(labels, process.cpu);
    "process_resident_memory_bytes" Gauge "Resident memory of the process."
        |s, labels, process| s.value(labels, process.resident);
    "process_virtual_memory_bytes" Gauge "Virtual memory of the process."
        |s, labels, process| s.value(labels, process.virtual_memory);
    "process_open_fds" Gauge "Open file descriptors of the process."
        |s, labels, process| s.value(labels, process.open_files);
    "process_max_fds" Gauge "The limit on open file descriptors."
        |s, labels, process| s.value(labels, process.most_files);
    "process_start_time_seconds" Gauge "When the process started, in seconds since 1970."
        |s, labels, process| s.time(labels, process.started);
    "millstream_build_info" Gauge "Always 1; the label `version` has the version."
        |s, labels, process| s.value(&labels.and("version", process.version), 1u64);
} }

families! { REQUEST_LIMITS of LimitSnapshot {
    "millstream_limit_req_requests_total" Counter "Requests checked by a zone of `limit_req`, by result."
        |s, labels, limit| by_outcome(s, labels, limit, &LimitOutcome::ALL);
} }

families! { CONNECTION_LIMITS of LimitSnapshot {
    "millstream_limit_conn_requests_total" Counter "Requests checked by a zone of `limit_conn`, by result."
        |s, labels, limit| by_outcome(s, labels, limit, &LimitOutcome::OF_CONNECTIONS);
} }

pub(super) fn all(walk: &mut FigureWalk<'_>, snapshot: &Snapshot) {
    each(walk, SERVERS, || snapshot.servers.iter().map(|(name, zone)| (Labels::one("zone", name), zone)));
    each(walk, LOCATIONS, || {
        snapshot.locations.iter().map(|location| (Labels::one("location", &location.name), location))
    });
    each(walk, CACHES, || snapshot.caches.iter().map(|(name, cache)| (Labels::one("cache", name), cache)));
    each(walk, TIERS, || {
        snapshot.tiers.iter().map(|tier| (Labels::one("cache", &tier.zone).and("tier", tier.tier), tier))
    });
    each(walk, REQUEST_LIMITS, || {
        snapshot.request_limits.iter().map(|(name, limit)| (Labels::one("zone", name), limit))
    });
    each(walk, CONNECTION_LIMITS, || {
        snapshot.connection_limits.iter().map(|(name, limit)| (Labels::one("zone", name), limit))
    });
    let peers = snapshot.upstreams.iter().flat_map(|upstream| {
        upstream
            .peers
            .iter()
            .map(|peer| (Labels::one("upstream", &upstream.name).and("server", &peer.name), peer))
    });
    each(walk, PEERS, || peers.clone());
    each(walk, CERTIFICATES, || {
        snapshot
            .certificates
            .iter()
            .map(|end| (Labels::one("server", &end.server).and("certificate", &end.certificate), end))
    });
    each(walk, PROCESS, || snapshot.process.iter().map(|process| (Labels::default(), process)));
}

fn each<'t, T: 't, I: Iterator<Item = (Labels<'t>, &'t T)>>(
    walk: &mut FigureWalk<'_>,
    table: &[Family<T>],
    of: impl Fn() -> I,
) {
    for family in table {
        for (labels, one) in of() {
            walk.family(family.name, family.doc, family.kind);
            (family.samples)(walk, &labels, one);
        }
    }
}

fn responses(walk: &mut FigureWalk<'_>, labels: &Labels<'_>, zone: &HttpSnapshot) {
    by_class(walk, labels, &zone.responses);
}

/// By status class; after the five classes, requests without a response.
fn by_class(walk: &mut FigureWalk<'_>, labels: &Labels<'_>, responses: &[u64]) {
    for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx", "none"].iter().zip(responses) {
        walk.value(&labels.and("class", class), *count);
    }
}

fn by_status(walk: &mut FigureWalk<'_>, labels: &Labels<'_>, counts: &[u64]) {
    for (status, count) in CacheStatus::ALL.iter().zip(counts) {
        walk.value(&labels.and("status", status.name()), *count);
    }
}

fn by_outcome(
    walk: &mut FigureWalk<'_>,
    labels: &Labels<'_>,
    limit: &LimitSnapshot,
    outcomes: &[LimitOutcome],
) {
    for outcome in outcomes {
        walk.value(&labels.and("outcome", outcome.name()), limit.count(*outcome));
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) doc: &'static str,
}

/// By table: its title, its labels and its families.
pub(crate) fn described() -> [(&'static str, &'static str, Vec<Described>); 9] {
    fn of<T>(table: &'static [Family<T>]) -> Vec<Described> {
        table
            .iter()
            .map(|&Family { name, kind, doc, .. }| Described { name, kind: kind.name(), doc })
            .collect()
    }
    [
        (
            "Zones of servers",
            "One set for each server, with the label `zone`: its `status_zone`, or its first name.",
            of(SERVERS),
        ),
        (
            "Locations",
            "One set for each location, with the label `location`: its `status_zone`, or its server's name and its path.",
            of(LOCATIONS),
        ),
        ("Cache zones", "One set for each zone of a cache, with the label `cache`.", of(CACHES)),
        (
            "Tiers of cache zones",
            "One set for each tier, with the labels `cache` and `tier`: `memory`, `disk`.",
            of(TIERS),
        ),
        (
            "Zones of limit_req",
            "One set for each zone, with the labels `zone` and `outcome`: `passed`, `delayed`, `rejected`, `delayed_dry_run`, `rejected_dry_run`.",
            of(REQUEST_LIMITS),
        ),
        (
            "Zones of limit_conn",
            "One set for each zone, with the labels `zone` and `outcome`: `passed`, `rejected`, `rejected_dry_run`.",
            of(CONNECTION_LIMITS),
        ),
        (
            "Upstream servers",
            "One set for each address of a server in an upstream group, with the labels `upstream` and `server`.",
            of(PEERS),
        ),
        (
            "Certificates",
            "One for each certificate of a server, with the labels `server`, its first name, and `certificate`, the file or the issuer.",
            of(CERTIFICATES),
        ),
        ("The process", "Under the names that Prometheus's own libraries use.", of(PROCESS)),
    ]
}
