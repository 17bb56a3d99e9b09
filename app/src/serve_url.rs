//! `serve URL`: flags become the text of an nginx.conf, and that text is what runs.
//!
//! So `--print-config` cannot say anything else than what is done.

mod upstream;
pub mod sockets;
pub mod domain;
pub mod given;
pub mod api;
pub mod greeting;

#[cfg(test)]
mod tests;

use crate::check;
use crate::cli::{Caching, ClientAddress, Front, PurgeBy, ServeUrl};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::{Loaded, load_text};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use upstream::Upstream;

const DASHBOARD_PORT: u16 = 8081;
const NO_DASHBOARD: &str = "    dashboard off;\n";

/// The client address that the API sees with `--client-address hide`: nobody's (RFC 7600), so no list in the
/// API has it. Without one, an API would take this machine's address for the client's.
const NO_ADDRESS: &str = "192.0.0.8";

/// `caching`: `None` passes everything on and observes it.
pub fn configuration(
    front: &Front,
    caching: Option<&Caching>,
    urls: &[String],
    socket: Option<&Path>,
) -> Result<Loaded, String> {
    let mut text = text(front, caching, urls)?;
    // It is no part of what --print-config prints: there a pid file says where the socket is.
    if let Some(socket) = socket {
        _ = writeln!(text, "control_socket {};", socket.display());
    }
    let mut loaded = load_text("serve", &text, Path::new("/"));
    if let Some(configuration) = &mut loaded.configuration {
        // It runs in the foreground of a terminal: nobody signals it by a file.
        configuration.main.pid = PathBuf::new();
    }
    Ok(loaded)
}

pub fn print(serve: &ServeUrl) -> ExitCode {
    let (front, caching) = (&serve.front, Some(&serve.caching));
    let urls =
        if front.urls.is_empty() { vec!["http://127.0.0.1:8000".to_owned()] } else { front.urls.clone() };
    let text = match text(front, caching, &urls) {
        Ok(text) => text,
        Err(message) => {
            eprintln!("millstream: [emerg] {message}");
            return ExitCode::FAILURE;
        }
    };
    let loaded = load_text("serve", &text, Path::new("/"));
    print_text(&text);
    match refusal(front, caching, &loaded) {
        None => {
            check::report(&loaded, Severity::Warning);
            ExitCode::SUCCESS
        }
        Some(message) => {
            eprintln!("millstream: [emerg] {message}");
            ExitCode::FAILURE
        }
    }
}

/// What is wrong with the options' values, by option; `None` if the text loaded.
pub fn refusal(front: &Front, caching: Option<&Caching>, loaded: &Loaded) -> Option<String> {
    if loaded.configuration.is_some() {
        return None;
    }
    let sorted = loaded.diagnostics.sorted();
    let errors = sorted.iter().filter(|finding| finding.severity == Severity::Error);
    let mut told: Vec<String> = Vec::new();
    for finding in errors {
        let line = finding.span.map(|span| String::from_utf8_lossy(loaded.sources.line(span)));
        let option =
            line.and_then(|line| given::behind(front, caching, &line)).map(|option| format!("{option}: "));
        let help = finding.help.as_ref().map(|help| {
            // The directives that a user of the options writes as options.
            let help =
                help.replace("api_allow", "--dashboard-allow").replace("api_token", "--dashboard-token");
            format!("; {help}")
        });
        let text = format!("{}{}{}", option.unwrap_or_default(), finding.message, help.unwrap_or_default());
        // An option may stand in several places.
        if !told.contains(&text) {
            told.push(text);
        }
    }
    Some(told.join("\nmillstream: [emerg] "))
}

fn print_text(text: &str) {
    use std::io::Write;
    // A closed pipe on standard output is the reader's wish.
    _ = std::io::stdout().write_all(text.as_bytes());
}

fn text(front: &Front, caching: Option<&Caching>, urls: &[String]) -> Result<String, String> {
    let frame = Frame::of(front, caching, urls)?;
    let mut out = frame.http + &frame.server;
    _ = write!(out, "        location / {{\n{}", frame.pass);
    match caching {
        Some(caching) => out += &stored(front, caching),
        None => out += "            shadow on;\n",
    }
    Ok(out + "        }\n    }\n}\n")
}

/// What is around the settings of a cache in the text.
pub struct Frame {
    /// Up to the server.
    pub http: String,
    /// The server up to its first location.
    pub server: String,
    /// The lines that pass a location's requests to the API.
    pub pass: String,
}

impl Frame {
    /// Fails for options whose values cannot stand in a configuration, or contradict each other.
    pub fn of(front: &Front, caching: Option<&Caching>, urls: &[String]) -> Result<Frame, String> {
        for option in given::options(front, caching) {
            plain(option.value).map_err(|why| format!("{}: {why}", option.name))?;
        }
        let upstream = Upstream::read(urls, &front.upstream)?;
        let mut out = String::new();
        if let Some(user) = &front.user {
            _ = writeln!(out, "user {user};");
        }
        let log = match &front.access_log {
            Some(path) => {
                let path = std::path::absolute(path).map_err(|error| format!("--access-log: {error}"))?;
                let path = path.to_string_lossy();
                let path = plain(&path).map_err(|why| format!("--access-log: {why}"))?;
                format!("\"{path}\" combined buffer=64k flush=1s")
            }
            None => "off".to_owned(),
        };
        let dashboard = dashboard(front, urls);
        let rights = match caching {
            Some(caching) => rights(caching, !matches!(&*dashboard, "" | NO_DASHBOARD))?,
            None => String::new(),
        };
        let zone = caching.map_or(Ok(String::new()), zone)?;
        _ = write!(
            out,
            "worker_processes {};\nerror_log stderr {told};\ndaemon off;\n\
             events {{ worker_connections {}; }}\nhttp {{\n    access_log {log};\n    keepalive_timeout 65;\n    max_ranges 16;\n{rights}{dashboard}{bounds}\n    \
             gzip on;\n    gzip_vary on;\n    gzip_proxied any;\n    gzip_comp_level 2;\n    gzip_min_length 256;\n    \
             gzip_types text/plain text/css text/xml text/javascript application/json application/javascript \
             application/xml application/rss+xml image/svg+xml;\n\n{zone}{host_map}    upstream api {{\n",
            front.workers,
            front.connections,
            // What becomes of a certificate is worth a line.
            told = if front.domains.is_given() { "notice" } else { "warn" },
            host_map = upstream.host_map(),
            bounds = bounds(front),
        );
        for server in &upstream.servers {
            _ = writeln!(out, "        server {server} fail_timeout=1s;");
        }
        _ = write!(out, "        keepalive auto;\n    }}\n{}\n", domain::around(front)?);
        let of_server = match front.domains.is_given() {
            true => domain::of_server(&front.domains),
            false => format!("        listen {};\n", listen_of(&front.listen)),
        };
        let server = format!("    server {{\n{of_server}");
        let pass = upstream.pass(!front.trust_proxy.is_empty()) + &forwarded(front);
        Ok(Frame { http: out, server, pass })
    }
}

/// The cache, and the cluster that it takes part in.
fn zone(caching: &Caching) -> Result<String, String> {
    let (mut cluster, mut name) = (String::new(), "");
    if let (Some(url), Some(secret)) = (&caching.cluster, &caching.cluster_secret) {
        let error = |why: &dyn std::fmt::Display| format!("--cluster-secret: {why}");
        let secret = std::path::absolute(secret).map_err(|found| error(&found))?;
        let secret = secret.to_string_lossy();
        let secret = plain(&secret).map_err(|why| error(&why))?;
        cluster = format!("    cluster serve {{\n        server {url};\n        secret {secret};\n    }}\n");
        name = " cluster=serve";
    }
    let memory = &caching.memory;
    Ok(format!("{cluster}    proxy_cache_path memory keys_zone=serve:32m memory={memory}{name};\n\n"))
}

/// How responses are stored, and to whom they are served.
fn stored(front: &Front, caching: &Caching) -> String {
    let client = match front.trust_proxy.is_empty() {
        true => "$scheme$http_host",
        // The API makes its links of them, so each has an answer of its own.
        false => "$forwarded_proto$forwarded_host$http_host",
    };
    format!(
        "\n            proxy_cache serve;\n            proxy_cache_key \"{client}$request_uri\";\n            \
         proxy_cache_lock on;\n            proxy_cache_fill_timeout 5s;\n\n{}            \
         add_header X-Cache-Status $upstream_cache_status always;\n",
        sharing(front, caching)
    )
}

/// By default the dashboard never prevents the start, and avoids the ports of the API and of clients.
fn dashboard(front: &Front, urls: &[String]) -> String {
    let of_port = |address: &str| {
        let digits = address.trim_end_matches('/').rsplit(':').next();
        digits.and_then(|digits| digits.parse().ok()) == Some(DASHBOARD_PORT)
    };
    // With a token, this machine needs it too: a proxy on it makes strangers look local.
    let mut rights: String =
        front.dashboard_token.iter().map(|token| format!("    api_token {token};\n")).collect();
    if !front.dashboard_allow.is_empty() {
        // Who is named may look beside this machine, whose rights would end with the first of these lines otherwise.
        let others = front.dashboard_allow.join(" ");
        rights += &format!("    api_allow 127.0.0.1 ::1 unix: {others};\n");
    }
    match &front.dashboard {
        Some(off) if off == "off" => NO_DASHBOARD.to_owned(),
        Some(address) => format!("    dashboard {address};\n{rights}"),
        None if of_port(&address_of(front)) || urls.iter().any(|url| of_port(url)) => String::new(),
        None => format!("    dashboard 127.0.0.1:{DASHBOARD_PORT} optional;\n{rights}"),
    }
}

fn bounds(front: &Front) -> String {
    let Front { max_body, max_head, client_timeout, connect_timeout, read_timeout, send_timeout, .. } = front;
    let directives = [
        format!("client_max_body_size {max_body}"),
        format!("large_client_header_buffers 1 {max_head}"),
        format!("client_header_timeout {client_timeout}"),
        format!("client_body_timeout {client_timeout}"),
        format!("send_timeout {client_timeout}"),
        // RFC 9110 §13.1.3: nginx's own default compares for equality.
        "if_modified_since before".to_owned(),
        format!("proxy_buffer_size {max_head}"),
        format!("proxy_connect_timeout {connect_timeout}"),
        format!("proxy_read_timeout {read_timeout}"),
        format!("proxy_send_timeout {send_timeout}"),
    ];
    directives.map(|directive| format!("    {directive};\n")).concat()
}

/// What the API learns about the client, from the connection or from a trusted proxy.
fn forwarded(front: &Front) -> String {
    let trusted = front.trust_proxy.join(" ");
    let is_hidden = front.client_address == ClientAddress::Hide;
    let (address, chain) = match trusted.is_empty() {
        _ if is_hidden => (NO_ADDRESS, NO_ADDRESS),
        true => ("$remote_addr", "$remote_addr"),
        false => ("$forwarded_addr", "$forwarded_for"),
    };
    let mut fields = vec![("X-Real-IP", address), ("X-Forwarded-For", chain)];
    match trusted.is_empty() {
        true => fields.push(("X-Forwarded-Proto", "$scheme")),
        false => fields
            .extend([("X-Forwarded-Proto", "$forwarded_proto"), ("X-Forwarded-Host", "$forwarded_host")]),
    }
    let mut lines = Vec::new();
    lines.extend((!trusted.is_empty()).then(|| format!("trusted_proxy {trusted}")));
    lines.extend(is_hidden.then(|| "proxy_pass_client_address off".to_owned()));
    lines.extend(fields.iter().map(|(name, value)| format!("proxy_set_header {name} {value}")));
    lines.iter().map(|line| format!("            {line};\n")).collect()
}

/// Who may purge over HTTP and by the dashboard. By default no one: behind a proxy on this machine every
/// client looks local.
fn rights(caching: &Caching, has_dashboard: bool) -> Result<String, String> {
    Ok(match &caching.purge {
        PurgeBy::Off => String::new(),
        PurgeBy::Local => {
            let of_api = if has_dashboard { "    api_allow local;\n" } else { "" };
            format!("    proxy_cache_purge_allow local;\n{of_api}")
        }
        PurgeBy::Token(file) => {
            let error = |why: &dyn std::fmt::Display| format!("--purge token={}: {why}", file.display());
            let text = std::fs::read_to_string(file).map_err(|found| error(&found))?;
            let token =
                plain(text.trim()).map_err(|_| error(&"the file must contain a single word, the token"))?;
            format!("    proxy_cache_purge_token {token};\n")
        }
    })
}

/// What of an unknown API may be shared, what is stored, and how stale it may be.
fn sharing(front: &Front, caching: &Caching) -> String {
    let mut lines = vec![
        "proxy_cache_credentials public".to_owned(),
        // Whoever adds fields in front of the API has it answer by them.
        match caching.microcache.is_some() || !front.trust_proxy.is_empty() {
            true => "proxy_cache_vary origin unlisted address".to_owned(),
            false => "proxy_cache_vary origin address".to_owned(),
        },
        "proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504".to_owned(),
        "proxy_cache_background_update on".to_owned(),
        format!("proxy_cache_stale_while_updating 100% max={}", caching.stale),
        format!("proxy_cache_stale_if_error {}", caching.stale_if_error),
        "proxy_cache_invalidation rate=1r/s".to_owned(),
    ];
    if !caching.ignore_args.is_empty() {
        lines.push(format!("proxy_cache_ignore_args {}", caching.ignore_args.join(" ")));
    }
    lines.extend(caching.microcache.as_ref().map(|time| format!("proxy_cache_valid 200 301 302 404 {time}")));
    lines.iter().map(|line| format!("            {line};\n")).collect()
}

pub fn address_of(front: &Front) -> String {
    if front.domains.is_given() { domain::address(&front.domains) } else { listen_of(&front.listen) }
}

/// A port alone listens on loopback only, an address alone gets the default port.
fn listen_of(listen: &str) -> String {
    if listen.parse::<u16>().is_ok() {
        return format!("127.0.0.1:{listen}");
    }
    if listen.parse::<std::net::Ipv4Addr>().is_ok() || listen.starts_with('[') && listen.ends_with(']') {
        return format!("{listen}:8080");
    }
    listen.to_owned()
}

fn plain(value: &str) -> Result<&str, String> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || "\"'\\;{}$#".contains(c);
    match value.chars().find(|&c| bad(c)) {
        Some(found) => Err(format!("\"{value}\": {found:?} is not allowed")),
        None if value.is_empty() => Err("the value is empty".to_owned()),
        None => Ok(value),
    }
}
