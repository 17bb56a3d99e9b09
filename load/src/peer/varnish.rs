//! The steps in Varnish's language. Its cache is in memory and its log too; it has no log file and speaks no TLS itself:
//! those steps it cannot do.

use super::{Launch, NO_PROXY, Reached};
use crate::step::{Features, Log, MICRO, Step, StepSetting, seconds};
use std::fmt::Write;
use std::path::Path;

const DIRECTORY: &str = "varnish";
const FILE: &str = "api.vcl";

pub(super) fn launch(
    step: Step,
    setting: &StepSetting<'_>,
    directory: &Path,
) -> Result<Launch, &'static str> {
    let features = step.features().ok_or(NO_PROXY)?;
    if features.tls {
        return Err("speaks no TLS itself");
    }
    if features.log == Log::Buffered {
        return Err("writes no log file itself: its log is in memory, for varnishncsa to read");
    }
    let note = match features.cache {
        None => Some("Varnish passes every request; its log is always on, in memory."),
        Some(cache) if !cache.in_memory => Some("Varnish's cache is in memory in every step."),
        Some(_) => None,
    };
    // It looks for relative names elsewhere.
    let whole = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let (file, own) = (whole(FILE), whole(DIRECTORY));
    let listen = format!("127.0.0.1:{}", setting.port);
    let gzip = if features.gzip { "http_gzip_support=on" } else { "http_gzip_support=off" };
    // Its jail would change users again and again, and with that lose the signal that tells it of this program's end; and it
    // would keep it out of a directory that is closed to others.
    let arguments = [
        "-j",
        "none",
        "-F",
        "-a",
        &listen,
        "-T",
        "none",
        "-s",
        "malloc,256m",
        "-p",
        gzip,
        "-f",
        &file,
        "-n",
        &own,
    ];
    Ok(Launch {
        files: vec![(FILE, text(&features, setting))],
        arguments: arguments.map(str::to_owned).to_vec(),
        reached: if features.cache.is_some() { Reached::Varnishstat(DIRECTORY) } else { Reached::All },
        note,
    })
}

fn text(features: &Features, setting: &StepSetting<'_>) -> String {
    // An IPv6 address stands in brackets, so the last colon is the port's.
    let (host, port) = setting.origin.rsplit_once(':').unwrap_or((setting.origin, "80"));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut out = format!(
        "vcl 4.1;\nbackend api {{\n    .host = \"{host}\";\n    .port = \"{port}\";\n}}\nsub vcl_recv {{\n"
    );
    match features.cache {
        None => out.push_str("    return (pass);\n"),
        // What says nothing is kept for who has no session; the built-in rules go by Cookie in any case.
        Some(cache) if !cache.lock => out.push_str("    set req.hash_ignore_busy = true;\n"),
        Some(_) => {}
    }
    out.push_str("}\n");
    if !features.keep_alive {
        out.push_str("sub vcl_backend_fetch {\n    set bereq.http.Connection = \"close\";\n}\n");
    }
    out.push_str("sub vcl_backend_response {\n");
    if features.gzip {
        out.push_str("    set beresp.do_gzip = true;\n");
    }
    if let Some(cache) = features.cache {
        let silent = if cache.micro { Some(MICRO) } else { setting.fallback };
        // Two minutes is what Varnish takes itself where nothing is said.
        let silent = silent.and_then(seconds).unwrap_or(0);
        let grace = if cache.lock { 10 } else { 0 };
        let condition = match cache.micro && setting.puts_aside {
            true => "true",
            false => "!beresp.http.Cache-Control && !beresp.http.Expires",
        };
        _ = write!(
            out,
            "    if ({condition}) {{\n        set beresp.ttl = {silent}s;\n    \
             }}\n    set beresp.grace = {grace}s;\n    set beresp.keep = 0s;\n"
        );
    }
    out.push_str("}\n");
    out
}
