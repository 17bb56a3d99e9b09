//! The upstreams with their servers, each address for itself.

use super::{classes, moment, no_path};
use crate::refusal::ApiRefusal;
use millstream_net::clock;
use millstream_server::generation::Shared;
use millstream_telemetry::metrics::PeerTiming;
use millstream_upstream::{Group, PeerAccount, PeerState, QueueAccount};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Includes those that a `proxy_pass` names by address.
pub(super) fn all(shared: &Shared) -> Value {
    let now = clock::now();
    let told = shared.groups.iter().map(|group| {
        let group = group.latest();
        let peers = group.in_force();
        let peers: Vec<Value> = peers.accounts(now).map(|account| peer(&account, now)).collect();
        // Peers that went with an earlier version are not told, nor is memory shared by name.
        let mut told =
            json!({ "peers": peers, "keepalive": group.idle(), "zombies": 0, "zone": group.name() });
        if let Some(queue) = group.queue() {
            let QueueAccount { size, most, overflows } = queue.account();
            told["queue"] = json!({ "size": size, "max_size": most, "overflows": overflows });
        }
        (group.name().to_owned(), told)
    });
    Value::Object(told.collect())
}

fn peer(account: &PeerAccount, now: Instant) -> Value {
    let PeerAccount {
        id,
        server,
        name,
        backup,
        parameters,
        state,
        health,
        ejections,
        selected,
        counts,
        downtime,
        ..
    } = account;
    let ago = |then: Instant| {
        let passed = i64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(i64::MAX);
        moment(clock::wall().unix_milliseconds().saturating_sub(passed))
    };
    let mut told = Map::new();
    let mut put = |field: &str, value: Value| _ = told.insert(field.to_owned(), value);
    put("id", json!(id));
    // In NGINX Plus's words the server of a peer is its address, and its name is what stands in the configuration: clients tell
    // peers of one name apart by the first.
    put("server", json!(&**name));
    put("name", json!(&**server));
    put("backup", json!(backup));
    put("weight", json!(parameters.weight));
    put("state", json!(state.name()));
    put("active", json!(counts.active));
    if parameters.max_conns > 0 {
        put("max_conns", json!(parameters.max_conns));
    }
    put("requests", json!(counts.requests));
    for (field, timing) in [("header_time", PeerTiming::Header), ("response_time", PeerTiming::Response)] {
        let times = counts.timing(timing);
        if let Some(mean) = times.sum().checked_div(times.count()) {
            // In whole milliseconds, as NGINX Plus has it: clients read nothing else.
            put(field, json!(mean / 1000));
        }
    }
    put("responses", classes(&counts.responses));
    put("sent", json!(counts.sent));
    put("received", json!(counts.received));
    put("fails", json!(counts.failures));
    put("unavail", json!(counts.outages));
    let mut checks = json!({ "checks": health.checks, "fails": health.fails, "unhealthy": health.unhealthy });
    if let Some(passed) = health.last_passed {
        checks["last_passed"] = passed.into();
    }
    put("health_checks", checks);
    put("ejections", json!(ejections));
    put("downtime", json!(u64::try_from(downtime.total.as_millis()).unwrap_or(u64::MAX)));
    if let Some(since) = downtime.since {
        put("downstart", ago(since).into());
    }
    if let Some(selected) = selected {
        put("selected", ago(*selected).into());
    }
    Value::Object(told)
}

pub(super) fn servers(shared: &Shared, upstream: &str, which: &[String]) -> Result<Value, ApiRefusal> {
    let group = shared.groups.iter().find(|group| group.name() == upstream).ok_or_else(no_path)?;
    let group = group.latest();
    match which {
        [] => Ok(configured(group)),
        [id] => {
            let missing = || no_server(upstream, id);
            let id: u64 = id.parse().map_err(|_| missing())?;
            configured_one(group, id).ok_or_else(missing)
        }
        _ => Err(no_path()),
    }
}

pub(crate) fn no_server(upstream: &str, id: &str) -> ApiRefusal {
    let text = format!("upstream \"{upstream}\" has no server with the number {id}");
    ApiRefusal::new(404, "UpstreamServerNotFound", text)
}

/// One entry per address.
pub(crate) fn configured(group: &Group) -> Value {
    group.in_force().accounts(clock::now()).map(|account| server(&account)).collect()
}

pub(crate) fn configured_one(group: &Group, id: u64) -> Option<Value> {
    group.in_force().accounts(clock::now()).find(|account| account.id == id).map(|account| server(&account))
}

fn server(account: &PeerAccount) -> Value {
    let parameters = &account.parameters;
    let mut told = json!({
        "id": account.id,
        "server": &*account.name,
        "weight": parameters.weight,
        "max_conns": parameters.max_conns,
        "max_fails": parameters.max_fails,
        "fail_timeout": time(parameters.fail_timeout),
        "slow_start": time(parameters.slow_start),
        "route": account.route.as_deref().unwrap_or_default(),
        "backup": account.backup,
        "down": account.state == PeerState::Down,
    });
    if parameters.drain {
        told["drain"] = true.into();
    }
    told
}

fn time(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}
