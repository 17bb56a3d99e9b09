//! Levels as settings: every default, and the checks that need a whole location.
//!
//! By now everything is inherited; here the defaults are put in (nginx's, unless the manual says otherwise), and the
//! location's own kind decides what its `proxy_pass` may say. Next: `model::location`, the result; `locations`, which
//! calls this.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::inherit::{Level, PassDraft, RedirectRule};
use crate::model::{
    AccessLog, Gzip, GzipHttpVersion, HttpVersion, LingeringClose, LocationMatch, NextUpstream, Part, Proxy,
    Redirect, ServerTokens, SetHeader, Settings, Store, Template, Tls, TlsVersion, Types, Variable,
};
use crate::reading::Reading;
use crate::variables::Builtin;

mod rights;
mod made;
mod sharing;
mod cache;

pub use rights::refuse_purge_at;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Fields of an upstream's answer that the client never gets by default, in lower case.
pub const HIDDEN_FIELDS: [&str; 8] = [
    "date",
    "server",
    "x-pad",
    "x-accel-expires",
    "x-accel-redirect",
    "x-accel-limit-rate",
    "x-accel-buffering",
    "x-accel-charset",
];

/// Everything that holds in a location (or on the level of a server).
pub fn settings(level: &Level, matches: &LocationMatch, reading: &mut Reading<'_>) -> Settings {
    check_temp_file_size(level, reading);
    let proxy = level.proxy_pass.as_ref().map(|pass| Arc::new(proxy(level, pass, matches, reading)));
    Settings {
        returns: level.returns.clone(),
        proxy,
        root: level.root.clone().unwrap_or_else(|| literal_path(reading, "html")),
        index: level.index.clone().unwrap_or_else(|| vec![Template::literal("index.html")]),
        types: level.types.clone().unwrap_or_else(default_types),
        default_type: level.default_type.clone().unwrap_or_else(|| "text/plain".into()),
        error_pages: level.error_pages.clone().unwrap_or_default().into(),
        add_headers: level.add_headers.clone().unwrap_or_default().into(),
        gzip: Arc::new(gzip(level)),
        access_logs: access_logs(level).into(),
        error_logs: level.error_logs.clone().unwrap_or_default().into(),
        status_zone: level.status_zone.flatten(),
        server_tokens: level.server_tokens.clone().unwrap_or(ServerTokens::On),
        keepalive_timeout: level.keepalive_timeout.unwrap_or(Duration::from_secs(75)),
        keepalive_header: level.keepalive_header.filter(|header| !header.is_zero()),
        keepalive_requests: level.keepalive_requests.unwrap_or(1000),
        keepalive_time: level.keepalive_time.unwrap_or(HOUR),
        client_body_timeout: level.client_body_timeout.unwrap_or(MINUTE),
        send_timeout: level.send_timeout.unwrap_or(MINUTE),
        client_max_body_size: level.client_max_body_size.unwrap_or(1024 * 1024),
        client_body_buffer_size: level.client_body_buffer_size.unwrap_or(16 * 1024),
        client_body_temp_path: level
            .client_body_temp_path
            .clone()
            .unwrap_or_else(|| reading.default_temp_path("client_body_temp")),
        lingering_close: level.lingering_close.unwrap_or(LingeringClose::On),
        lingering_time: level.lingering_time.unwrap_or(Duration::from_secs(30)),
        lingering_timeout: level.lingering_timeout.unwrap_or(Duration::from_secs(5)),
        tcp_nodelay: level.tcp_nodelay.unwrap_or(true),
        expires: level.expires.clone().unwrap_or_default(),
        etag: level.etag.unwrap_or(true),
        if_modified_since: level.if_modified_since.unwrap_or_default(),
        max_ranges: level.max_ranges,
        slice: level.slice.map_or(0, |(size, _)| size),
        trusted_proxies: level.trusted_proxies.iter().flatten().map(|(network, _)| *network).collect(),
        api: rights::api(level, reading),
        purge_at: rights::purge_at(level, matches, reading),
    }
}

/// TLS of a server; `None` where it has no certificate.
pub fn tls(level: &Level, reading: &mut Reading<'_>) -> Option<Tls> {
    let certificates = level.ssl_certificates.as_deref().unwrap_or_default();
    let keys = level.ssl_certificate_keys.as_deref().unwrap_or_default();
    let (_, span) = *certificates.first()?;
    if let Some((path, span)) = certificates.get(keys.len()) {
        reading
            .error(
                *span,
                format!("no \"ssl_certificate_key\" is defined for certificate \"{}\"", path.display()),
            )
            .help("write ssl_certificate_key with the file of its key");
    }
    let protocols = level.ssl_protocols.clone().unwrap_or_else(|| vec![TlsVersion::Tls12, TlsVersion::Tls13]);
    let (ciphers, ciphers_span) = level.ssl_ciphers.clone().unwrap_or((Vec::new(), span));
    let only_tls13 = !ciphers.is_empty() && ciphers.iter().all(|name| !name.starts_with("TLS_ECDHE_"));
    if only_tls13 && !protocols.contains(&TlsVersion::Tls13) {
        reading
            .error(ciphers_span, "ssl_ciphers leaves no cipher suite for the versions in ssl_protocols")
            .help("write ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20; or add TLSv1.3 to ssl_protocols");
    }
    Some(Tls {
        certificates: certificates
            .iter()
            .zip(keys)
            .map(|((file, _), (key, _))| (file.clone(), key.clone()))
            .collect(),
        span,
        protocols,
        ciphers,
        prefer_server_ciphers: level.ssl_prefer_server_ciphers.unwrap_or(false),
        session_cache: level.ssl_session_cache.unwrap_or(0),
        session_timeout: level.ssl_session_timeout.unwrap_or(Duration::from_secs(300)),
    })
}

fn literal_path(reading: &Reading<'_>, name: &str) -> Template {
    Template::literal(&reading.path(name).to_string_lossy())
}

/// The media types that nginx has where no `types` block is written.
fn default_types() -> Arc<Types> {
    let pairs = [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
    let by_extension: HashMap<String, Arc<str>> =
        pairs.into_iter().map(|(extension, media_type)| (extension.to_owned(), media_type.into())).collect();
    Arc::new(Types { by_extension })
}

fn access_logs(level: &Level) -> Vec<AccessLog> {
    level.access_logs.clone().flatten().unwrap_or_default()
}

fn gzip(level: &Level) -> Gzip {
    let types = level.gzip_types.clone().unwrap_or_default();
    Gzip {
        enabled: level.gzip.unwrap_or(false),
        level: level.gzip_comp_level.unwrap_or(1),
        min_length: level.gzip_min_length.unwrap_or(20),
        types: types.types,
        any_type: types.any,
        vary: level.gzip_vary.unwrap_or(false),
        proxied: level.gzip_proxied.unwrap_or_default(),
        http_version: level.gzip_http_version.unwrap_or(GzipHttpVersion::Http11),
    }
}

fn proxy(level: &Level, draft: &PassDraft, matches: &LocationMatch, reading: &mut Reading<'_>) -> Proxy {
    check_uri(draft, matches, reading);
    Proxy {
        pass: draft.pass.clone(),
        http_version: level.proxy_http_version.unwrap_or(HttpVersion::Http11),
        set_headers: set_headers(level),
        hide_headers: hide_headers(level),
        ignore_headers: level.proxy_ignore_headers.unwrap_or_default(),
        redirects: redirects(level, draft, matches, reading),
        method: level.proxy_method.clone(),
        buffering: level.proxy_buffering.unwrap_or(true),
        request_buffering: level.proxy_request_buffering.unwrap_or(true),
        buffer_size: buffer_size(level),
        buffers: buffers(level),
        max_temp_file_size: level.proxy_max_temp_file_size.map_or(1024 * 1024 * 1024, |(size, _)| size),
        temp_path: level.proxy_temp_path.clone().unwrap_or_else(|| reading.default_temp_path("proxy_temp")),
        upgrade: level.proxy_upgrade.unwrap_or(false),
        connect_timeout: level.proxy_connect_timeout.unwrap_or(MINUTE),
        send_timeout: level.proxy_send_timeout.unwrap_or(MINUTE),
        read_timeout: level.proxy_read_timeout.unwrap_or(MINUTE),
        next_upstream: level.proxy_next_upstream.unwrap_or(NextUpstream {
            error: true,
            timeout: true,
            ..NextUpstream::default()
        }),
        next_upstream_tries: level.proxy_next_upstream_tries.unwrap_or(0),
        next_upstream_timeout: level.proxy_next_upstream_timeout.unwrap_or(Duration::ZERO),
        intercept_errors: level.proxy_intercept_errors.unwrap_or(false),
        ignore_client_abort: level.proxy_ignore_client_abort.unwrap_or(false),
        cache: cache::proxy_cache(level, reading),
        store: level.proxy_store.as_ref().map_or(Store::Off, |(store, _)| store.clone()),
        store_mode: level.proxy_store_access.unwrap_or(0o600),
        force_ranges: level.proxy_force_ranges.unwrap_or(false),
    }
}

fn buffer_size(level: &Level) -> usize {
    level.proxy_buffer_size.unwrap_or(4096)
}

fn buffers(level: &Level) -> (usize, usize) {
    level.proxy_buffers.unwrap_or((8, 4096))
}

fn check_uri(draft: &PassDraft, matches: &LocationMatch, reading: &mut Reading<'_>) {
    let kind = match matches {
        LocationMatch::Regex(_) => "a location with an expression",
        LocationMatch::Named(_) => "a named location",
        _ => return,
    };
    let Some(uri) = &draft.pass.uri else { return };
    let without = draft.url.as_deref().and_then(|url| url.strip_suffix(uri.as_str())).unwrap_or_default();
    reading.error(draft.span, format!("\"proxy_pass\" cannot have URI part in {kind}")).help(format!(
        "there is no prefix that it could replace; write proxy_pass {};",
        without.trim_end_matches(':')
    ));
}

/// nginx asks that a temporary file holds at least one buffer, or that there is none.
fn check_temp_file_size(level: &Level, reading: &mut Reading<'_>) {
    let Some((size, span)) = level.proxy_max_temp_file_size else { return };
    let least = buffer_size(level).max(buffers(level).1) as u64;
    if size != 0 && size < least {
        reading
            .error(span, "\"proxy_max_temp_file_size\" must be 0 or at least as large as one of the buffers")
            .help(format!("write 0 for no temporary files, or at least {least}"));
    }
}

fn set_headers(level: &Level) -> Vec<SetHeader> {
    let mut fields = level.proxy_set_headers.clone().unwrap_or_default();
    let host = Template {
        parts: [Part::Variable(Variable::Builtin(Builtin::ProxyHost))].into(),
        source: "$proxy_host".into(),
    };
    for (name, value) in [("Host", host), ("Connection", Template::literal(""))] {
        if !fields.iter().any(|field| field.name.eq_ignore_ascii_case(name)) {
            fields.push(SetHeader { name: name.to_owned(), value });
        }
    }
    fields
}

fn hide_headers(level: &Level) -> Vec<String> {
    let mut names: Vec<String> = HIDDEN_FIELDS.map(str::to_owned).into();
    for name in level.proxy_hide_headers.iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let passed = level.proxy_pass_headers.as_deref().unwrap_or_default();
    names.retain(|name| !passed.contains(name));
    names
}

fn redirects(
    level: &Level,
    draft: &PassDraft,
    matches: &LocationMatch,
    reading: &mut Reading<'_>,
) -> Vec<Redirect> {
    let Some(rules) = &level.proxy_redirects else {
        return default_redirect(draft, matches).into_iter().collect();
    };
    let mut redirects = Vec::new();
    for rule in rules {
        match rule {
            RedirectRule::Pair(redirect) => redirects.push(redirect.clone()),
            RedirectRule::Default(span) => {
                match default_redirect(draft, matches) {
                    Some(redirect) => redirects.push(redirect),
                    None => {
                        reading
                        .error(*span, "\"proxy_redirect default\" cannot be used with a \"proxy_pass\" with variables")
                        .help("write proxy_redirect off; or the prefix and what stands for it");
                    }
                }
            }
        }
    }
    redirects
}

/// The URL of the `proxy_pass` becomes the location's path, or its host is left out where it has no URI.
fn default_redirect(draft: &PassDraft, matches: &LocationMatch) -> Option<Redirect> {
    let url = draft.url.as_deref()?;
    let (from, to) = match (&draft.pass.uri, matches) {
        (Some(_), LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. }) => {
            (url.to_owned(), path.as_str())
        }
        _ => (format!("{url}/"), "/"),
    };
    Some(Redirect::Prefix { from: Template::literal(&from), to: Template::literal(to) })
}
