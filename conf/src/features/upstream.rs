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
        "Defines a group of servers for `proxy_pass` and the directives like it.",
        Apply::Block(Context::Upstream)),
    often("server", UPSTREAM, (1, super::MANY),
        "address [weight=n] [max_fails=n] [fail_timeout=time] [max_conns=n] [slow_start=time] [route=name] [backup] [down] [drain] [resolve] [service=name]", "",
        "Defines a server of the group: `host:port` (default port 80) or `unix:/path`. Requests are distributed by `weight` (1). After `max_fails` \
        (1) failures within `fail_timeout` (10s), a server gets no requests for that time; with 0, failures are not counted. The operating system \
        resolves a name at start, and the server is down until the name is resolved. With `resolve`, the `resolver` resolves it, and again whenever \
        a record expires. With `service`, SRV records are used: those of `_http._tcp.NAME` for `service=http`, those of `SERVICE.NAME` if the \
        service contains a dot. Records with the lowest priority value are primary servers, the others are backups. The weight of a record is used \
        unless `weight` is set. With `slow_start`, a server that recovers from failures or a failed health check starts with a small share of \
        requests, which grows to its weight within that time. `route` is its name for `sticky`, at most 32 characters. With `drain`, a server gets \
        only requests of existing sessions.",
        Apply::Upstream(server::read)),
    often("least_conn", UPSTREAM, (0, 0), "", "",
        "Selects the server with the fewest active requests in relation to its weight, counted across all workers. Servers with equal load take \
        turns.",
        Apply::Upstream(|u, d, r| balancing::choose(u, d, BalanceMethod::LeastConn, None, r))),
    often("least_time", UPSTREAM, (1, 2), "header | last_byte [inflight]", "",
        "Selects the server that is expected to respond first, by its recent response time and its active requests in relation to its weight. The \
        time is measured to the head (`header`) or the end (`last_byte`) of a response. Servers with equal values take turns. Times are rounded to \
        20 ms, and all times over 5 s are equal. A server that was too slow to be selected is tried again from time to time (`fail_timeout`). With \
        `inflight`, requests without a response yet are counted too.",
        Apply::Upstream(balancing::least_time)),
    often("ip_hash", UPSTREAM, (0, 0), "", "",
        "Selects the server by the client's address, using the first three octets of an IPv4 address or the whole IPv6 address. The same client gets \
        the same server, and the same one as in nginx.",
        Apply::Upstream(balancing::ip_hash)),
    often("hash", UPSTREAM, (1, 2), "key [consistent]", "",
        "Selects the server by a hash of the key. The same key gets the same server, and the same one as in nginx. With `consistent` (ketama), adding \
        or removing a server remaps only the keys of that server.",
        Apply::Upstream(balancing::hash)),
    often("random", UPSTREAM, (0, 2), "[two [least_conn | least_time=header | least_time=last_byte]]", "",
        "Selects a random server by weight. With `two`, two servers are drawn, and the less loaded one is selected, or with `least_time=` the one \
        that is expected to respond first.",
        Apply::Upstream(balancing::random)),
    once("sticky", UPSTREAM, (2, super::MANY),
        "cookie name [expires=time | expires=max] [domain=domain] [path=path] [httponly] [secure] [samesite=value] | \
        route $variable … | learn create=$variable lookup=$variable zone=name:size [timeout=time] [header]", "",
        "Sends the requests of a session to the same server as long as it is available. `cookie`: each response identifies its server in a cookie \
        with that name. `route`: the first variable with a value contains the server's `route=`. `learn`: at the end of a response (with `header`, \
        at its head), the variables in `create`, usually a cookie that the server sets, assign a session to the server; the variables in `lookup` \
        identify the session of a request. A session expires `timeout` (10m) after its last request. One megabyte holds 8,192 sessions.",
        Apply::Upstream(sticky::read)),
    once("queue", UPSTREAM, (1, 2), "number [timeout=time]", "",
        "The maximum number of requests that wait if no server is available, because all have reached `max_conns` or have failed. A request gets 502 \
        if the queue is full or if it has waited for `timeout` (60s). `queue` must follow the balancing method.",
        Apply::Upstream(queue::read)),
    once("outlier_ejection", UPSTREAM, (0, super::MANY),
        "[consecutive_errors=n] [interval=time] [time=time] [max=n%] [status=code,…] [requests=n]", "",
        "Ejects a server because of its responses. Errors are failed exchanges and responses with one of the statuses in `status` (`5xx`), a list of \
        codes, ranges and classes. A server is ejected after `consecutive_errors` (5) in a row; 0 disables this. It is also ejected if its share of \
        successful responses within `interval` (10s) is below the mean of all servers by more than 1.9 standard deviations and by 5 percentage \
        points. This requires at least five servers with at least `requests` (100) responses each; 0 disables it. The first ejection lasts `time` \
        (30s), the second twice as long, and so on up to five minutes; each interval in service reverses one step. At most `max` (50%) of the \
        group is ejected, and never the last available server: if the others fail, an ejected server returns early. A returning server is subject to \
        `slow_start`. A client that knows a URL with an error response can cause an ejection; `status=502,503,504` excludes errors of the \
        application.",
        Apply::Upstream(outlier_ejection::read)),
    once("state", UPSTREAM, (1, 1), "file", "",
        "Stores the servers of the group in a file, instead of `server` directives. Changes made with the API are written to it and survive a \
        restart. If the file is missing, the group is empty. Without `state`, such changes last until the next reload.",
        Apply::Upstream(state::read)),
    once("keepalive", UPSTREAM, (1, 2), "connections | auto", "32",
        "The maximum number of idle connections to the group that each worker keeps. 0 keeps none; `auto` keeps as many as were recently in use at \
        the same time.",
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
        "The time for which an idle connection to a server of the group is kept open.",
        Apply::Upstream(|u, d, r| {
            if let Some(time) = r.duration(&d.args[0]) {
                u.keepalive.timeout = time;
            }
        })),
    once("zone", UPSTREAM, (1, 2), "name [size]", "",
        "Names the group's state. It is shared by all workers, with or without this directive.",
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
            .help("write zone name size, as in zone api 64k; (the size is optional if another group has named the zone)");
        return;
    }
    upstream.zone = Some((name, size));
}
