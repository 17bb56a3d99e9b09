//! The steps in HAProxy's language. Its cache is in memory, has no lock and gives no stale answers, and its log goes to
//! syslog: those steps it cannot do.

use super::{Launch, NO_PROXY, Reached};
use crate::step::nginx::CERTIFICATE;
use crate::step::{Cache, Features, Log, MICRO, Step, StepSetting, seconds};
use std::fmt::Write;

const SOCKET: &str = "haproxy.sock";

pub(super) fn launch(step: Step, setting: &StepSetting<'_>) -> Result<Launch, &'static str> {
    let features = step.features().ok_or(NO_PROXY)?;
    match (step, features.log) {
        (Step::Lock, _) => return Err("has neither a lock nor stale answers in its cache"),
        (_, Log::Buffered) if !features.tls => return Err("writes no log file: its lines go to syslog"),
        _ => {}
    }
    let note = match (features.cache, features.log) {
        (_, Log::Plain | Log::Buffered) => Some("HAProxy writes no log file, so it is spared that work."),
        (Some(cache), _) if !cache.in_memory => Some("HAProxy's cache is in memory in every step."),
        _ => None,
    };
    Ok(Launch {
        files: vec![("haproxy.cfg", text(&features, setting))],
        arguments: ["-db", "-f", "haproxy.cfg"].map(str::to_owned).to_vec(),
        reached: if features.cache.is_some() { Reached::HaproxySocket(SOCKET) } else { Reached::All },
        note,
    })
}

fn text(features: &Features, setting: &StepSetting<'_>) -> String {
    // With fewer files allowed than that many connections take, it would not start.
    let mut out =
        format!("global\n    maxconn 10000\n    no strict-limits\n    stats socket unix@{SOCKET} mode 600\n");
    if let Ok(threads) = setting.workers.parse::<u32>() {
        _ = writeln!(out, "    nbthread {threads}");
    }
    let reuse = if features.keep_alive { "http-keep-alive" } else { "http-server-close" };
    _ = write!(
        out,
        "defaults\n    mode http\n    option {reuse}\n    timeout connect 5s\n    timeout client 65s\n    \
         timeout server 60s\n"
    );
    if features.cache.is_some() {
        out.push_str(
            "cache api\n    total-max-size 256\n    max-object-size 8000000\n    max-age 86400\n    \
             process-vary on\n",
        );
    }
    let tls = if features.tls { format!(" ssl crt {CERTIFICATE}") } else { String::new() };
    let alpn = if features.http2 { " alpn h2,http/1.1" } else { "" };
    _ = write!(
        out,
        "frontend clients\n    bind 127.0.0.1:{}{tls}{alpn}\n    option forwardfor\n",
        setting.port
    );
    if features.gzip {
        out.push_str(
            "    compression algo gzip\n    compression type text/html text/plain application/json\n",
        );
    }
    if let Some(cache) = &features.cache {
        cached(&mut out, cache, setting);
    }
    _ = write!(
        out,
        "    default_backend api\nbackend api\n    http-reuse always\n    server one {}",
        setting.origin
    );
    out.push_str(if features.keep_alive { " pool-max-conn 500\n" } else { " pool-max-conn 0\n" });
    out
}

fn cached(out: &mut String, cache: &Cache, setting: &StepSetting<'_>) {
    let silent = if cache.micro { Some(MICRO) } else { setting.fallback };
    if let Some(seconds) = silent.and_then(seconds) {
        let own_word = match cache.micro && setting.puts_aside {
            true => "",
            false => "{ res.hdr(cache-control) -m found } or { res.hdr(expires) -m found } or ",
        };
        // It stores what has a lifetime alone; a session's answers get none from us.
        _ = write!(
            out,
            "    http-request set-var(txn.session) bool(true) if {{ req.hdr(cookie) -m found }}\n    \
             http-response set-header Cache-Control max-age={seconds} unless {own_word}\
             {{ var(txn.session) -m bool }}\n    \
             http-request cache-use api unless {{ var(txn.session) -m bool }}\n    \
             http-response cache-store api unless {{ var(txn.session) -m bool }}\n"
        );
    } else {
        out.push_str("    http-request cache-use api\n    http-response cache-store api\n");
    }
}
