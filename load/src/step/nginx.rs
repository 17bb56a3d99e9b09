//! The complete nginx.conf of a step, for Millstream and for nginx: what runs is what `--print` shows.
//!
//! Paths are relative to the prefix (`-p`). The two dialects differ in a few lines, each where nginx, or an older one, has no such word;
//! the steps themselves differ in what [`super::STEPS`] says and in nothing else. Pure: no file is written here.

use super::{Cache, Features, Log, Step, StepSetting};
use std::fmt::Write;

/// The file with a line for each request that reached the API.
pub const REACHED: &str = "reached.log";
/// The certificate's file, in the prefix; for whoever wants both in one file, it holds the key as well.
pub const CERTIFICATE: &str = "certificate.pem";
/// Its key's.
pub const KEY: &str = "key.pem";
/// The pid file, which appears once every listener is open.
pub const PID: &str = "ladder.pid";

/// Whose nginx.conf it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Ours.
    Millstream,
    /// nginx's own, from 1.18 on.
    Nginx,
}

/// Connections of the proxy to the API that each worker keeps.
const POOL: u32 = 64;

/// What is worth compressing besides text/html.
const TYPES: &str =
    "text/plain text/css text/xml text/javascript application/json application/javascript application/xml";

/// The text of a step; `None` where there is no proxy.
pub fn text(step: Step, dialect: Dialect, setting: &StepSetting<'_>) -> Option<String> {
    let features = step.features()?;
    let entry = step.entry();
    let mut out = String::new();
    // Writing to a String cannot fail.
    _ = write!(out, "# The ladder's step \"{}\": {}\n# {}\n", entry.name, entry.title, entry.what);
    if features.cache.is_some_and(|cache| cache.in_memory) && dialect == Dialect::Nginx {
        out += "# The prefix (-p) is to be on tmpfs: nginx holds answers in files.\n";
    }
    _ = write!(
        out,
        "worker_processes {};\ndaemon off;\npid {PID};\nerror_log error.log warn;\n\nevents {{\n    \
         worker_connections 10000;\n}}\n\nhttp {{\n",
        setting.workers
    );
    http(&mut out, &features, dialect, setting);
    server(&mut out, &features, dialect, setting);
    out += "}\n";
    Some(out)
}

fn http(out: &mut String, features: &Features, dialect: Dialect, setting: &StepSetting<'_>) {
    if dialect == Dialect::Nginx {
        // Its own places for these belong to the system's nginx.
        for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            _ = writeln!(out, "    {name}_temp_path {name}_temp;");
        }
    }
    out.push_str(match features.log {
        Log::Off => "    access_log off;\n",
        Log::Plain => "    access_log access.log combined;\n",
        Log::Buffered => "    access_log access.log combined buffer=256k flush=10s;\n",
    });
    out.push_str("    keepalive_timeout 65;\n    keepalive_requests 1000000;\n");
    if features.gzip {
        _ = write!(out, "    gzip on;\n    gzip_proxied any;\n    gzip_vary on;\n    gzip_types {TYPES};\n");
    }
    if let Some(cache) = features.cache {
        let memory = cache.in_memory && dialect == Dialect::Millstream;
        // The one line of the cache that nginx would not understand.
        out.push_str(if memory {
            "    proxy_cache_path memory keys_zone=api:10m memory=256m inactive=1d;\n"
        } else {
            "    proxy_cache_path cache levels=1:2 keys_zone=api:10m max_size=256m inactive=1d;\n"
        });
        // What the cache answers has no upstream address and so no line.
        out.push_str("    log_format reached $upstream_status;\n");
    }
    _ = write!(out, "\n    upstream api {{\n        server {};\n", setting.origin);
    if features.keep_alive {
        _ = writeln!(out, "        keepalive {POOL};");
    }
    out.push_str("    }\n");
}

fn server(out: &mut String, features: &Features, dialect: Dialect, setting: &StepSetting<'_>) {
    let tls = if features.tls { " ssl" } else { "" };
    // nginx knows `http2 on` from 1.25.1 on; the older word every nginx takes, a newer one with a warning.
    let (option, directive) = match (features.http2, dialect) {
        (false, _) => ("", ""),
        (true, Dialect::Millstream) => ("", "        http2 on;\n"),
        (true, Dialect::Nginx) => (" http2", ""),
    };
    _ = write!(out, "\n    server {{\n        listen 127.0.0.1:{}{tls}{option};\n{directive}", setting.port);
    if features.tls {
        _ = write!(
            out,
            "        ssl_certificate {CERTIFICATE};\n        ssl_certificate_key {KEY};\n        \
             ssl_protocols TLSv1.2 TLSv1.3;\n        ssl_session_cache shared:tls:10m;\n"
        );
    }
    out.push_str("\n        location / {\n            proxy_pass http://api;\n");
    out.push_str(if features.keep_alive {
        "            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n"
    } else {
        "            proxy_http_version 1.0;\n            proxy_set_header Connection close;\n"
    });
    out.push_str(
        "            proxy_set_header Host $http_host;\n            \
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n",
    );
    if let Some(cache) = &features.cache {
        cached(out, cache, features.log, setting);
    }
    out.push_str("        }\n    }\n");
}

fn cached(out: &mut String, cache: &Cache, log: Log, setting: &StepSetting<'_>) {
    out.push_str(
        "\n            proxy_cache api;\n            \
         proxy_cache_key \"$scheme$http_host$request_uri$http_authorization\";\n",
    );
    if let Some(time) = if cache.micro { Some(super::MICRO) } else { setting.fallback } {
        // Nobody has said that these may be shared, so what a session got is not.
        _ = write!(
            out,
            "            proxy_cache_valid 200 {time};\n            proxy_cache_bypass $http_cookie;\n            \
             proxy_no_cache $http_cookie;\n"
        );
    }
    if cache.micro && setting.puts_aside {
        // The API says for how long; this step is about what a second brings.
        out.push_str("            proxy_ignore_headers Cache-Control Expires X-Accel-Expires;\n");
    }
    out.push_str(if cache.lock {
        "            proxy_cache_lock on;\n            proxy_cache_use_stale updating;\n"
    } else {
        "            proxy_cache_lock off;\n"
    });
    // Level by level access_log replaces what stands above it, so the other log is named again beside it.
    if log == Log::Buffered {
        out.push_str("            access_log access.log combined buffer=256k flush=10s;\n");
    }
    _ = writeln!(out, "            access_log {REACHED} reached if=$upstream_addr;");
    out.push_str("            add_header X-Cache-Status $upstream_cache_status;\n");
}
