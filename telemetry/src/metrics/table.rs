//! The table of everything that is counted: name, labels and doc in one place; enums, text and docs come from it.
//!
//! Lines of one Prometheus family stand together, and the first carries the family's doc where they differ by label.
//! Next: `metrics`, which counts; `manual`, which prints the table.

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricLine {
    /// The Prometheus family.
    pub name: &'static str,
    /// Labels as they stand between the braces; empty = none.
    pub labels: &'static str,
    /// What it counts, one sentence.
    pub doc: &'static str,
}

macro_rules! table {
    ($(#[$attribute:meta])* $kind:ident { $($variant:ident: $name:literal, $labels:literal, $doc:literal;)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $kind { $(#[doc = $doc] $variant,)* }

        impl $kind {
            /// Every one, in the table's order; the position is the variant's number.
            pub const ALL: &'static [$kind] = &[$($kind::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();
            const LINES: &'static [MetricLine] =
                &[$(MetricLine { name: $name, labels: $labels, doc: $doc },)*];

            /// Its line of the table.
            pub fn line(self) -> &'static MetricLine {
                &Self::LINES[self as usize]
            }
        }
    };
}

table! {
    /// What only ever grows.
    Counter {
        ConnectionsAccepted: "millstream_client_connections_accepted_total", "", "Client connections accepted.";
        ConnectionsRefused: "millstream_client_connections_refused_total", "", "Client connections closed at once because `worker_connections` was reached.";
        AcceptErrors: "millstream_accept_errors_total", "", "Calls to accept that failed, for example for want of file descriptors.";
        TlsHandshakes: "millstream_tls_handshakes_total", "result=\"full\"", "TLS handshakes with clients, by result.";
        TlsHandshakesResumed: "millstream_tls_handshakes_total", "result=\"resumed\"", "TLS handshakes that resumed a session.";
        TlsHandshakesFailed: "millstream_tls_handshakes_total", "result=\"failed\"", "TLS handshakes that failed.";
        Requests: "millstream_requests_total", "", "Client requests whose head was read.";
        RequestsMalformed: "millstream_requests_malformed_total", "", "Client requests refused as malformed (400, 414, 431, 501 or 505 before any location).";
        ClientTimeouts: "millstream_client_timeouts_total", "", "Clients that were too slow with a head, a body or reading an answer.";
        ClientAborts: "millstream_client_aborts_total", "", "Client connections that ended before their answer was sent.";
        Responses1xx: "millstream_responses_total", "class=\"1xx\"", "Answers sent to clients, by class of status.";
        Responses2xx: "millstream_responses_total", "class=\"2xx\"", "Answers with a status of 200 to 299.";
        Responses3xx: "millstream_responses_total", "class=\"3xx\"", "Answers with a status of 300 to 399.";
        Responses4xx: "millstream_responses_total", "class=\"4xx\"", "Answers with a status of 400 to 499.";
        Responses5xx: "millstream_responses_total", "class=\"5xx\"", "Answers with a status of 500 and above.";
        ClientBytesReceived: "millstream_client_bytes_received_total", "", "Bytes of requests received from clients, without TLS.";
        ClientBytesSent: "millstream_client_bytes_sent_total", "", "Bytes of answers sent to clients, without TLS.";
        Tunnels: "millstream_tunnels_total", "", "Connections upgraded to a tunnel (WebSocket).";
        CacheMiss: "millstream_cache_requests_total", "status=\"MISS\"", "Requests to locations with a cache, by `$upstream_cache_status`.";
        CacheBypass: "millstream_cache_requests_total", "status=\"BYPASS\"", "Requests that `proxy_cache_bypass` sent past the cache, or that may not use it.";
        CacheExpired: "millstream_cache_requests_total", "status=\"EXPIRED\"", "Requests that found a stale entry and fetched anew.";
        CacheStale: "millstream_cache_requests_total", "status=\"STALE\"", "Requests answered stale because the upstream failed.";
        CacheUpdating: "millstream_cache_requests_total", "status=\"UPDATING\"", "Requests answered stale while somebody else refreshes.";
        CacheRevalidated: "millstream_cache_requests_total", "status=\"REVALIDATED\"", "Requests whose stale entry the upstream confirmed with a 304.";
        CacheHit: "millstream_cache_requests_total", "status=\"HIT\"", "Requests answered fresh from the cache.";
        CacheKeysTooLong: "millstream_cache_keys_too_long_total", "", "Requests past the cache because their key is longer than 8 KiB.";
        CacheStored: "millstream_cache_stored_total", "", "Answers stored in a cache.";
        CacheFillsAborted: "millstream_cache_fills_aborted_total", "", "Answers that broke off while being stored, and were not.";
        CacheEvicted: "millstream_cache_evicted_total", "", "Entries removed for room or for `inactive`.";
        CacheInvalidated: "millstream_cache_invalidated_total", "", "Entries removed by unsafe requests or purges.";
        PurgesKey: "millstream_cache_purges_total", "by=\"key\"", "Purges carried out, by what they named.";
        PurgesPrefix: "millstream_cache_purges_total", "by=\"prefix\"", "Purges of all keys that begin alike.";
        PurgesTag: "millstream_cache_purges_total", "by=\"tag\"", "Purges of a tag.";
        PurgesAll: "millstream_cache_purges_total", "by=\"all\"", "Purges of a whole zone.";
        PurgesFailed: "millstream_cache_purges_failed_total", "", "Purges that could not be kept on disk, and so would not outlive a restart.";
        ManageRefused: "millstream_manage_refused_total", "", "Purges and requests to the API from strangers, refused.";
        CacheBackgroundUpdates: "millstream_cache_background_updates_total", "", "Refreshes that no request waited for.";
        CacheLockWaits: "millstream_cache_lock_waits_total", "", "Requests that waited for another's fill of the same key.";
        CacheLockTimeouts: "millstream_cache_lock_timeouts_total", "", "Waits that reached `proxy_cache_lock_timeout`.";
        CacheDiskReads: "millstream_cache_disk_reads_total", "", "Entries read from disk.";
        CacheDiskWrites: "millstream_cache_disk_writes_total", "", "Entries written to disk.";
        CacheDiskErrors: "millstream_cache_disk_errors_total", "", "Reads and writes of cache files that failed; the answer was served all the same.";
        CacheCorrupt: "millstream_cache_corrupt_files_total", "", "Cache files that were torn or damaged, and were deleted.";
        GzipResponses: "millstream_gzip_responses_total", "source=\"compressed\"", "Answers sent as gzip by us, by where the bytes came from.";
        GzipStored: "millstream_gzip_responses_total", "source=\"stored\"", "Answers sent from a variant that was compressed before.";
        GzipBytesIn: "millstream_gzip_bytes_in_total", "", "Bytes given to compression.";
        GzipBytesOut: "millstream_gzip_bytes_out_total", "", "Bytes that compression made of them.";
        UpstreamRequests: "millstream_upstream_requests_total", "", "Requests sent to upstream servers, retries included.";
        UpstreamConnections: "millstream_upstream_connections_total", "kind=\"new\"", "Upstream connections taken for a request, by whether they were new.";
        UpstreamConnectionsReused: "millstream_upstream_connections_total", "kind=\"reused\"", "Requests sent on a kept-alive upstream connection.";
        UpstreamErrors: "millstream_upstream_failures_total", "reason=\"error\"", "Failed exchanges with upstream servers, by reason.";
        UpstreamTimeouts: "millstream_upstream_failures_total", "reason=\"timeout\"", "Exchanges that ran into one of the proxy timeouts.";
        UpstreamInvalidHeaders: "millstream_upstream_failures_total", "reason=\"invalid_header\"", "Answers whose head or framing was not HTTP.";
        UpstreamRetries: "millstream_upstream_retries_total", "", "Requests passed to the next upstream server.";
        UpstreamPeersFailed: "millstream_upstream_peers_failed_total", "", "Times that a server reached `max_fails` and was left alone.";
        UpstreamNoPeers: "millstream_upstream_no_peers_total", "", "Requests that found no upstream server to go to.";
        UpstreamBytesReceived: "millstream_upstream_bytes_received_total", "", "Bytes received from upstream servers.";
        UpstreamBytesSent: "millstream_upstream_bytes_sent_total", "", "Bytes sent to upstream servers.";
        Panics: "millstream_panics_total", "", "Connections ended by a panic, which is always a fault of ours.";
        Reloads: "millstream_reloads_total", "result=\"applied\"", "Reloads of the configuration, by result.";
        ReloadsFailed: "millstream_reloads_total", "result=\"failed\"", "Reloads refused, the old configuration kept.";
        LogBytesWritten: "millstream_log_bytes_written_total", "", "Bytes of log lines that reached their files.";
        LogBytesDropped: "millstream_log_bytes_dropped_total", "", "Bytes of log lines lost to a full disk or a stuck pipe.";
        LogErrors: "millstream_log_errors_total", "", "Writes and reopens of log files that failed.";
    }
}

table! {
    /// What rises and falls.
    Gauge {
        ConnectionsActive: "millstream_client_connections", "state=\"active\"", "Open client connections, by state.";
        ConnectionsIdle: "millstream_client_connections", "state=\"idle\"", "Client connections that wait for a next request.";
        RequestsInFlight: "millstream_requests_in_flight", "", "Client requests being answered.";
        TunnelsOpen: "millstream_tunnels_open", "", "Upgraded connections that are open.";
        UpstreamConnectionsActive: "millstream_upstream_open_connections", "state=\"active\"", "Open upstream connections, by state.";
        UpstreamConnectionsIdle: "millstream_upstream_open_connections", "state=\"idle\"", "Upstream connections kept alive for a next request.";
        CacheMemoryBytes: "millstream_cache_bytes", "tier=\"memory\"", "Bytes of cached answers, by tier.";
        CacheDiskBytes: "millstream_cache_bytes", "tier=\"disk\"", "Bytes of cache files.";
        CacheMemoryEntries: "millstream_cache_entries", "tier=\"memory\"", "Cached answers, by tier.";
        CacheDiskEntries: "millstream_cache_entries", "tier=\"disk\"", "Cache files.";
    }
}

table! {
    /// What takes time; recorded in microseconds, shown in seconds.
    Timing {
        Request: "millstream_request_duration_seconds", "", "Time from the first byte of a request's head to the last byte of its answer.";
        UpstreamConnect: "millstream_upstream_connect_duration_seconds", "", "Time to open an upstream connection.";
        UpstreamHeader: "millstream_upstream_header_duration_seconds", "", "Time from sending a request upstream to having the head of the answer.";
        CacheLockWait: "millstream_cache_lock_wait_seconds", "", "Time that a request waited for another's fill.";
    }
}

/// `$upstream_cache_status`: what the cache did for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum CacheStatus {
    Miss,
    Bypass,
    Expired,
    Stale,
    Updating,
    Revalidated,
    Hit,
}

impl CacheStatus {
    /// Every one, in the order of their numbers.
    pub const ALL: [CacheStatus; 7] = [
        CacheStatus::Miss,
        CacheStatus::Bypass,
        CacheStatus::Expired,
        CacheStatus::Stale,
        CacheStatus::Updating,
        CacheStatus::Revalidated,
        CacheStatus::Hit,
    ];

    /// nginx's word.
    pub fn name(self) -> &'static str {
        match self {
            CacheStatus::Miss => "MISS",
            CacheStatus::Bypass => "BYPASS",
            CacheStatus::Expired => "EXPIRED",
            CacheStatus::Stale => "STALE",
            CacheStatus::Updating => "UPDATING",
            CacheStatus::Revalidated => "REVALIDATED",
            CacheStatus::Hit => "HIT",
        }
    }

    /// Its position in [`CacheStatus::ALL`], 0–6.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The counter of requests with this status.
    pub fn counter(self) -> Counter {
        match self {
            CacheStatus::Miss => Counter::CacheMiss,
            CacheStatus::Bypass => Counter::CacheBypass,
            CacheStatus::Expired => Counter::CacheExpired,
            CacheStatus::Stale => Counter::CacheStale,
            CacheStatus::Updating => Counter::CacheUpdating,
            CacheStatus::Revalidated => Counter::CacheRevalidated,
            CacheStatus::Hit => Counter::CacheHit,
        }
    }
}

impl Counter {
    /// The counter of answers of a status's class.
    pub fn of_status(status: u16) -> Counter {
        match status {
            ..200 => Counter::Responses1xx,
            200..300 => Counter::Responses2xx,
            300..400 => Counter::Responses3xx,
            400..500 => Counter::Responses4xx,
            500.. => Counter::Responses5xx,
        }
    }
}
