//! What becomes of a directive that nginx knows and Millstream does not.
//!
//! Each name of `nginx_names` that has no row of its own stands here once: what may be left out with `--lenient` without
//! changing who gets what, what works only together with another directive, and what is never left out, with the reason.
//! A name that is missing is never left out. Next: `block`, which tells of it.

use std::collections::HashSet;

use crate::tree::{Directive, Word};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// `--lenient` leaves it out; the text says what changes.
    LeftOut(&'static str),
    /// Works only together with one of these. Without any it does nothing in nginx either; otherwise those
    /// are reported.
    BelongsTo(&'static [&'static str]),
    /// It states the default.
    Default,
    /// Never left out; the text is the reason, as a sentence without a full stop.
    Kept(&'static str),
}

use Fate::{BelongsTo, Default, Kept, LeftOut};

const LOGS: &str = "this changes only logs";
const TUNING: &str = "this changes only performance and resources";

const CONTENT: &str = "it decides what clients receive";
const HANDLER: &str =
    "without it, the location would serve the files themselves, with any code and passwords in them";
const ACCESS: &str = "it decides who has access";
const ENCRYPTION: &str = "it decides how data is protected in transit";
const DROPPED: &str =
    "nginx 1.25.1 replaced it with the \"ssl\" parameter of listen, which you can write instead";
const CLIENT: &str = "it decides which client a request is attributed to";
const UPSTREAM: &str = "it decides what the upstream receives";
const CHOICE: &str = "it decides which server receives the request";
const VARIABLES: &str = "other directives depend on it";
const SERVICE: &str = "what it configures would not be served at all";

const SCRIPTS: &[&str] = &[
    "js_access",
    "js_body_filter",
    "js_content",
    "js_filter",
    "js_header_filter",
    "js_periodic",
    "js_set",
    "js_var",
];

/// Every name once; a trailing asterisk stands for those that begin so and are not listed.
const TABLE: &[(Fate, &str)] = &[
    (LeftOut(LOGS), "debug_connection session_log session_log_format session_log_zone mgmt"),
    (
        LeftOut(TUNING),
        "debug_points working_directory google_perftools_profiles gzip_no_buffer \
                       postpone_gzipping fastcgi_socket_rcvbuf fastcgi_socket_sndbuf grpc_socket_rcvbuf \
                       grpc_socket_sndbuf proxy_socket_rcvbuf proxy_socket_sndbuf scgi_socket_rcvbuf \
                       scgi_socket_sndbuf uwsgi_socket_rcvbuf uwsgi_socket_sndbuf",
    ),
    (BelongsTo(&["auth_jwt"]), "auth_jwt_*"),
    (
        BelongsTo(&["auth_oidc"]),
        "oidc_provider client_id client_secret client_secret_file config_url cookie_name \
                                 extra_auth_args frontchannel_logout_uri issuer logout_token_hint logout_uri pkce \
                                 post_logout_uri redirect_uri scope session_store session_timeout userinfo",
    ),
    (BelongsTo(&["fastcgi_pass"]), "fastcgi_*"),
    (BelongsTo(&["scgi_pass"]), "scgi_*"),
    (BelongsTo(&["uwsgi_pass"]), "uwsgi_*"),
    (BelongsTo(&["memcached_pass"]), "memcached_*"),
    (BelongsTo(&["tunnel_pass"]), "tunnel_*"),
    (BelongsTo(&["mp4"]), "mp4_*"),
    (BelongsTo(&["geoip_country", "geoip_city", "geoip_org"]), "geoip_proxy geoip_proxy_recursive"),
    (BelongsTo(&["image_filter"]), "image_filter_*"),
    (BelongsTo(&["perl", "perl_set"]), "perl_modules perl_require"),
    (BelongsTo(&["ssl_ocsp"]), "ssl_ocsp_cache ssl_ocsp_responder"),
    (
        BelongsTo(&["xslt_stylesheet", "xml_entities"]),
        "xml_external_entities xslt_last_modified xslt_param xslt_string_param xslt_types",
    ),
    (
        BelongsTo(SCRIPTS),
        "js_context_reuse js_engine js_fetch_* js_import js_include js_path js_preload_object \
                          js_shared_dict_zone",
    ),
    (
        BelongsTo(&["mail", "stream"]),
        "imap_auth imap_capabilities imap_client_buffer pop3_auth pop3_capabilities smtp_auth \
                                      smtp_capabilities smtp_client_buffer smtp_greeting_delay starttls xclient auth_http \
                                      auth_http_header auth_http_pass_client_cert auth_http_timeout protocol \
                                      preread_buffer_size preread_timeout proxy_download_rate proxy_upload_rate \
                                      proxy_protocol_timeout proxy_requests proxy_responses \
                                      proxy_session_drop proxy_timeout pass js_preread ssl_alpn ssl_handshake_timeout \
                                      ssl_name ssl_preread zone_sync zone_sync_*",
    ),
    (BelongsTo(&["f4f"]), "f4f_buffer_size"),
    (BelongsTo(&["hls"]), "hls_*"),
    (BelongsTo(&["keyval"]), "keyval_zone"),
    (
        BelongsTo(&["mgmt"]),
        "connect_timeout deployment_context enforce_initial_report license_token proxy proxy_password \
                            proxy_username read_timeout usage_report uuid_file",
    ),
    (BelongsTo(&["health_check"]), "health_check_timeout"),
    (
        Kept(CONTENT),
        "flv mp4 f4f hls image_filter xml_entities xslt_stylesheet js_body_filter js_filter \
                     js_header_filter js_periodic internal_redirect degradation degrade",
    ),
    (
        Kept(HANDLER),
        "js_content memcached_pass perl tunnel_pass status \
                     status_format upstream_conf",
    ),
    (Kept(ACCESS), "auth_jwt auth_oidc js_access proxy_allow_upstream grpc_allow_upstream ssl_ocsp"),
    (Kept(DROPPED), "ssl"),
    (Kept(ENCRYPTION), "ssl_ech_file ssl_engine proxy_ssl_alpn"),
    (Kept(CLIENT), "proxy_protocol_tlv"),
    (Kept(UPSTREAM), "proxy_request_dynamic grpc_request_dynamic"),
    (Kept(CHOICE), "ntlm sticky_cookie_insert"),
    (Kept(VARIABLES), "geoip_city geoip_country geoip_org js_set js_var keyval num_map perl_set"),
    (Kept(SERVICE), "mail stream"),
];

/// Words that state the default, so that nothing is lost without the directive.
const DEFAULTS: &[(&str, &str)] =
    &[("auth_jwt", "off"), ("image_filter", "off"), ("ssl", "off"), ("ssl_ocsp", "off")];

pub fn fate(name: &str, args: &[Word]) -> Fate {
    if let [word] = args
        && DEFAULTS.iter().any(|(known, value)| *known == name && *value == word.text)
    {
        return Default;
    }
    let named = |entries: &str| entries.split_whitespace().any(|known| known == name);
    let begins = |entries: &str| {
        let mut families = entries.split_whitespace().filter_map(|known| known.strip_suffix('*'));
        families.any(|family| name.starts_with(family))
    };
    let exact = TABLE.iter().find(|(_, entries)| named(entries));
    let found = exact.or_else(|| TABLE.iter().find(|(_, entries)| begins(entries)));
    found.map_or(Kept(CONTENT), |(fate, _)| *fate)
}

/// Only for parameters that nginx alone knows; they are never left out.
pub fn listen_parameter(name: &str) -> Option<Fate> {
    Some(match name {
        "spdy" => LeftOut("clients use HTTP/1.1"),
        "setfib" | "accept_filter" => LeftOut(TUNING),
        _ => return None,
    })
}

pub fn written(tree: &[Directive]) -> HashSet<Box<str>> {
    let mut names = HashSet::new();
    collect(tree, &mut names);
    names
}

fn collect(tree: &[Directive], names: &mut HashSet<Box<str>>) {
    for directive in tree {
        names.insert(directive.name.text.as_str().into());
        // Blocks in blocks are bounded by the parser.
        collect(directive.block.as_deref().unwrap_or_default(), names);
    }
}
