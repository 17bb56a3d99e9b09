//! Directives of upstream groups: their servers, who of them is asked, and how idle connections are kept.
//!
//! Names are not resolved here. Next: `upstream/server`, a server of a group; `upstream/balancing`, the methods; `upstream/sticky`;
//! `upstream/queue`; `upstream/outlier_ejection`; `upstream/state`;
//! `millstream-upstream`, which takes one group each.

mod server;
mod balancing;
mod sticky;
mod queue;
mod outlier_ejection;
mod state;

use super::context::{Context, HTTP, UPSTREAM};
use super::{Apply, Level, Row, often, once};
use crate::declared::upstream::{Balance, BalanceMethod, KeepaliveSize, Upstream, UpstreamKeepalive};
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::Directive;
pub use server::default_server;
use std::time::Duration;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("upstream", HTTP, (1, 1), "name { … }", "",
        "A group of servers that `proxy_pass` can name.",
        Apply::Block(Context::Upstream)),
    often("server", UPSTREAM, (1, super::MANY),
        "address [weight=n] [max_fails=n] [fail_timeout=time] [max_conns=n] [slow_start=time] [route=name] [backup] [down] [drain] [resolve] [service=name]", "",
        "A server of the group: `host:port` (by default port 80) or `unix:/path`. Requests are distributed by weight (by default 1). \
        After `max_fails` (1) failures within `fail_timeout` (10s), a server gets no requests for that time; with 0, failures do not count. \
        The system resolves a name at start, and the server is down until the name is found. With `resolve`, the `resolver` resolves it, \
        again whenever a record expires. With `service`, it looks up \
        SRV records: those of `_http._tcp.NAME` for `service=http`, those of `SERVICE.NAME` if the service contains a dot. Records of the lowest \
        priority are servers, the others backups. A record's weight counts unless `weight` is set. With `slow_start`, the share of a server \
        that recovers from failures or a failed health check grows to its weight within that time. `route` is its name for `sticky`, at most \
        32 characters. With `drain`, a server gets only requests of its own sessions.",
        Apply::Upstream(server::read)),
    often("least_conn", UPSTREAM, (0, 0), "", "",
        "Selects the server with the fewest active requests for its weight, counted across all workers. Equal servers take turns.",
        Apply::Upstream(|u, d, r| balancing::choose(u, d, BalanceMethod::LeastConn, None, r))),
    often("least_time", UPSTREAM, (1, 2), "header | last_byte [inflight]", "",
        "Selects the server that is expected to respond first: by its recent time to the head (`header`) or the end (`last_byte`) of a response, \
        and by its active requests for its weight. Equal servers take turns. Times count in steps of 20 ms, and all over 5 s are equal. \
        A server that was too slow to be selected is tried again from time to time (`fail_timeout`). With `inflight`, \
        requests without a response yet count too.",
        Apply::Upstream(balancing::least_time)),
    often("ip_hash", UPSTREAM, (0, 0), "", "",
        "Selects the same server for the same client, the one that nginx selects: by the first three octets of an IPv4 address or the \
        whole IPv6 address.",
        Apply::Upstream(balancing::ip_hash)),
    often("hash", UPSTREAM, (1, 2), "key [consistent]", "",
        "Selects the same server for the same key, the one that nginx selects. With `consistent` (ketama), adding or removing a server moves \
        only its own keys.",
        Apply::Upstream(balancing::hash)),
    often("random", UPSTREAM, (0, 2), "[two [least_conn | least_time=header | least_time=last_byte]]", "",
        "Selects a random server, by weight. With `two`, it selects the better of two: the less loaded one, or with `least_time=` the one that is expected to \
        respond first.",
        Apply::Upstream(balancing::random)),
    once("sticky", UPSTREAM, (2, super::MANY),
        "cookie name [expires=time | expires=max] [domain=domain] [path=path] [httponly] [secure] [samesite=value] | \
        route $variable … | learn create=$variable lookup=$variable zone=name:size [timeout=time] [header]", "",
        "Sends the requests of a session to one server as long as it is available, otherwise to another. `cookie`: each response \
        names its server in a cookie of that name. `route`: the first variable with a value contains the server's `route=`. \
        `learn`: at the end of a response (`header`: at its head), the variables of `create`, usually a cookie that the server sets, assign a session \
        to the server; those of `lookup` identify the session of a request. A session expires `timeout` \
        (10m) after its last request; a megabyte holds 8,192.",
        Apply::Upstream(sticky::read)),
    once("queue", UPSTREAM, (1, 2), "number [timeout=time]", "",
        "The number of requests that may wait if no server is available, because all are full (`max_conns`) or have failed. A request \
        that finds the queue full, or has waited for `timeout` (60s), gets 502. `queue` comes after the balancing method.",
        Apply::Upstream(queue::read)),
    once("outlier_ejection", UPSTREAM, (0, super::MANY),
        "[consecutive_errors=n] [interval=time] [time=time] [max=n%] [status=code,…] [requests=n]", "",
        "Ejects a server because of its responses. Errors are failed exchanges and responses with one of the statuses (default `5xx`; codes, ranges \
        and classes). A server is ejected after `consecutive_errors` (5; 0 turns this off), or if its share of good responses within \
        an `interval` (10s) is below the mean of all servers by more than 1.9 standard deviations and by 5 points. That needs five servers or more with at least `requests` (100; 0 turns \
        this off) responses. The first ejection lasts `time` (30s), the second twice as long, and so on up to five minutes; each interval in service takes one \
        step off. At most `max` (50%) of the group is ejected, and never the last available server: \
        if the others fail, an ejected one comes back early. It comes back with its `slow_start`. A client that knows a URL with an error response can provoke an ejection; \
        `status=502,503,504` excludes the application's own errors.",
        Apply::Upstream(outlier_ejection::read)),
    once("state", UPSTREAM, (1, 1), "file", "",
        "Keeps the servers of the group in a file, in place of `server` lines. The API's changes are written to it and survive \
        a restart. If the file is missing, the group is empty. Without `state`, the API's changes last until the next reload.",
        Apply::Upstream(state::read)),
    once("keepalive", UPSTREAM, (1, 2), "connections | auto", "32",
        "The number of idle connections to the group that each worker keeps: 0 keeps none, `auto` as many as were recently in use at once.",
        Apply::Upstream(keepalive)),
    once("keepalive_requests", UPSTREAM, (1, 1), "number", "1000",
        "The maximum number of requests on one connection to a server of the group.",
        Apply::Upstream(|u, d, r| {
            if let Some(number) = r.number(&d.args[0], 0, u64::MAX) {
                u.keepalive.requests = number;
            }
        })),
    once("keepalive_time", UPSTREAM, (1, 1), "time", "1h",
        "The maximum age of a connection to a server of the group.",
        Apply::Upstream(|u, d, r| {
            if let Some(time) = r.duration(&d.args[0]) {
                u.keepalive.time = time;
            }
        })),
    once("keepalive_timeout", UPSTREAM, (1, 1), "time", "60s",
        "The time that an idle connection to a server of the group stays open.",
        Apply::Upstream(|u, d, r| {
            if let Some(time) = r.duration(&d.args[0]) {
                u.keepalive.timeout = time;
            }
        })),
    once("zone", UPSTREAM, (1, 2), "name [size]", "",
        "Names the group's state. It is shared between the workers with or without this.",
        Apply::Upstream(zone)),
];

/// nginx's page size, the unit of its smallest shared memory.
const PAGE: u64 = 4096;

/// With nginx's defaults (those of 1.29.7 for idle connections) and no servers yet.
pub fn empty(name: &str, span: Span, implicit: bool) -> Upstream {
    let keepalive = UpstreamKeepalive {
        size: KeepaliveSize::Fixed(32),
        requests: 1000,
        time: Duration::from_secs(3600),
        timeout: Duration::from_secs(60),
    };
    let balance = Balance::default();
    Upstream {
        name: name.to_owned(),
        span,
        implicit,
        servers: Vec::new(),
        balance,
        keepalive,
        resolver: None,
        resolver_timeout: None,
        zone: None,
        state: None,
        sticky: None,
        queue: None,
        outlier_ejection: None,
        checks: Vec::new(),
    }
}

/// Takes over settings of the `http` block, once that is read.
pub fn settle(level: &Level, reading: &mut Reading<'_>) {
    let mut upstreams = std::mem::take(&mut reading.declared.upstreams);
    for upstream in &mut upstreams {
        upstream.resolver = upstream.resolver.or(level.resolver.servers.flatten());
        upstream.resolver_timeout = upstream.resolver_timeout.or(level.resolver.timeout);
        if let Some(server) = upstream.servers.iter().find(|server| server.resolve)
            && upstream.resolver.is_none()
        {
            reading
                .error(
                    server.span,
                    format!(
                        "no resolver defined to resolve names at run time in upstream \"{}\"",
                        upstream.name
                    ),
                )
                .help("write resolver with the address of a name server in the http block or in this one");
        }
    }
    reading.declared.upstreams = upstreams;
}

pub fn check(upstream: &Upstream, reading: &mut Reading<'_>) {
    balancing::check(upstream, reading);
    if upstream.state.is_some() && upstream.zone.is_none() {
        reading
            .error(upstream.span, format!("\"state\" needs \"zone\" in upstream \"{}\"", upstream.name))
            .help("write zone NAME 64k; in it");
    }
}

fn keepalive(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    if let Some(word) = directive.args.get(1)
        && reading.one_of(word, &["local"]).is_some()
    {
        reading
            .diagnostics
            .idle(word.span, "\"local\" has no effect here: connections are kept per group and worker");
    }
    let word = &directive.args[0];
    if word.text == "auto" {
        upstream.keepalive.size = KeepaliveSize::Auto;
    } else if let Some(number) = reading.number(word, 0, 1 << 20) {
        upstream.keepalive.size = KeepaliveSize::Fixed(number as usize);
    }
}

fn zone(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let name = directive.args[0].text.clone();
    let mut size = 0;
    if let Some(word) = directive.args.get(1) {
        let Some(bytes) = reading.size(word) else { return };
        if bytes < 8 * PAGE {
            reading.error(word.span, format!("zone \"{name}\" is too small")).help("write at least 32k");
            return;
        }
        size = bytes;
    } else if reading
        .declared
        .upstreams
        .iter()
        .all(|other| other.zone.as_ref().is_none_or(|(known, _)| *known != name))
    {
        reading
            .error(directive.args[0].span, format!("zone \"{name}\" has no size"))
            .help("write zone name size, as in zone api 64k; (only a zone that another group named may stand without)");
        return;
    }
    upstream.zone = Some((name, size));
}
