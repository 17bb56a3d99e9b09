//! `serve URL`: flags become the text of an nginx.conf, and that text is what runs.
//!
//! So `--print-config` cannot say anything else than what is done.

mod upstream;
pub mod domain;
pub mod given;
pub mod api;
pub mod greeting;

#[cfg(test)]
mod tests;

use crate::check;
use crate::cli::{ClientAddress, PurgeBy, ServeUrl};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::{Loaded, load_text};
use millstream_net::{clock, listener};
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use upstream::Upstream;

/// What the system takes as the path of a socket (108 bytes), with some to spare.
const LONGEST_SOCKET_PATH: usize = 100;

/// Seconds after which a socket that nobody listens on counts as left behind.
const YOUNG: i64 = 60;

/// Where the dashboard is where nobody says.
const DASHBOARD_PORT: u16 = 8081;

/// The address of clients whose own the API is not told: nobody's (RFC 7600), so that no list of addresses in the API has it. Without
/// one, an API would take the connection's for the client's: that of this machine.
const NO_ADDRESS: &str = "192.0.0.8";

/// The configuration that the flags mean.
pub fn configuration(serve: &ServeUrl, urls: &[String], socket: Option<&Path>) -> Result<Loaded, String> {
    let mut text = text(serve, urls)?;
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

/// The control sockets of each `serve` of this user that runs, in the order of their names; for root, of every user's
/// behind its own.
pub fn running_sockets() -> Vec<PathBuf> {
    let own = socket_directory(false).ok();
    let others = if rustix::process::geteuid().is_root() { directories_of_others() } else { Vec::new() };
    let mut running = Vec::new();
    for directory in own.into_iter().chain(others) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        // One that was killed leaves its socket behind, at which nobody listens.
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| UnixStream::connect(path).is_ok()).collect();
        found.sort();
        found.retain(|path| !running.contains(path));
        running.append(&mut found);
    }
    running
}

/// Directories of control sockets that belong to other users than root: in the users' own runtime directories, and in that for
/// temporary files. One that is not its user's alone is nobody's.
fn directories_of_others() -> Vec<PathBuf> {
    let inside = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let of_sessions = inside(Path::new("/run/user")).into_iter().map(|user| user.join("millstream"));
    let is_named_so = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("millstream-"))
    };
    let temporary = inside(&std::env::temp_dir()).into_iter().filter(is_named_so);
    let mut found: Vec<PathBuf> = of_sessions
        .chain(temporary)
        .filter(|path| {
            std::fs::symlink_metadata(path)
                .is_ok_and(|found| found.is_dir() && found.uid() != 0 && found.mode() & 0o077 == 0)
        })
        .collect();
    found.sort();
    found
}

/// The name of the control socket of a `serve` on a port.
pub fn socket_name(port: u16) -> String {
    format!("serve-{port}.sock")
}

/// Whether a name is that of the control socket of a `serve` on a port.
pub fn is_socket_of(name: &str, port: u16) -> bool {
    within_socket_name(name).is_some_and(|rest| rest.split('-').next() == Some(&*port.to_string()))
}

/// What tells the control sockets of `serve`s apart; none in other names.
fn within_socket_name(name: &str) -> Option<&str> {
    name.strip_prefix("serve-")?.strip_suffix(".sock")
}

/// The control socket of this process; its directory is made.
///
/// # Errors
/// Why there can be none; then `serve` runs without.
pub fn own_socket(serve: &ServeUrl) -> Result<PathBuf, String> {
    let directory = socket_directory(true)?;
    remove_dead(&directory);
    let port = address_of(serve).rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let id = std::process::id();
    let path = match port.filter(|&port| port != 0) {
        Some(port) => match handed_over(&directory, port) {
            Some(path) => path,
            None => {
                let plain = directory.join(socket_name(port));
                // Another process may serve this port at another address.
                let is_taken = UnixStream::connect(&plain).is_ok();
                if is_taken { directory.join(format!("serve-{port}-{id}.sock")) } else { plain }
            }
        },
        None => directory.join(format!("serve-pid-{id}.sock")),
    };
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET_PATH {
        return Err(format!("the path {} is too long for a socket", path.display()));
    }
    Ok(path)
}

/// Removes sockets that killed processes have left in a directory of this user's. One that is young may be bound and not listened on yet.
fn remove_dead(directory: &Path) {
    let now = clock::wall().seconds;
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_named_so = name.to_str().and_then(within_socket_name).is_some();
        let is_old = |found: std::fs::Metadata| {
            found.file_type().is_socket() && found.mtime() < now.saturating_sub(YOUNG)
        };
        if is_named_so
            && entry.metadata().is_ok_and(is_old)
            && UnixStream::connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        {
            _ = std::fs::remove_file(path);
        }
    }
}

/// The control socket of a port that the process before has handed over.
fn handed_over(directory: &Path, port: u16) -> Option<PathBuf> {
    let sockets = std::env::var(listener::ENVIRONMENT).ok()?;
    let paths = sockets.split(';').filter_map(|socket| socket.split_once(":unix:"));
    let mut own = paths.map(|(_, path)| PathBuf::from(path)).filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        path.parent() == Some(directory) && name.is_some_and(|name| is_socket_of(&name, port))
    });
    own.next()
}

/// Why no `serve` of this user can have a control socket; nothing where one can.
pub fn why_no_sockets() -> Option<String> {
    std::fs::symlink_metadata(socket_directory_path()).ok().and_then(|_| socket_directory(false).err())
}

fn socket_directory_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if Path::new(&runtime).is_absolute() => PathBuf::from(runtime).join("millstream"),
        _ => std::env::temp_dir().join(format!("millstream-{}", rustix::process::geteuid().as_raw())),
    }
}

/// Where the control sockets of `serve` are: a directory that nobody else can enter.
///
/// # Errors
/// Why there is none.
fn socket_directory(make: bool) -> Result<PathBuf, String> {
    let (user, directory) = (rustix::process::geteuid(), socket_directory_path());
    if make {
        // Where it is there already, what follows says whether it may be used.
        _ = std::fs::DirBuilder::new().mode(0o700).create(&directory);
    }
    // In a directory that everybody may write to, somebody else may have made it first.
    let shown = directory.display();
    let found = std::fs::symlink_metadata(&directory).map_err(|error| format!("{shown}: {error}"))?;
    if !found.is_dir() {
        return Err(format!("{shown} is not a directory"));
    }
    if found.uid() != user.as_raw() {
        return Err(format!("{shown} belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(format!("{shown} is open to other users"));
    }
    plain(&directory.to_string_lossy()).map_err(|error| format!("{shown}: {error}"))?;
    Ok(directory)
}

/// `--print-config`.
pub fn print(serve: &ServeUrl) -> ExitCode {
    let urls =
        if serve.urls.is_empty() { vec!["http://127.0.0.1:8000".to_owned()] } else { serve.urls.clone() };
    let text = match text(serve, &urls) {
        Ok(text) => text,
        Err(message) => {
            eprintln!("millstream: [emerg] {message}");
            return ExitCode::FAILURE;
        }
    };
    let loaded = load_text("serve", &text, Path::new("/"));
    print_text(&text);
    match refusal(serve, &loaded) {
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

/// What is wrong with the values of the options, each by the option's name; `None` where the text was taken.
pub fn refusal(serve: &ServeUrl, loaded: &Loaded) -> Option<String> {
    if loaded.configuration.is_some() {
        return None;
    }
    let sorted = loaded.diagnostics.sorted();
    let errors = sorted.iter().filter(|finding| finding.severity == Severity::Error);
    let mut told: Vec<String> = Vec::new();
    for finding in errors {
        let line = finding.span.map(|span| String::from_utf8_lossy(loaded.sources.line(span)));
        let option = line.and_then(|line| given::behind(serve, &line)).map(|option| format!("{option}: "));
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

/// The text of the nginx.conf.
fn text(serve: &ServeUrl, urls: &[String]) -> Result<String, String> {
    for option in given::options(serve) {
        plain(option.value).map_err(|why| format!("{}: {why}", option.name))?;
    }
    let upstream = Upstream::read(urls, &serve.upstream)?;
    let mut out = String::new();
    if let Some(user) = &serve.user {
        _ = writeln!(out, "user {user};");
    }
    let log = match &serve.access_log {
        Some(path) => {
            let path = std::path::absolute(path).map_err(|error| format!("--access-log: {error}"))?;
            let path = path.to_string_lossy();
            let path = plain(&path).map_err(|why| format!("--access-log: {why}"))?;
            format!("\"{path}\" combined buffer=64k flush=1s")
        }
        None => "off".to_owned(),
    };
    _ = write!(
        out,
        "worker_processes {};\nerror_log stderr {told};\ndaemon off;\n\
         events {{ worker_connections {}; }}\nhttp {{\n    access_log {log};\n    keepalive_timeout 65;\n    max_ranges 16;\n{rights}{dashboard}{bounds}\n    \
         gzip on;\n    gzip_vary on;\n    gzip_proxied any;\n    gzip_comp_level 2;\n    gzip_min_length 256;\n    \
         gzip_types text/plain text/css text/xml text/javascript application/json application/javascript \
         application/xml application/rss+xml image/svg+xml;\n\n    \
         proxy_cache_path memory keys_zone=serve:32m memory={};\n\n{host_map}    upstream api {{\n",
        serve.workers,
        serve.connections,
        serve.memory,
        // What becomes of a certificate is worth a line.
        told = if serve.domains.is_given() { "notice" } else { "warn" },
        host_map = upstream.host_map(),
        rights = rights(serve)?,
        bounds = bounds(serve),
        dashboard = dashboard(serve, urls),
    );
    for server in &upstream.servers {
        _ = writeln!(out, "        server {server} fail_timeout=1s;");
    }
    _ = write!(
        out,
        "        keepalive auto;\n    }}\n{around}\n    server {{\n{of_server}        location / {{\n\
         {pass}{forwarded}\n            proxy_cache serve;\n            \
         proxy_cache_key \"{client}$request_uri\";\n            \
         proxy_cache_lock on;\n            proxy_cache_fill_timeout 5s;\n\n",
        around = domain::around(serve)?,
        of_server = match serve.domains.is_given() {
            true => domain::of_server(&serve.domains),
            false => format!("        listen {};\n", listen_of(&serve.listen)),
        },
        pass = upstream.pass(!serve.trust_proxy.is_empty()),
        forwarded = forwarded(serve),
        client = if serve.trust_proxy.is_empty() {
            "$scheme$http_host"
        } else {
            // The API makes its links of them, so each has an answer of its own.
            "$forwarded_proto$forwarded_host$http_host"
        },
    );
    out += &sharing(serve);
    out += "            add_header X-Cache-Status $upstream_cache_status always;\n        }\n    }\n}\n";
    Ok(out)
}

/// Where the dashboard is. By default that is no reason not to start, and it is in nobody's way: neither where the API is, be it
/// started later, nor where clients come in.
fn dashboard(serve: &ServeUrl, urls: &[String]) -> String {
    let of_port = |address: &str| {
        let digits = address.trim_end_matches('/').rsplit(':').next();
        digits.and_then(|digits| digits.parse().ok()) == Some(DASHBOARD_PORT)
    };
    // Who is named may look beside this machine, whose rights would end with the first of these lines otherwise.
    let mut rights = String::new();
    if !serve.dashboard_allow.is_empty() || serve.dashboard_token.is_some() {
        let others: String = serve.dashboard_allow.iter().map(|other| format!(" {other}")).collect();
        rights = format!("    api_allow 127.0.0.1 ::1 unix:{others};\n");
    }
    rights.extend(serve.dashboard_token.iter().map(|token| format!("    api_token {token};\n")));
    match &serve.dashboard {
        Some(address) => format!("    dashboard {address};\n{rights}"),
        None if of_port(&address_of(serve)) || urls.iter().any(|url| of_port(url)) => String::new(),
        None => format!("    dashboard 127.0.0.1:{DASHBOARD_PORT} optional;\n{rights}"),
    }
}

/// How large and how slow everything may be.
fn bounds(serve: &ServeUrl) -> String {
    let ServeUrl { max_body, max_head, client_timeout, connect_timeout, read_timeout, send_timeout, .. } =
        serve;
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

/// What the API is told of the client: what the connection says, or a trusted proxy in front.
fn forwarded(serve: &ServeUrl) -> String {
    let trusted = serve.trust_proxy.join(" ");
    let is_hidden = serve.client_address == ClientAddress::Hide;
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

/// Who may purge over HTTP, and by the dashboard. Without a word nobody may: a proxy on this machine makes strangers look local.
fn rights(serve: &ServeUrl) -> Result<String, String> {
    Ok(match &serve.purge {
        PurgeBy::Off => String::new(),
        PurgeBy::Local => "    proxy_cache_purge_allow local;\n    api_allow local;\n".to_owned(),
        PurgeBy::Token(file) => {
            let error = |why: &dyn std::fmt::Display| format!("--purge token={}: {why}", file.display());
            let text = std::fs::read_to_string(file).map_err(|found| error(&found))?;
            let token =
                plain(text.trim()).map_err(|_| error(&"the file must contain a single word, the token"))?;
            format!("    proxy_cache_purge_token {token};\n")
        }
    })
}

/// What may be shared of an API that nobody described, what is stored of it, and how stale it may be.
fn sharing(serve: &ServeUrl) -> String {
    let mut lines = vec![
        "proxy_cache_credentials public".to_owned(),
        // Whoever adds fields in front of the API has it answer by them.
        match serve.microcache.is_some() || !serve.trust_proxy.is_empty() {
            true => "proxy_cache_vary origin unlisted address".to_owned(),
            false => "proxy_cache_vary origin address".to_owned(),
        },
        "proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504".to_owned(),
        "proxy_cache_background_update on".to_owned(),
        format!("proxy_cache_stale_while_updating 100% max={}", serve.stale),
        format!("proxy_cache_stale_if_error {}", serve.stale_if_error),
        "proxy_cache_invalidation rate=1r/s".to_owned(),
    ];
    if !serve.ignore_args.is_empty() {
        lines.push(format!("proxy_cache_ignore_args {}", serve.ignore_args.join(" ")));
    }
    lines.extend(serve.microcache.as_ref().map(|time| format!("proxy_cache_valid 200 301 302 404 {time}")));
    lines.iter().map(|line| format!("            {line};\n")).collect()
}

/// Where clients come in.
fn address_of(serve: &ServeUrl) -> String {
    if serve.domains.is_given() { domain::address(&serve.domains) } else { listen_of(&serve.listen) }
}

/// The address of `--listen`: a port alone is one of this machine only, an address alone gets the usual port.
fn listen_of(listen: &str) -> String {
    if listen.parse::<u16>().is_ok() {
        return format!("127.0.0.1:{listen}");
    }
    if listen.parse::<std::net::Ipv4Addr>().is_ok() || listen.starts_with('[') && listen.ends_with(']') {
        return format!("{listen}:8080");
    }
    listen.to_owned()
}

/// A value that goes into the text as one word.
fn plain(value: &str) -> Result<&str, String> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || "\"'\\;{}$#".contains(c);
    match value.chars().find(|&c| bad(c)) {
        Some(found) => Err(format!("\"{value}\": {found:?} cannot stand there")),
        None if value.is_empty() => Err("an empty value was given".to_owned()),
        None => Ok(value),
    }
}
