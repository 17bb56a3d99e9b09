//! The process as a whole: what it is, its connections, its requests.

use super::moment;
use millstream_net::clock;
use millstream_server::request::Request;
use millstream_server::variables::Connections;
use millstream_telemetry::metrics::Counter;
use serde_json::{Value, json};

pub(crate) fn nginx(request: &Request) -> Value {
    let shared = &request.generation.shared;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": "millstream",
        "address": request.connection.local.host_text(),
        "generation": shared.edition.number,
        "load_timestamp": moment(shared.edition.loaded),
        "timestamp": moment(clock::wall().unix_milliseconds()),
        "pid": std::process::id(),
        "ppid": rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get()),
    })
}

/// Every accepted connection is served, so none is dropped.
pub(super) fn connections(request: &Request) -> Value {
    told(&Connections::of(request))
}

fn told(connections: &Connections) -> Value {
    let Connections { accepted, active, waiting, .. } = *connections;
    json!({ "accepted": accepted, "dropped": 0, "active": active - waiting, "idle": waiting })
}

pub(super) fn requests(request: &Request) -> Value {
    counted(&Connections::of(request))
}

fn counted(connections: &Connections) -> Value {
    let Connections { requests, reading, writing, .. } = *connections;
    json!({ "total": requests, "current": reading + writing })
}

/// Threads of one process, which NGINX Plus would count as one worker.
pub(super) fn workers(request: &Request) -> Value {
    let connections = Connections::of(request);
    json!([{
        "id": 0,
        "pid": std::process::id(),
        "connections": told(&connections),
        "http": { "requests": counted(&connections) },
    }])
}

pub(super) fn ssl(request: &Request) -> Value {
    let snapshot = request.generation.shared.registry.snapshot();
    let [new, reused, failed] =
        [Counter::TlsHandshakes, Counter::TlsHandshakesReused, Counter::TlsHandshakesFailed]
            .map(|counter| snapshot.counter(counter));
    json!({ "handshakes": new + reused, "handshakes_failed": failed, "session_reuses": reused })
}
