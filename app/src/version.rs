//! What `-v` and `-V` say. Scripts made for nginx look for its words in them.

use millstream_conf::features::{Apply, rows};
use millstream_server::variables::NGINX_VERSION;
use std::process::ExitCode;

/// `-v`: on standard error, as nginx.
pub fn short() -> ExitCode {
    eprintln!("millstream version: millstream/{}", env!("CARGO_PKG_VERSION"));
    ExitCode::SUCCESS
}

pub fn long() -> ExitCode {
    short();
    eprintln!("nginx version: nginx/{NGINX_VERSION} (behaviour claimed for the directives in the manual)");
    eprintln!("built with rustls; cipher and option names compatible with OpenSSL 3.0.0");
    eprintln!("TLS SNI support enabled");
    eprintln!("configure arguments: {}", modules().join(" "));
    ExitCode::SUCCESS
}

/// nginx's optional modules, each with a directive that only it has.
const ASKED_FOR: &[(&str, &str)] = &[
    ("http_ssl", "ssl_certificate"),
    ("http_v2", "http2_max_concurrent_streams"),
    ("http_realip", "set_real_ip_from"),
    ("http_addition", "add_after_body"),
    ("http_sub", "sub_filter"),
    ("http_dav", "dav_methods"),
    ("http_gunzip", "gunzip"),
    ("http_gzip_static", "gzip_static"),
    ("http_random_index", "random_index"),
    ("http_auth_request", "auth_request"),
    ("http_secure_link", "secure_link"),
    ("http_slice", "slice"),
    ("http_stub_status", "stub_status"),
];

/// nginx's default modules. `rewrite` is always present here.
const USUAL: &[(&str, &str)] = &[
    ("http_charset", "charset"),
    ("http_ssi", "ssi"),
    ("http_userid", "userid"),
    ("http_access", "allow"),
    ("http_auth_basic", "auth_basic"),
    ("http_mirror", "mirror"),
    ("http_autoindex", "autoindex"),
    ("http_geo", "geo"),
    ("http_map", "map"),
    ("http_split_clients", "split_clients"),
    ("http_referer", "valid_referers"),
    ("http_fastcgi", "fastcgi_pass"),
    ("http_uwsgi", "uwsgi_pass"),
    ("http_scgi", "scgi_pass"),
    ("http_grpc", "grpc_pass"),
    ("http_memcached", "memcached_pass"),
    ("http_limit_conn", "limit_conn"),
    ("http_limit_req", "limit_req"),
    ("http_empty_gif", "empty_gif"),
    ("http_browser", "ancient_browser"),
    ("http_upstream_hash", "hash"),
    ("http_upstream_ip_hash", "ip_hash"),
    ("http_upstream_least_conn", "least_conn"),
    ("http_upstream_random", "random"),
];

/// As nginx's configure arguments, by the directives that have an effect here.
fn modules() -> Vec<String> {
    let works = |name: &str| rows().any(|row| row.name == name && !matches!(row.apply, Apply::Idle(_)));
    let asked_for = ASKED_FOR.iter().filter(|(_, directive)| works(directive));
    let left_out = USUAL.iter().filter(|(_, directive)| !works(directive));
    let with = asked_for.map(|(module, _)| format!("--with-{module}_module"));
    with.chain(left_out.map(|(module, _)| format!("--without-{module}_module"))).collect()
}
