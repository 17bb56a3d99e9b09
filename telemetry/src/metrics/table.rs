//! The table of everything that is counted: name, labels and doc in one place; enums, text and docs come from it.
//!
//! A line is here only if some code counts it, which `cargo xtask tidy` checks.
//! Lines of one Prometheus family stand together, and the first carries the family's doc where they differ by label.
//! Next: `metrics`, which counts; `manual`, which prints the table.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricLine {
    pub name: &'static str,
    /// Labels as they stand between the braces; empty = none.
    pub labels: &'static str,
    pub doc: &'static str,
}

macro_rules! table {
    ($(#[$attribute:meta])* $kind:ident { $($variant:ident: $name:literal, $labels:literal, $doc:literal;)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $kind { $(#[doc = $doc] $variant,)* }

        impl $kind {
            /// In the table's order; the index is the variant's number.
            pub const ALL: &'static [$kind] = &[$($kind::$variant,)*];
            pub const COUNT: usize = Self::ALL.len();
            const LINES: &'static [MetricLine] =
                &[$(MetricLine { name: $name, labels: $labels, doc: $doc },)*];

            pub fn line(self) -> &'static MetricLine {
                &Self::LINES[self as usize]
            }
        }
    };
}

table! {
    Counter {
        ConnectionsAccepted: "millstream_client_connections_accepted_total", "", "Client connections accepted.";
        ConnectionsWaited: "millstream_client_connections_waited_total", "", "Client connections that waited because all `worker_connections` were in use.";
        ConnectionsShed: "millstream_client_connections_shed_total", "", "Client connections asked to close to make room for others.";
        TlsHandshakes: "millstream_client_tls_handshakes_total", "session=\"new\"", "Completed TLS handshakes of clients, by whether a session was resumed.";
        TlsHandshakesReused: "millstream_client_tls_handshakes_total", "session=\"reused\"", "TLS handshakes of clients that resumed a session.";
        TlsHandshakesFailed: "millstream_client_tls_handshakes_failed_total", "", "TLS handshakes of clients that failed: by an error, a timeout or a disconnect.";
        Http2Connections: "millstream_client_http2_connections_total", "", "Client connections with HTTP/2.";
        Http2StreamsReset: "millstream_client_http2_streams_total", "end=\"reset\"", "HTTP/2 requests that their clients cancelled, or that were refused because there were too many.";
        Http2StreamsRefused: "millstream_client_http2_streams_total", "end=\"refused\"", "HTTP/2 requests refused because there were too many.";
        Http2ConnectionErrors: "millstream_client_http2_connection_errors_total", "reason=\"broken\"", "HTTP/2 connections closed because their clients violated the protocol, or caused too much useless work.";
        Http2Floods: "millstream_client_http2_connection_errors_total", "reason=\"flood\"", "HTTP/2 connections closed because of too much useless work.";
        Requests: "millstream_requests_total", "", "Client requests with a complete header.";
        CompressionsRefused: "millstream_compressions_refused_total", "", "Responses sent uncompressed because the encoders had reached their memory limit.";
        CacheKeysTooLong: "millstream_cache_keys_too_long_total", "", "Requests that bypassed the cache because their key is longer than 8 KiB.";
        PurgesKey: "millstream_cache_purges_total", "by=\"key\"", "Purges, by kind.";
        PurgesPrefix: "millstream_cache_purges_total", "by=\"prefix\"", "Purges of a prefix.";
        PurgesTag: "millstream_cache_purges_total", "by=\"tag\"", "Purges of a tag.";
        PurgesAll: "millstream_cache_purges_total", "by=\"all\"", "Purges of a whole zone.";
        PurgesFailed: "millstream_cache_purges_failed_total", "", "Purges that could not be written to disk and would not survive a restart.";
        CacheVerifiedSame: "millstream_cache_verified_total", "result=\"same\"", "Hits compared with what the upstream responds (`proxy_cache_verify`), by result; `same`: no difference.";
        CacheVerifiedNoise: "millstream_cache_verified_total", "result=\"noise\"", "Checked hits that differ only in what differs between all responses.";
        CacheVerifiedStale: "millstream_cache_verified_total", "result=\"stale\"", "Checked hits for which the upstream has a newer response.";
        CacheVerifiedLeak: "millstream_cache_verified_total", "result=\"leak\"", "Checked hits whose response depends on something that neither key nor Vary contains.";
        CacheVerifiedFailed: "millstream_cache_verified_total", "result=\"failed\"", "Checks for which the upstream failed or refused too many requests.";
        CacheVerifiedUnknown: "millstream_cache_verified_total", "result=\"unknown\"", "Checks of responses that could not be compared, such as those with an unknown Content-Encoding.";
        ManageRefused: "millstream_manage_refused_total", "", "Purges and API requests refused because the client is not allowed.";
        UpstreamRequests: "millstream_upstream_requests_total", "", "Requests sent to upstream servers, including retries.";
        UpstreamConnections: "millstream_upstream_connections_total", "kind=\"new\"", "Upstream connections used for a request, by whether they were new.";
        UpstreamConnectionsReused: "millstream_upstream_connections_total", "kind=\"reused\"", "Requests sent on a kept-alive upstream connection.";
        UpstreamConnectionsRefused: "millstream_upstream_connections_refused_total", "", "Requests that got 503 because `worker_connections` left no place for an upstream connection.";
        UpstreamErrors: "millstream_upstream_failures_total", "reason=\"error\"", "Failed exchanges with upstream servers, by reason.";
        UpstreamTimeouts: "millstream_upstream_failures_total", "reason=\"timeout\"", "Exchanges that exceeded one of the proxy timeouts.";
        UpstreamInvalidHeaders: "millstream_upstream_failures_total", "reason=\"invalid_header\"", "Responses with an invalid header or framing.";
        UpstreamRetries: "millstream_upstream_retries_total", "", "Requests passed to the next upstream server.";
        UpstreamPeersFailed: "millstream_upstream_peers_failed_total", "", "Times that a server reached `max_fails` and became unavailable.";
        UpstreamNoPeers: "millstream_upstream_no_peers_total", "", "Requests that found no available upstream server.";
        UpstreamBytesReceived: "millstream_upstream_bytes_received_total", "", "Bytes received from upstream servers.";
        UpstreamBytesSent: "millstream_upstream_bytes_sent_total", "", "Bytes sent to upstream servers.";
        SpansExported: "millstream_trace_spans_total", "outcome=\"exported\"", "Spans of traced requests (`otel_trace`), by outcome.";
        SpansFailed: "millstream_trace_spans_total", "outcome=\"failed\"", "Spans that the collector did not accept.";
        SpansDropped: "millstream_trace_spans_total", "outcome=\"dropped\"", "Spans for which there was no room in the queue.";
        FiguresExported: "millstream_metric_exports_total", "outcome=\"exported\"", "Exports of these metrics (`metrics_interval` of `otel_exporter`), by outcome.";
        FiguresFailed: "millstream_metric_exports_total", "outcome=\"failed\"", "Exports of metrics that the collector did not accept completely.";
        ClusterApplied: "millstream_cluster_applied_total", "", "Purges and invalidations of other nodes that this node has applied.";
        ClusterZonePurges: "millstream_cluster_zone_purges_total", "", "Times that a cache zone was purged because purges of other nodes were missing or could not be read.";
        ClusterBreakerOpened: "millstream_cluster_breaker_opened_total", "", "Times that requests stopped waiting for an engine that did not respond.";
        ReloadsSucceeded: "millstream_config_reloads_total", "outcome=\"success\"", "Reloads of the configuration, by outcome.";
        ReloadsFailed: "millstream_config_reloads_total", "outcome=\"failure\"", "Reloads that failed; the previous configuration stays in force.";
        Panics: "millstream_panics_total", "", "Connections closed by a panic, which is always a bug in Millstream.";
        LogBytesWritten: "millstream_log_bytes_written_total", "", "Bytes of log lines written to their files.";
        LogBytesDropped: "millstream_log_bytes_dropped_total", "", "Bytes of log lines dropped because of a full disk or a stuck pipe.";
        LogErrors: "millstream_log_errors_total", "", "Failed writes and reopens of log files.";
    }
}

table! {
    Gauge {
        ConnectionsActive: "millstream_client_connections", "state=\"active\"", "Open client connections, by state.";
        ConnectionsReading: "millstream_client_connections", "state=\"reading\"", "Client connections with a partly read header.";
        ConnectionsWriting: "millstream_client_connections", "state=\"writing\"", "Client connections with a request in progress, except hits that are written at once.";
        LastReloadSuccessful: "millstream_config_last_reload_successful", "", "1 unless the last reload failed.";
        CacheVerifyOff: "millstream_cache_verify_off", "", "Locations whose cache is off because of a leak (`proxy_cache_verify`).";
        ClusterCutOff: "millstream_cluster_cut_off", "", "Cache zones of a cluster that are revalidated because this node cannot confirm that it knows all purges.";
        ClusterLag: "millstream_cluster_lag", "", "Entries of the logs of its clusters that this node has not applied yet.";
        ClusterUnpublished: "millstream_cluster_unpublished", "", "Purges and invalidations of this node that no other node knows yet.";
        ClusterNodes: "millstream_cluster_nodes", "", "Nodes that share a cache zone with this one, counted for each zone, except those that are cut off.";
        ClusterLimitNodes: "millstream_cluster_limit_nodes", "", "Other nodes that share a `sync` limit with this one, summed over all zones.";
        ClusterLimitsAlone: "millstream_cluster_limits_alone", "", "`sync` zones in which this node applies its share of the limit on its own, because the engine does not respond.";
        ClusterCountsLeftOut: "millstream_cluster_limit_counts_left_out", "", "Counts of `sync` limits that were not exchanged because there was no room for them, since the last change of the cluster's configuration.";
        ConfigurationLoaded: "millstream_config_load_timestamp_seconds", "", "When the configuration in force was loaded, in seconds since 1970.";
    }
}

table! {
    /// Recorded in microseconds, shown in seconds.
    Timing {
        UpstreamHeader: "millstream_upstream_header_duration_seconds", "", "Time from sending a request upstream to the complete response header.";
        ClusterScript: "millstream_cluster_script_duration_seconds", "", "Duration of script calls to the engine that publish purges or exchange node status.";
        LoopHeld: "millstream_worker_loop_held_duration_seconds", "", "Periods of a millisecond or more in which a single task blocked a worker's event loop.";
    }
}

/// `$upstream_cache_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
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
    /// In the order of their numbers.
    pub const ALL: [CacheStatus; 7] = [
        CacheStatus::Miss,
        CacheStatus::Bypass,
        CacheStatus::Expired,
        CacheStatus::Stale,
        CacheStatus::Updating,
        CacheStatus::Revalidated,
        CacheStatus::Hit,
    ];

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

    /// Its index in [`CacheStatus::ALL`].
    pub fn number(self) -> u8 {
        self as u8
    }
}
