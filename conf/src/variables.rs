//! The table of variables: every fixed name with its doc; the prefixed families (`$http_`, `$arg_` …) beside them.
//!
//! The manual, the checks and the suggestions come from this table. Next: `template`, which compiles uses of them;
//! `millstream-server`'s `variables`, which evaluates them.

macro_rules! variables {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// A variable with a fixed name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Builtin { $(#[doc = $doc] $variant,)* }

        /// Every fixed variable: its value, its name without the dollar, its doc.
        pub const VARIABLES: &[(Builtin, &str, &str)] = &[$((Builtin::$variant, $name, $doc),)*];
    };
}

variables! {
    AncientBrowser "ancient_browser" "The value of `ancient_browser_value` if the browser is an ancient one, else empty.",
    Args "args" "The request's query string, without the question mark.",
    BinaryRemoteAddr "binary_remote_addr" "The client's address in 4 or 16 bytes.",
    BodyBytesSent "body_bytes_sent" "Bytes of the answer sent to the client, its head not counted.",
    BytesSent "bytes_sent" "Bytes sent to the client for this request.",
    Connection "connection" "The connection's serial number.",
    ConnectionRequests "connection_requests" "How many requests came on the connection so far, this one included.",
    ConnectionTime "connection_time" "How long the connection has been open, in seconds with milliseconds.",
    ConnectionsActive "connections_active" "Open client connections.",
    ConnectionsReading "connections_reading" "Client connections of which the head of a request is being read.",
    ConnectionsWaiting "connections_waiting" "Idle client connections.",
    ConnectionsWriting "connections_writing" "Client connections that are being answered, or whose answer is being made.",
    ContentLength "content_length" "The request's Content-Length field.",
    ContentType "content_type" "The request's Content-Type field.",
    DateGmt "date_gmt" "The time in GMT, as `config timefmt` of `ssi` says, else as `Sunday, 06-Nov-1994 08:49:37 GMT`.",
    DateLocal "date_local" "The same in local time.",
    DocumentRoot "document_root" "The value of `root` for the request.",
    DocumentUri "document_uri" "The same as `$uri`.",
    FastcgiPathInfo "fastcgi_path_info" "What `fastcgi_split_path_info` finds behind the script.",
    FastcgiScriptName "fastcgi_script_name" "The script: the URI, or what `fastcgi_split_path_info` finds of it; with `fastcgi_index` where it ends with a slash.",
    ForwardedAddr "forwarded_addr" "The client's address: the last one in X-Forwarded-For, or without that in X-Real-IP, that is no `trusted_proxy`, else that of the connection.",
    ForwardedFor "forwarded_for" "X-Forwarded-For for the upstream: what a `trusted_proxy` says there, or else in X-Real-IP, with its own address appended; else the connection's address alone.",
    ForwardedHost "forwarded_host" "The host that the client asked for: X-Forwarded-Host of a `trusted_proxy`, else the request's own with its port.",
    ForwardedProto "forwarded_proto" "The scheme that the client used: X-Forwarded-Proto of a `trusted_proxy`, else `$scheme`.",
    GzipRatio "gzip_ratio" "How many times compression made the answer smaller, with two decimals.",
    Host "host" "The host of the request line, else of the Host field (lower case, without port), else the server's name.",
    Hostname "hostname" "This machine's host name.",
    Https "https" "`on` on a TLS connection, else empty.",
    InvalidReferer "invalid_referer" "`1` if `valid_referers` does not accept the request's Referer field, else empty.",
    IsRequestPort "is_request_port" "`:` where the request names a port, else empty.",
    IsArgs "is_args" "`?` where the request has a query string, else empty.",
    LimitConnStatus "limit_conn_status" "What `limit_conn` made of the request: PASSED, REJECTED or REJECTED_DRY_RUN.",
    LimitRate "limit_rate" "How many bytes a second of the answer are sent, where `set` or the upstream (`X-Accel-Limit-Rate`) says so; else 0.",
    LimitReqStatus "limit_req_status" "What `limit_req` made of the request: PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN or REJECTED_DRY_RUN.",
    ModernBrowser "modern_browser" "The value of `modern_browser_value` if the browser is a modern one, else empty.",
    Msec "msec" "The time in seconds since the epoch, with milliseconds.",
    Msie "msie" "`1` if the browser is any version of MSIE, else empty.",
    NginxVersion "nginx_version" "The nginx version whose behaviour is claimed.",
    OtelParentId "otel_parent_id" "The id of the span that a request came with, where `otel_trace_context` takes it.",
    OtelParentSampled "otel_parent_sampled" "`1` where whoever sent the request traces it, and `otel_trace_context` takes that; else `0`.",
    OtelSpanId "otel_span_id" "The id of the request's span.",
    OtelTraceId "otel_trace_id" "The id of the trace that the request belongs to.",
    Pid "pid" "The process id.",
    Pipe "pipe" "`p` where the request was pipelined, else `.`.",
    ProxyAddXForwardedFor "proxy_add_x_forwarded_for" "The request's X-Forwarded-For with the client's address appended after a comma.",
    ProxyHost "proxy_host" "Host and port of the `proxy_pass`, the scheme's own port left out.",
    ProxyPort "proxy_port" "Port of the `proxy_pass`.",
    ProxyProtocolAddr "proxy_protocol_addr" "The client's address as the header of the PROXY protocol says it (`listen … proxy_protocol`).",
    ProxyProtocolPort "proxy_protocol_port" "The client's port as that header says it.",
    ProxyProtocolServerAddr "proxy_protocol_server_addr" "The address that the client connected to, as that header says it.",
    ProxyProtocolServerPort "proxy_protocol_server_port" "The port that the client connected to, as that header says it.",
    QueryString "query_string" "The same as `$args`.",
    RealipRemoteAddr "realip_remote_addr" "The address of the connection, whatever `set_real_ip_from` made of it.",
    RealipRemotePort "realip_remote_port" "The port of the connection's other end, whatever `set_real_ip_from` made of it.",
    RealpathRoot "realpath_root" "`$document_root` with symbolic links resolved.",
    RemoteAddr "remote_addr" "The client's address.",
    RemotePort "remote_port" "The client's port.",
    RemoteUser "remote_user" "The user of a Basic Authorization field.",
    Request "request" "The request line as it came.",
    RequestBody "request_body" "The request's body, once it was read into memory to be passed on.",
    RequestBodyFile "request_body_file" "The file that holds the request's body, where it is in one.",
    RequestCompletion "request_completion" "`OK` where the request was answered whole, else empty.",
    RequestFilename "request_filename" "The file path for the request: `root` and URI.",
    RequestId "request_id" "A random id of the request, 32 hexadecimal digits.",
    RequestLength "request_length" "Bytes of the request, head and body.",
    RequestMethod "request_method" "The request's method.",
    RequestPort "request_port" "The port of the request line, else of the Host field, as the client wrote it.",
    RequestTime "request_time" "Seconds with milliseconds since the request's first byte.",
    RequestUri "request_uri" "The request's target as it came, with its query string.",
    Scheme "scheme" "`http` or `https`.",
    SecureLink "secure_link" "With `secure_link`: `1` where the link is right, `0` where it has expired, else empty; with `secure_link_secret`: the link itself where it is right.",
    SecureLinkExpires "secure_link_expires" "When a link expires, as it says itself (`secure_link`).",
    ServerAddr "server_addr" "The address that accepted the connection.",
    ServerName "server_name" "The name of the server that took the request.",
    ServerPort "server_port" "The port that accepted the connection.",
    Http2 "http2" "`h2` where the request came by HTTP/2 over TLS, `h2c` where it came by HTTP/2 without, else nothing.",
    ServerProtocol "server_protocol" "The request's protocol, such as `HTTP/1.1`.",
    SliceRange "slice_range" "With `slice`: the range of the piece that is asked for, such as `bytes=0-1048575`. Empty without `slice`, and for a request that is not fetched in pieces, such as a POST.",
    SslCipher "ssl_cipher" "The cipher suite of the TLS connection.",
    SslCiphers "ssl_ciphers" "The cipher suites that the client offered, by OpenSSL's names where they are known, separated by colons.",
    SslClientCert "ssl_client_cert" "The client's certificate (PEM), each line but the first behind a tab; for old files.",
    SslClientEscapedCert "ssl_client_escaped_cert" "The client's certificate (PEM), escaped as a part of a URI is.",
    SslClientFingerprint "ssl_client_fingerprint" "The SHA-1 of the client's certificate in hexadecimal digits.",
    SslClientIDn "ssl_client_i_dn" "Who issued the client's certificate, as RFC 2253 writes it.",
    SslClientIDnLegacy "ssl_client_i_dn_legacy" "The same with slashes, as nginx wrote it before 1.11.6.",
    SslClientRawCert "ssl_client_raw_cert" "The client's certificate (PEM).",
    SslClientSDn "ssl_client_s_dn" "Whose the client's certificate is, as RFC 2253 writes it.",
    SslClientSDnLegacy "ssl_client_s_dn_legacy" "The same with slashes, as nginx wrote it before 1.11.6.",
    SslClientSerial "ssl_client_serial" "The serial number of the client's certificate in hexadecimal digits.",
    SslClientSigalg "ssl_client_sigalg" "The scheme by which the client signed the handshake with the key of its certificate, such as `ecdsa_secp256r1_sha256`; empty in a resumed session.",
    SslClientVEnd "ssl_client_v_end" "When the client's certificate ends.",
    SslClientVRemain "ssl_client_v_remain" "Days until the client's certificate ends.",
    SslClientVStart "ssl_client_v_start" "When the client's certificate begins.",
    SslClientVerify "ssl_client_verify" "Whether the client's certificate is good: `SUCCESS`, `FAILED:` with a reason, or `NONE` where there is none. Of a server \
    with `ssl_verify_client off` always `NONE`, as are all `$ssl_client_` variables nothing.",
    SslAlpnProtocol "ssl_alpn_protocol" "The protocol that was chosen in the TLS handshake (ALPN), such as `h2`.",
    SslCurve "ssl_curve" "The group by which the keys of the TLS connection were exchanged.",
    SslCurves "ssl_curves" "The groups that the client offered, separated by colons.",
    SslEarlyData "ssl_early_data" "Always empty: requests in early data are not taken.",
    SslProtocol "ssl_protocol" "The protocol of the TLS connection, such as `TLSv1.3`.",
    SslServerName "ssl_server_name" "The name asked for by SNI.",
    SslSessionId "ssl_session_id" "What tells the TLS session from others, over its resumptions too, in hexadecimal digits.",
    SslSessionReused "ssl_session_reused" "`r` where the TLS session was resumed, else `.`.",
    SslSigalg "ssl_sigalg" "The scheme by which the server signed the handshake, such as `rsa_pss_rsae_sha256`; empty in a resumed session.",
    SslSigalgs "ssl_sigalgs" "The signature schemes that the client offered, by their names where they are known, separated by colons.",
    Status "status" "The answer's status.",
    TimeIso8601 "time_iso8601" "Local time as `2026-11-21T10:26:00+00:00`.",
    TimeLocal "time_local" "Local time as `21/Nov/2026:10:26:00 +0000`.",
    UidGot "uid_got" "The name of the `userid` cookie and the id that the client sent.",
    UidReset "uid_reset" "Empty unless the configuration sets it. If it is neither empty nor `0`, `userid` gives the client a new id; `log` also writes the old one to the error log.",
    UidSet "uid_set" "The name of the `userid` cookie and the id that the client is sent.",
    UpstreamAddr "upstream_addr" "Addresses of the upstream servers asked, in order, separated by commas.",
    UpstreamBytesReceived "upstream_bytes_received" "Bytes received from each upstream server asked.",
    UpstreamBytesSent "upstream_bytes_sent" "Bytes sent to each upstream server asked.",
    UpstreamCacheAge "upstream_cache_age" "The age of the cached answer in seconds (RFC 9111 §4.2.3).",
    UpstreamCacheEtag "upstream_cache_etag" "The ETag of the cached answer while it is validated, with `proxy_cache_revalidate`.",
    UpstreamCacheKey "upstream_cache_key" "The key that the cache was asked with.",
    UpstreamCacheLastModified "upstream_cache_last_modified" "The Last-Modified of the cached answer while it is validated, with `proxy_cache_revalidate`.",
    UpstreamCacheStatus "upstream_cache_status" "MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED or HIT.",
    UpstreamConnectTime "upstream_connect_time" "Seconds with milliseconds to connect to each upstream server asked.",
    UpstreamHeaderTime "upstream_header_time" "Seconds with milliseconds to each upstream server's answer head.",
    UpstreamResponseLength "upstream_response_length" "Bytes of each upstream server's answer body.",
    UpstreamResponseTime "upstream_response_time" "Seconds with milliseconds to the end of each upstream server's answer.",
    UpstreamStatus "upstream_status" "Status of each upstream server's answer.",
    Uri "uri" "The request's path, decoded and normalised.",
}

/// Families of variables: the prefix and its doc.
pub const FAMILIES: &[(&str, &str)] = &[
    ("arg_", "A value of the query string by name."),
    ("cookie_", "A cookie of the request by name."),
    ("http_", "A field of the request by name, in lower case with underscores."),
    (
        "proxy_protocol_tlv_",
        "What the header of the PROXY protocol (version 2) says beside the addresses, by its name or number, such as `alpn`, `ssl_cn` or `0xea`.",
    ),
    ("sent_http_", "A field of the answer as sent."),
    ("sent_trailer_", "A trailer field of the answer as sent."),
    ("upstream_cookie_", "A cookie that the upstream's answer sets, by name."),
    ("upstream_http_", "A field of the upstream's answer."),
    ("upstream_trailer_", "A trailer field of the upstream's answer."),
];

/// Whether a name is that of a variable that a configuration cannot give a value to, in any case of its letters. The others have
/// their own value until it does.
pub fn is_fixed(name: &str) -> bool {
    let found = VARIABLES.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
    found.is_some_and(|(builtin, ..)| !builtin.is_changeable())
}

impl Builtin {
    /// Whether `set`, `map` and the like may give it another value, as in nginx.
    fn is_changeable(self) -> bool {
        matches!(
            self,
            Builtin::AncientBrowser
                | Builtin::InvalidReferer
                | Builtin::ModernBrowser
                | Builtin::Msie
                | Builtin::UidReset
        )
    }

    /// Whether it tells one client's certificate from all others.
    pub fn names_certificate(self) -> bool {
        matches!(
            self,
            Builtin::SslClientCert
                | Builtin::SslClientRawCert
                | Builtin::SslClientEscapedCert
                | Builtin::SslClientFingerprint
                | Builtin::SslClientSDn
                | Builtin::SslClientSDnLegacy
        )
    }
}
