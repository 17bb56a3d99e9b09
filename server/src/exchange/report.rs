//! Lines of the error log about an upstream, in nginx's wording.

use crate::failure;
use crate::request::Request;
use crate::sent_target;
use millstream_conf::model::{FastCgiPass, Level, Pass};
use millstream_upstream::{Complaints, ExchangeError};
use std::io;
use std::path::Path;

const MOST_OF_COMPLAINT: usize = 2048;

pub(super) fn write(request: &Request, level: Level, what: std::fmt::Arguments<'_>, upstream: Option<&str>) {
    failure::logs(request).tell(level, what, || failure::about(request, upstream));
}

/// `folder`: that of the temporary file.
pub(super) fn lost_file(request: &Request, folder: &Path, error: &io::Error) {
    let what = format_args!("temporary file in \"{}\" failed: {error}", folder.display());
    write(request, Level::Crit, what, None);
}

/// Logs the messages of a FastCGI application as they arrive, even after the request; returns whether
/// `fastcgi_catch_stderr` matches.
pub(super) fn complaints(request: &Request, pass: &FastCgiPass, upstream: &str) -> Complaints {
    let (generation, location) = (request.generation.clone(), request.route.location);
    let about = failure::about(request, Some(upstream));
    let caught = pass.catch_stderr.clone();
    Box::new(move |text| {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'.' | b' ');
        let length = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
        let said = String::from_utf8_lossy(&text[..length.min(MOST_OF_COMPLAINT)]);
        let logs = &generation.shared.logs.errors[location.0 as usize];
        let what = format_args!("FastCGI sent in stderr: \"{said}\" while reading upstream");
        logs.tell(Level::Error, what, || about.clone());
        caught.iter().any(|pattern| memchr::memmem::find(text, pattern.as_bytes()).is_some())
    })
}

/// Advises another scheme if the bytes prove that the upstream speaks it.
pub(super) fn hint(proxy: &Pass, error: &ExchangeError) -> String {
    match error {
        ExchangeError::PlainHttp(_) if proxy.http().is_some() || proxy.grpc().is_some() => {
            format!(" (the upstream speaks plain HTTP on this port; use {}://)", scheme(proxy, false))
        }
        ExchangeError::PlainHttp(_) => " (the upstream speaks plain HTTP on this port)".into(),
        ExchangeError::Tls(_) => asks_for_tls(proxy),
        _ => String::new(),
    }
}

pub(super) fn asks_for_tls(proxy: &Pass) -> String {
    let (plain, secured) = (scheme(proxy, false), scheme(proxy, true));
    let instead = if plain == secured { String::new() } else { format!("; use {secured}://") };
    format!(" (the upstream speaks TLS on this port{instead})")
}

/// FastCGI and SCGI have no TLS.
fn scheme(proxy: &Pass, secured: bool) -> &'static str {
    match (proxy.protocol.prefix(), secured) {
        ("proxy", false) => "http",
        ("proxy", true) => "https",
        ("grpc", true) => "grpcs",
        ("uwsgi", true) => "suwsgi",
        (prefix, _) => prefix,
    }
}

/// As in nginx's log: `http://127.0.0.1:8000/path`, `http://unix:/run/api.sock:/path`.
pub(super) fn url(request: &Request, proxy: &Pass, peer: &str, uri: Option<&[u8]>) -> String {
    let colon = if peer.starts_with("unix:") { ":" } else { "" };
    let mut path = Vec::new();
    if proxy.http().is_some() || proxy.grpc().is_some() {
        sent_target::append(&mut path, request, proxy, uri);
    }
    format!("{}://{peer}{colon}{}", scheme(proxy, proxy.tls().is_some()), String::from_utf8_lossy(&path))
}
