//! Lines of the error log about an upstream, in nginx's wording.

use crate::failure::describe;
use crate::request::Request;
use crate::sent_target;
use millstream_conf::model::{Level, Pass};
use millstream_telemetry::log_error;

/// Writes a line about a request; `upstream` is the URL that was asked.
pub(super) fn write(request: &Request, level: Level, what: std::fmt::Arguments<'_>, upstream: Option<&str>) {
    let logs = &request.generation.shared.error_logs[request.location.0 as usize];
    let serial = request.connection.serial;
    log_error!(logs, level, "*{serial} {what}{}", describe(request, upstream));
}

/// The URL of a peer as nginx's log has it: `http://127.0.0.1:8000/path`, `http://unix:/run/api.sock:/path`.
pub(super) fn url(request: &Request, proxy: &Pass, peer: &str, uri: Option<&[u8]>) -> String {
    let mut path = Vec::new();
    sent_target::append(&mut path, request, proxy, uri);
    let colon = if peer.starts_with("unix:") { ":" } else { "" };
    let scheme = if proxy.http().tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{peer}{colon}{}", String::from_utf8_lossy(&path))
}
