//! The table of variables: every fixed name with where its value comes from and its doc; the prefixed families (`$http_`,
//! `$arg_` …) beside them.
//!
//! The manual, the checks and the suggestions come from this table. Next: `template`, which compiles uses of them;
//! `millstream-server`'s `variables`, which evaluates them.

macro_rules! variables {
    ($($variant:ident $name:literal $source:ident $doc:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Builtin { $(#[doc = $doc] $variant,)* }

        /// The variable, its name without the dollar, its doc.
        pub const VARIABLES: &[(Builtin, &str, &str)] = &[$((Builtin::$variant, $name, $doc),)*];

        impl Builtin {
            pub fn source(self) -> Source {
                match self { $(Builtin::$variant => Source::$source,)* }
            }
        }
    };
}

variables! {
    AncientBrowser "ancient_browser" Field "The value of `ancient_browser_value` if the browser is an ancient one, otherwise empty.",
    Args "args" Query "The request's query string, without the question mark.",
    BinaryRemoteAddr "binary_remote_addr" Address "The client's address in 4 or 16 bytes.",
    BodyBytesSent "body_bytes_sent" Common "Bytes of the response sent to the client, not counting the header.",
    BytesSent "bytes_sent" Common "Bytes sent to the client for this request.",
    Connection "connection" Once "The connection's serial number.",
    ConnectionRequests "connection_requests" Once "The number of requests on the connection so far, including this one.",
    ConnectionTime "connection_time" Once "The age of the connection in seconds, with milliseconds.",
    ConnectionsActive "connections_active" Common "Open client connections.",
    ConnectionsReading "connections_reading" Common "Client connections on which the header of a request is being read.",
    ConnectionsWaiting "connections_waiting" Common "Idle client connections.",
    ConnectionsWriting "connections_writing" Common "Client connections whose request is being handled or whose response is being sent.",
    ContentLength "content_length" Field "The request's Content-Length field.",
    ContentType "content_type" Body "The request's Content-Type field.",
    CredentialFields "credential_fields" Field "The names of the request's fields that hold a credential (`proxy_cache_credentials`) except Cookie, in lower case and separated by commas. It depends on the names alone, so fields that the configuration or the key contains are included.",
    DateGmt "date_gmt" Once "The time in GMT, in the format of `config timefmt` of `ssi`, by default as `Sunday, 06-Nov-1994 08:49:37 GMT`.",
    DateLocal "date_local" Once "The local time, in the format of `$date_gmt`.",
    DocumentRoot "document_root" Folder "The value of `root` for the request.",
    DocumentUri "document_uri" Path "The same as `$uri`.",
    FastcgiPathInfo "fastcgi_path_info" Path "The second capture of `fastcgi_split_path_info`: the path after the script.",
    FastcgiScriptName "fastcgi_script_name" Path "The script: the URI, or the first capture of `fastcgi_split_path_info`. If it ends with a slash, `fastcgi_index` is appended.",
    ForwardedAddr "forwarded_addr" Address "The client's address. On a connection from a `trusted_proxy`, the last address in X-Forwarded-For (or in X-Real-IP if there is no X-Forwarded-For) that is not a `trusted_proxy`; otherwise the address of the connection.",
    ForwardedFor "forwarded_for" Address "The X-Forwarded-For to send to the upstream. On a connection from a `trusted_proxy`, its X-Forwarded-For (or its X-Real-IP if there is no X-Forwarded-For) with the proxy's own address appended; otherwise only the address of the connection.",
    ForwardedHost "forwarded_host" Connection "The host that the client requested: X-Forwarded-Host of a `trusted_proxy`, otherwise the host and port of the request.",
    ForwardedProto "forwarded_proto" Connection "The scheme that the client used: X-Forwarded-Proto of a `trusted_proxy`, otherwise `$scheme`.",
    GzipRatio "gzip_ratio" Common "The compression ratio of the response, with two decimals.",
    Host "host" Connection "The host in the request line, otherwise in the Host field, otherwise the server's name; in lower case, without the port.",
    Hostname "hostname" Common "This machine's host name.",
    Https "https" Connection "`on` on a TLS connection, otherwise empty.",
    InvalidReferer "invalid_referer" Field "`1` if `valid_referers` does not accept the request's Referer field, otherwise empty.",
    IsRequestPort "is_request_port" Connection "`:` if the request has a port, otherwise empty.",
    IsArgs "is_args" Common "`?` if the request has a query string, otherwise empty.",
    LimitConnStatus "limit_conn_status" Common "The result of `limit_conn`: PASSED, REJECTED or REJECTED_DRY_RUN.",
    LimitRate "limit_rate" Kept "The rate of the response in bytes per second, if `set` or the upstream (`X-Accel-Limit-Rate`) limits it; otherwise 0.",
    LimitReqStatus "limit_req_status" Common "The result of `limit_req`: PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN or REJECTED_DRY_RUN.",
    ModernBrowser "modern_browser" Field "The value of `modern_browser_value` if the browser is a modern one, otherwise empty.",
    Msec "msec" Once "The time in seconds since the epoch, with milliseconds.",
    Msie "msie" Field "`1` if the browser is any version of MSIE, otherwise empty.",
    NginxVersion "nginx_version" Common "The nginx version whose behaviour Millstream follows.",
    OtelParentId "otel_parent_id" Once "The id of the parent span that the request carries, if `otel_trace_context` extracts it.",
    OtelParentSampled "otel_parent_sampled" Common "`1` if the request carries a sampled parent span and `otel_trace_context` extracts it, otherwise `0`.",
    OtelSpanId "otel_span_id" Once "The id of the request's span.",
    OtelTraceId "otel_trace_id" Once "The id of the request's trace.",
    Pid "pid" Common "The process id.",
    Pipe "pipe" Once "`p` if the request was pipelined, otherwise `.`.",
    ProxyAddXForwardedFor "proxy_add_x_forwarded_for" Address "The request's X-Forwarded-For with the client's address appended after a comma.",
    ProxyHost "proxy_host" Common "Host and port of `proxy_pass`, without the port if it is the scheme's default.",
    ProxyPort "proxy_port" Common "Port of `proxy_pass`.",
    ProxyProtocolAddr "proxy_protocol_addr" Address "The client's address from the PROXY protocol header (`listen … proxy_protocol`).",
    ProxyProtocolPort "proxy_protocol_port" Once "The client's port from the PROXY protocol header.",
    ProxyProtocolServerAddr "proxy_protocol_server_addr" Connection "The address that the client connected to, from the PROXY protocol header.",
    ProxyProtocolServerPort "proxy_protocol_server_port" Connection "The port that the client connected to, from the PROXY protocol header.",
    QueryString "query_string" Query "The same as `$args`.",
    RealipRemoteAddr "realip_remote_addr" Address "The address of the connection, before `set_real_ip_from` replaced it.",
    RealipRemotePort "realip_remote_port" Once "The client port of the connection, before `set_real_ip_from` replaced it.",
    RealpathRoot "realpath_root" Folder "`$document_root` with symbolic links resolved.",
    RemoteAddr "remote_addr" Address "The client's address.",
    RemotePort "remote_port" Once "The client's port.",
    RemoteUser "remote_user" Who "The user of a Basic Authorization field.",
    Request "request" Target "The request line as it was received.",
    RequestBody "request_body" Body "The request's body, once it has been read into memory.",
    RequestBodyFile "request_body_file" Body "The file with the request's body, if it was written to one.",
    RequestCompletion "request_completion" Common "`OK` if the response was sent completely, otherwise empty.",
    RequestFilename "request_filename" File "The path of the requested file, from `root` or `alias` and the URI.",
    RequestId "request_id" Once "A random request id of 32 hexadecimal digits.",
    RequestLength "request_length" Field "Bytes of the request: request line, header and body.",
    RequestMethod "request_method" Common "The request's method.",
    RequestPort "request_port" Connection "The port in the request line, otherwise in the Host field, as the client sent it.",
    RequestTime "request_time" Once "The time since the first byte of the request, in seconds with milliseconds.",
    RequestUri "request_uri" Target "The request's target as it was received, with its query string.",
    Scheme "scheme" Connection "`http` or `https`.",
    SecureLink "secure_link" Link "With `secure_link`: `1` if the link is valid, `0` if it has expired, otherwise empty. With `secure_link_secret`: the link if it is valid.",
    SecureLinkExpires "secure_link_expires" Link "The expiration time in the link (`secure_link`).",
    ServerAddr "server_addr" Connection "The address that accepted the connection.",
    ServerName "server_name" Connection "The name of the server that handles the request.",
    ServerPort "server_port" Connection "The port that accepted the connection.",
    Http2 "http2" Connection "`h2` for HTTP/2 over TLS, `h2c` for HTTP/2 without TLS, otherwise empty.",
    ServerProtocol "server_protocol" Connection "The request's protocol, such as `HTTP/1.1`.",
    SliceRange "slice_range" Common "With `slice`, the range of the requested slice, such as `bytes=0-1048575`. Empty without `slice`, and for requests that are not sliced, such as POST.",
    SslCipher "ssl_cipher" Connection "The cipher suite of the TLS connection.",
    SslCiphers "ssl_ciphers" Connection "The cipher suites that the client offered, separated by colons, by OpenSSL's names if they are known.",
    SslClientCert "ssl_client_cert" Certificate "The client's certificate (PEM), each line but the first preceded by a tab; deprecated.",
    SslClientEscapedCert "ssl_client_escaped_cert" Certificate "The client's certificate (PEM), URI-escaped.",
    SslClientFingerprint "ssl_client_fingerprint" Certificate "The SHA-1 of the client's certificate in hexadecimal digits.",
    SslClientIDn "ssl_client_i_dn" OfCertificate "The issuer of the client's certificate, in the format of RFC 2253.",
    SslClientIDnLegacy "ssl_client_i_dn_legacy" OfCertificate "The issuer of the client's certificate in the format of nginx before 1.11.6, with slashes.",
    SslClientRawCert "ssl_client_raw_cert" Certificate "The client's certificate (PEM).",
    SslClientSDn "ssl_client_s_dn" Certificate "The subject of the client's certificate, in the format of RFC 2253.",
    SslClientSDnLegacy "ssl_client_s_dn_legacy" Certificate "The subject of the client's certificate in the format of nginx before 1.11.6, with slashes.",
    SslClientSerial "ssl_client_serial" OfCertificate "The serial number of the client's certificate in hexadecimal digits.",
    SslClientSigalg "ssl_client_sigalg" OfCertificate "The signature scheme of the client's certificate key in the handshake, such as `ecdsa_secp256r1_sha256`; empty in a resumed session.",
    SslClientVEnd "ssl_client_v_end" OfCertificate "The end of the client certificate's validity.",
    SslClientVRemain "ssl_client_v_remain" OfCertificate "Days until the client's certificate expires.",
    SslClientVStart "ssl_client_v_start" OfCertificate "The start of the client certificate's validity.",
    SslClientVerify "ssl_client_verify" OfCertificate "The result of verifying the client's certificate: `SUCCESS`, `FAILED:` with a reason, or `NONE` if there is none. With \
    `ssl_verify_client off` it is always `NONE`, and all other `$ssl_client_` variables are empty.",
    SslAlpnProtocol "ssl_alpn_protocol" Connection "The protocol that was chosen in the TLS handshake (ALPN), such as `h2`.",
    SslCurve "ssl_curve" Connection "The group of the TLS connection's key exchange.",
    SslCurves "ssl_curves" Connection "The groups that the client offered, separated by colons.",
    SslEarlyData "ssl_early_data" Common "Always empty: early data is not accepted.",
    SslProtocol "ssl_protocol" Connection "The protocol of the TLS connection, such as `TLSv1.3`.",
    SslServerName "ssl_server_name" Connection "The server name that the client sent (SNI).",
    SslSessionId "ssl_session_id" Who "The id of the TLS session in hexadecimal digits, which a resumed session keeps.",
    SslSessionReused "ssl_session_reused" Connection "`r` if the TLS session was resumed, otherwise `.`.",
    SslSigalg "ssl_sigalg" Connection "The signature scheme of the server in the handshake, such as `rsa_pss_rsae_sha256`; empty in a resumed session.",
    SslSigalgs "ssl_sigalgs" Connection "The signature schemes that the client offered, separated by colons, by name if they are known.",
    Status "status" Common "The response's status.",
    TimeIso8601 "time_iso8601" Once "Local time as `2026-11-21T10:26:00+00:00`.",
    TimeLocal "time_local" Once "Local time as `21/Nov/2026:10:26:00 +0000`.",
    UidGot "uid_got" Who "The name of the `userid` cookie and the id that the client sent.",
    UidReset "uid_reset" Common "Empty unless the configuration sets it. If it is neither empty nor `0`, `userid` gives the client a new id; `log` also writes the old one to the error log.",
    UidSet "uid_set" Who "The name of the `userid` cookie and the id that is sent to the client.",
    UnlistedFields "unlisted_fields" Field "The names of the request's fields by which `proxy_cache_vary unlisted` separates responses, in lower case and separated by commas, except Accept, Accept-Language, Origin and User-Agent.",
    UpstreamAddr "upstream_addr" Common "Addresses of the upstream servers that were contacted, in order, separated by commas. Those after an internal redirect follow ` : `.",
    UpstreamBytesReceived "upstream_bytes_received" Common "Bytes received from each upstream server.",
    UpstreamBytesSent "upstream_bytes_sent" Common "Bytes sent to each upstream server.",
    UpstreamCacheAge "upstream_cache_age" Common "The age of the cached response in seconds (RFC 9111 §4.2.3).",
    UpstreamCacheEtag "upstream_cache_etag" Common "The ETag of the cached response while it is revalidated, with `proxy_cache_revalidate`.",
    UpstreamCacheKey "upstream_cache_key" Common "The cache key.",
    UpstreamCacheLastModified "upstream_cache_last_modified" Common "The Last-Modified of the cached response while it is revalidated, with `proxy_cache_revalidate`.",
    UpstreamCacheStatus "upstream_cache_status" Common "MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED or HIT.",
    UpstreamConnectTime "upstream_connect_time" Common "The time to connect to each upstream server, in seconds with milliseconds.",
    UpstreamHeaderTime "upstream_header_time" Common "The time to the header of each upstream server's response, in seconds with milliseconds.",
    UpstreamResponseLength "upstream_response_length" Common "Bytes of the body of each upstream server's response.",
    UpstreamResponseTime "upstream_response_time" Common "The time to the end of each upstream server's response, in seconds with milliseconds.",
    UpstreamStatus "upstream_status" Common "Status of each upstream server's response.",
    Uri "uri" Path "The request's path, decoded and normalized.",
}

/// Where a variable's value comes from, as far as it may identify the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From what says nothing of the client, or nothing that the cache does not know by itself, such as the
    /// certificate.
    Common,
    /// New with each request, or with time: no response that is worth storing depends on it.
    Once,
    /// From the connection, the TLS handshake or the host that is asked for: many clients share the value.
    Connection,
    Address,
    /// From a field, which may hold a credential.
    Field,
    /// From the body or its type, which is no field: `proxy_cache_key` contains it or not.
    Body,
    /// From a credential, or from another response about the client.
    Who,
    /// Names the client's certificate.
    Certificate,
    /// From the client's certificate, or whether it has one; several certificates may share the value.
    OfCertificate,
    Path,
    Query,
    Target,
    Folder,
    /// From `root` or `alias` and the path in force.
    File,
    Link,
    /// From what was set or captured; each request remembers where that came from.
    Kept,
}

impl Source {
    /// Whether the value may be one client's own.
    pub fn is_of_client(self) -> bool {
        !matches!(self, Source::Common | Source::Once | Source::Connection)
    }

    pub fn is_of_certificate(self) -> bool {
        matches!(self, Source::Certificate | Source::OfCertificate)
    }

    /// Whether the value is as the client or an upstream sent it; path and query may have been replaced.
    pub fn is_as_sent(self) -> bool {
        matches!(self, Source::Field | Source::Body | Source::Who) || self.is_of_certificate()
    }
}

pub const FAMILIES: &[(&str, &str)] = &[
    ("arg_", "The query argument with this name."),
    ("cookie_", "The request's cookie with this name."),
    ("http_", "The request field with this name, in lower case and with underscores instead of hyphens."),
    (
        "proxy_protocol_tlv_",
        "A further value (TLV) of the PROXY protocol header (version 2), by name or number, such as `alpn`, `ssl_cn` or `0xea`.",
    ),
    ("sent_http_", "The response field with this name, as sent."),
    ("sent_trailer_", "The trailer field of the response with this name, as sent."),
    ("upstream_cookie_", "The cookie with this name that the upstream's response sets."),
    ("upstream_http_", "The field of the upstream's response with this name."),
    ("upstream_trailer_", "The trailer field of the upstream's response with this name."),
];

/// Whether a configuration cannot set the variable; in any case. The others have their own value until it
/// does.
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

    /// Whether it keeps, for the rest of a request, its value from when it was first read, as in nginx. Only
    /// what settings of the location make is listed; others never change, or are read anew, as `$uri` is.
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
}
