//! The table of variables: every fixed name with where its value comes from and its doc; the prefixed families (`$http_`,
//! `$arg_` …) beside them.
//!
//! The manual, the checks and the suggestions come from this table. Next: `template`, which compiles uses of them;
//! `millstream-server`'s `variables`, which evaluates them.

macro_rules! variables {
    ($($variant:ident $name:literal $source:ident $doc:literal,)*) => {
        /// A variable with a fixed name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Builtin { $(#[doc = $doc] $variant,)* }

        /// Every fixed variable: its value, its name without the dollar, its doc.
        pub const VARIABLES: &[(Builtin, &str, &str)] = &[$((Builtin::$variant, $name, $doc),)*];

        impl Builtin {
            /// Where its value comes from.
            pub fn source(self) -> Source {
                match self { $(Builtin::$variant => Source::$source,)* }
            }
        }
    };
}

variables! {
    AncientBrowser "ancient_browser" Field "The value of `ancient_browser_value` if the browser is an ancient one, else empty.",
    Args "args" Query "The request's query string, without the question mark.",
    BinaryRemoteAddr "binary_remote_addr" Address "The client's address in 4 or 16 bytes.",
    BodyBytesSent "body_bytes_sent" Common "Bytes of the answer sent to the client, its head not counted.",
    BytesSent "bytes_sent" Common "Bytes sent to the client for this request.",
    Connection "connection" Common "The connection's serial number.",
    ConnectionRequests "connection_requests" Common "How many requests came on the connection so far, this one included.",
    ConnectionTime "connection_time" Common "How long the connection has been open, in seconds with milliseconds.",
    ConnectionsActive "connections_active" Common "Open client connections.",
    ConnectionsReading "connections_reading" Common "Client connections of which the head of a request is being read.",
    ConnectionsWaiting "connections_waiting" Common "Idle client connections.",
    ConnectionsWriting "connections_writing" Common "Client connections that are being answered, or whose answer is being made.",
    ContentLength "content_length" Field "The request's Content-Length field.",
    ContentType "content_type" Field "The request's Content-Type field.",
    DateGmt "date_gmt" Common "The time in GMT, as `config timefmt` of `ssi` says, else as `Sunday, 06-Nov-1994 08:49:37 GMT`.",
    DateLocal "date_local" Common "The same in local time.",
    DocumentRoot "document_root" Folder "The value of `root` for the request.",
    DocumentUri "document_uri" Path "The same as `$uri`.",
    FastcgiPathInfo "fastcgi_path_info" Path "What `fastcgi_split_path_info` finds behind the script.",
    FastcgiScriptName "fastcgi_script_name" Path "The script: the URI, or what `fastcgi_split_path_info` finds of it; with `fastcgi_index` where it ends with a slash.",
    ForwardedAddr "forwarded_addr" Address "The client's address: the last one in X-Forwarded-For, or without that in X-Real-IP, that is no `trusted_proxy`, else that of the connection.",
    ForwardedFor "forwarded_for" Address "X-Forwarded-For for the upstream: what a `trusted_proxy` says there, or else in X-Real-IP, with its own address appended; else the connection's address alone.",
    ForwardedHost "forwarded_host" Common "The host that the client asked for: X-Forwarded-Host of a `trusted_proxy`, else the request's own with its port.",
    ForwardedProto "forwarded_proto" Common "The scheme that the client used: X-Forwarded-Proto of a `trusted_proxy`, else `$scheme`.",
    GzipRatio "gzip_ratio" Common "How many times compression made the answer smaller, with two decimals.",
    Host "host" Common "The host of the request line, else of the Host field (lower case, without port), else the server's name.",
    Hostname "hostname" Common "This machine's host name.",
    Https "https" Common "`on` on a TLS connection, else empty.",
    InvalidReferer "invalid_referer" Field "`1` if `valid_referers` does not accept the request's Referer field, else empty.",
    IsRequestPort "is_request_port" Common "`:` where the request names a port, else empty.",
    IsArgs "is_args" Common "`?` where the request has a query string, else empty.",
    LimitConnStatus "limit_conn_status" Common "What `limit_conn` made of the request: PASSED, REJECTED or REJECTED_DRY_RUN.",
    LimitRate "limit_rate" Kept "How many bytes a second of the answer are sent, where `set` or the upstream (`X-Accel-Limit-Rate`) says so; else 0.",
    LimitReqStatus "limit_req_status" Common "What `limit_req` made of the request: PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN or REJECTED_DRY_RUN.",
    ModernBrowser "modern_browser" Field "The value of `modern_browser_value` if the browser is a modern one, else empty.",
    Msec "msec" Common "The time in seconds since the epoch, with milliseconds.",
    Msie "msie" Field "`1` if the browser is any version of MSIE, else empty.",
    NginxVersion "nginx_version" Common "The nginx version whose behaviour is claimed.",
    OtelParentId "otel_parent_id" Common "The id of the span that a request came with, where `otel_trace_context` takes it.",
    OtelParentSampled "otel_parent_sampled" Common "`1` where whoever sent the request traces it, and `otel_trace_context` takes that; else `0`.",
    OtelSpanId "otel_span_id" Common "The id of the request's span.",
    OtelTraceId "otel_trace_id" Common "The id of the trace that the request belongs to.",
    Pid "pid" Common "The process id.",
    Pipe "pipe" Common "`p` where the request was pipelined, else `.`.",
    ProxyAddXForwardedFor "proxy_add_x_forwarded_for" Address "The request's X-Forwarded-For with the client's address appended after a comma.",
    ProxyHost "proxy_host" Common "Host and port of the `proxy_pass`, the scheme's own port left out.",
    ProxyPort "proxy_port" Common "Port of the `proxy_pass`.",
    ProxyProtocolAddr "proxy_protocol_addr" Address "The client's address as the header of the PROXY protocol says it (`listen … proxy_protocol`).",
    ProxyProtocolPort "proxy_protocol_port" Common "The client's port as that header says it.",
    ProxyProtocolServerAddr "proxy_protocol_server_addr" Common "The address that the client connected to, as that header says it.",
    ProxyProtocolServerPort "proxy_protocol_server_port" Common "The port that the client connected to, as that header says it.",
    QueryString "query_string" Query "The same as `$args`.",
    RealipRemoteAddr "realip_remote_addr" Address "The address of the connection, whatever `set_real_ip_from` made of it.",
    RealipRemotePort "realip_remote_port" Common "The port of the connection's other end, whatever `set_real_ip_from` made of it.",
    RealpathRoot "realpath_root" Folder "`$document_root` with symbolic links resolved.",
    RemoteAddr "remote_addr" Address "The client's address.",
    RemotePort "remote_port" Common "The client's port.",
    RemoteUser "remote_user" Who "The user of a Basic Authorization field.",
    Request "request" Target "The request line as it came.",
    RequestBody "request_body" Field "The request's body, once it was read into memory to be passed on.",
    RequestBodyFile "request_body_file" Field "The file that holds the request's body, where it is in one.",
    RequestCompletion "request_completion" Common "`OK` where the request was answered whole, else empty.",
    RequestFilename "request_filename" File "The file path for the request: `root` and URI.",
    RequestId "request_id" Common "A random id of the request, 32 hexadecimal digits.",
    RequestLength "request_length" Common "Bytes of the request, head and body.",
    RequestMethod "request_method" Common "The request's method.",
    RequestPort "request_port" Common "The port of the request line, else of the Host field, as the client wrote it.",
    RequestTime "request_time" Common "Seconds with milliseconds since the request's first byte.",
    RequestUri "request_uri" Target "The request's target as it came, with its query string.",
    Scheme "scheme" Common "`http` or `https`.",
    SecureLink "secure_link" Link "With `secure_link`: `1` where the link is right, `0` where it has expired, else empty; with `secure_link_secret`: the link itself where it is right.",
    SecureLinkExpires "secure_link_expires" Link "When a link expires, as it says itself (`secure_link`).",
    ServerAddr "server_addr" Common "The address that accepted the connection.",
    ServerName "server_name" Common "The name of the server that took the request.",
    ServerPort "server_port" Common "The port that accepted the connection.",
    Http2 "http2" Common "`h2` where the request came by HTTP/2 over TLS, `h2c` where it came by HTTP/2 without, else nothing.",
    ServerProtocol "server_protocol" Common "The request's protocol, such as `HTTP/1.1`.",
    SliceRange "slice_range" Common "With `slice`: the range of the piece that is asked for, such as `bytes=0-1048575`. Empty without `slice`, and for a request that is not fetched in pieces, such as a POST.",
    SslCipher "ssl_cipher" Common "The cipher suite of the TLS connection.",
    SslCiphers "ssl_ciphers" Common "The cipher suites that the client offered, by OpenSSL's names where they are known, separated by colons.",
    SslClientCert "ssl_client_cert" Common "The client's certificate (PEM), each line but the first behind a tab; for old files.",
    SslClientEscapedCert "ssl_client_escaped_cert" Common "The client's certificate (PEM), escaped as a part of a URI is.",
    SslClientFingerprint "ssl_client_fingerprint" Common "The SHA-1 of the client's certificate in hexadecimal digits.",
    SslClientIDn "ssl_client_i_dn" Common "Who issued the client's certificate, as RFC 2253 writes it.",
    SslClientIDnLegacy "ssl_client_i_dn_legacy" Common "The same with slashes, as nginx wrote it before 1.11.6.",
    SslClientRawCert "ssl_client_raw_cert" Common "The client's certificate (PEM).",
    SslClientSDn "ssl_client_s_dn" Common "Whose the client's certificate is, as RFC 2253 writes it.",
    SslClientSDnLegacy "ssl_client_s_dn_legacy" Common "The same with slashes, as nginx wrote it before 1.11.6.",
    SslClientSerial "ssl_client_serial" Common "The serial number of the client's certificate in hexadecimal digits.",
    SslClientSigalg "ssl_client_sigalg" Common "The scheme by which the client signed the handshake with the key of its certificate, such as `ecdsa_secp256r1_sha256`; empty in a resumed session.",
    SslClientVEnd "ssl_client_v_end" Common "When the client's certificate ends.",
    SslClientVRemain "ssl_client_v_remain" Common "Days until the client's certificate ends.",
    SslClientVStart "ssl_client_v_start" Common "When the client's certificate begins.",
    SslClientVerify "ssl_client_verify" Common "Whether the client's certificate is good: `SUCCESS`, `FAILED:` with a reason, or `NONE` where there is none. Of a server \
    with `ssl_verify_client off` always `NONE`, as are all `$ssl_client_` variables nothing.",
    SslAlpnProtocol "ssl_alpn_protocol" Common "The protocol that was chosen in the TLS handshake (ALPN), such as `h2`.",
    SslCurve "ssl_curve" Common "The group by which the keys of the TLS connection were exchanged.",
    SslCurves "ssl_curves" Common "The groups that the client offered, separated by colons.",
    SslEarlyData "ssl_early_data" Common "Always empty: requests in early data are not taken.",
    SslProtocol "ssl_protocol" Common "The protocol of the TLS connection, such as `TLSv1.3`.",
    SslServerName "ssl_server_name" Common "The name asked for by SNI.",
    SslSessionId "ssl_session_id" Who "What tells the TLS session from others, over its resumptions too, in hexadecimal digits.",
    SslSessionReused "ssl_session_reused" Common "`r` where the TLS session was resumed, else `.`.",
    SslSigalg "ssl_sigalg" Common "The scheme by which the server signed the handshake, such as `rsa_pss_rsae_sha256`; empty in a resumed session.",
    SslSigalgs "ssl_sigalgs" Common "The signature schemes that the client offered, by their names where they are known, separated by colons.",
    Status "status" Common "The answer's status.",
    TimeIso8601 "time_iso8601" Common "Local time as `2026-11-21T10:26:00+00:00`.",
    TimeLocal "time_local" Common "Local time as `21/Nov/2026:10:26:00 +0000`.",
    UidGot "uid_got" Who "The name of the `userid` cookie and the id that the client sent.",
    UidReset "uid_reset" Common "Empty unless the configuration sets it. If it is neither empty nor `0`, `userid` gives the client a new id; `log` also writes the old one to the error log.",
    UidSet "uid_set" Who "The name of the `userid` cookie and the id that the client is sent.",
    UpstreamAddr "upstream_addr" Common "Addresses of the upstream servers asked, in order, separated by commas.",
    UpstreamBytesReceived "upstream_bytes_received" Common "Bytes received from each upstream server asked.",
    UpstreamBytesSent "upstream_bytes_sent" Common "Bytes sent to each upstream server asked.",
    UpstreamCacheAge "upstream_cache_age" Common "The age of the cached answer in seconds (RFC 9111 §4.2.3).",
    UpstreamCacheEtag "upstream_cache_etag" Common "The ETag of the cached answer while it is validated, with `proxy_cache_revalidate`.",
    UpstreamCacheKey "upstream_cache_key" Common "The key that the cache was asked with.",
    UpstreamCacheLastModified "upstream_cache_last_modified" Common "The Last-Modified of the cached answer while it is validated, with `proxy_cache_revalidate`.",
    UpstreamCacheStatus "upstream_cache_status" Common "MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED or HIT.",
    UpstreamConnectTime "upstream_connect_time" Common "Seconds with milliseconds to connect to each upstream server asked.",
    UpstreamHeaderTime "upstream_header_time" Common "Seconds with milliseconds to each upstream server's answer head.",
    UpstreamResponseLength "upstream_response_length" Common "Bytes of each upstream server's answer body.",
    UpstreamResponseTime "upstream_response_time" Common "Seconds with milliseconds to the end of each upstream server's answer.",
    UpstreamStatus "upstream_status" Common "Status of each upstream server's answer.",
    Uri "uri" Path "The request's path, decoded and normalised.",
}

/// Where a variable's value comes from, as far as it may show who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From what says nothing of the client, or nothing that the cache does not know by itself, as it does the certificate.
    Common,
    /// From the client's address.
    Address,
    /// From a field or the body, which may hold a credential or not.
    Field,
    /// From a credential, or from what another response said of the client.
    Who,
    /// From the path in force.
    Path,
    /// From the query in force.
    Query,
    /// From path and query as they came.
    Target,
    /// From `root` or `alias`.
    Folder,
    /// From these and the path in force.
    File,
    /// From what `secure_link` reads.
    Link,
    /// From what was set or captured; each request remembers where that came from.
    Kept,
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

    /// Whether it keeps, for the rest of a request, the value that it had when it was first read, as in nginx. Only those are named whose
    /// value depends on the location or its path; others never change, or are looked at anew.
    pub fn stays(self) -> bool {
        matches!(
            self,
            Builtin::AncientBrowser
                | Builtin::InvalidReferer
                | Builtin::ModernBrowser
                | Builtin::SecureLink
                | Builtin::SecureLinkExpires
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
