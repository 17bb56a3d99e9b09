//! Directives of upstream groups: their servers, who of them is asked, and how idle connections are kept.
//!
//! Names are not resolved here. Next: `millstream-upstream`, which takes one group each.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::context::{Context, HTTP, UPSTREAM};
use super::{Apply, Level, Row, often, once};
use crate::address::{HostPort, PeerAddress};
use crate::declared::upstream::{
    Balance, BalanceMethod, KeepaliveSize, Upstream, UpstreamKeepalive, UpstreamServer,
};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::template::{Part, Template, Variable};
use crate::tree::{Directive, Word};
use crate::variables::Builtin;

/// The rows of this family.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("upstream", HTTP, (1, 1), "name { … }", "",
        "A group of servers that `proxy_pass` can name.",
        Apply::Block(Context::Upstream)),
    often("server", UPSTREAM, (1, super::MANY),
        "address [weight=n] [max_fails=n] [fail_timeout=time] [max_conns=n] [backup] [down] [resolve]", "",
        "A server of the group: `host:port` (80 where there is no port) or `unix:/path`. Requests are shared out by weight, one by \
        one and evenly (weight 1 where none is written). After `max_fails` (1) failures within `fail_timeout` (10s) a server is left \
        alone for that time; 0 never leaves it alone. A name is looked up by the system at start, and until it is found its server is down; \
        with `resolve` the `resolver` is asked, and asked again whenever its answer no longer holds.",
        Apply::Upstream(server)),
    often("least_conn", UPSTREAM, (0, 0), "", "",
        "Asks the server with the fewest requests for its weight, of all workers; equals take turns.",
        Apply::Upstream(|u, d, r| balance(u, d, BalanceMethod::LeastConn, None, r))),
    often("ip_hash", UPSTREAM, (0, 0), "", "",
        "Asks the same server for the same client, the one that nginx asks: by the first three octets of an IPv4 address or the \
        whole of an IPv6 address.",
        Apply::Upstream(|u, d, r| {
            let address = Variable::Builtin(Builtin::BinaryRemoteAddr);
            let key =
                Template { parts: [Part::Variable(address)].into(), source: "$binary_remote_addr".into() };
            balance(u, d, BalanceMethod::IpHash, Some(key), r);
        })),
    often("hash", UPSTREAM, (1, 2), "key [consistent]", "",
        "Asks the same server for the same key, the one that nginx asks. With `consistent` (ketama) a server that comes or goes moves \
        only the keys that are its own.",
        Apply::Upstream(hash)),
    often("random", UPSTREAM, (0, 2), "[two [least_conn]]", "",
        "Asks any server, by weight; with `two` the less loaded of two.",
        Apply::Upstream(random)),
    once("keepalive", UPSTREAM, (1, 2), "connections | auto", "32",
        "How many idle connections each worker keeps to the group; 0 keeps none, `auto` as many as were busy at once of late.",
        Apply::Upstream(keepalive)),
    once("keepalive_requests", UPSTREAM, (1, 1), "number", "1000",
        "How many requests go through one connection to a server of the group.",
        Apply::Upstream(|u, d, r| {
            if let Some(number) = r.number(&d.args[0], 0, u64::MAX) {
                u.keepalive.requests = number;
            }
        })),
    once("keepalive_time", UPSTREAM, (1, 1), "time", "1h",
        "How old a connection to a server of the group may become.",
        Apply::Upstream(|u, d, r| {
            if let Some(time) = r.duration(&d.args[0]) {
                u.keepalive.time = time;
            }
        })),
    once("keepalive_timeout", UPSTREAM, (1, 1), "time", "60s",
        "How long a connection to a server of the group may idle.",
        Apply::Upstream(|u, d, r| {
            if let Some(time) = r.duration(&d.args[0]) {
                u.keepalive.timeout = time;
            }
        })),
    once("zone", UPSTREAM, (1, 2), "name [size]", "",
        "Names the group's state. It is shared between the workers with or without this.",
        Apply::Upstream(zone)),
];

/// nginx's page size, which its smallest shared memory is counted in.
const PAGE: u64 = 4096;

/// A group without servers yet, with nginx's defaults (those of 1.29.7 for idle connections).
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
        checks: Vec::new(),
    }
}

/// A server with nginx's defaults.
pub fn default_server(name: &str, span: Span, address: PeerAddress) -> UpstreamServer {
    UpstreamServer {
        name: name.to_owned(),
        span,
        address,
        weight: 1,
        max_fails: 1,
        fail_timeout: Duration::from_secs(10),
        backup: false,
        down: false,
        resolve: false,
        max_conns: 0,
    }
}

/// Reads `host[:port]` or `unix:path`; `None` where it is neither. The port is the scheme's where none is written.
pub fn peer_address(text: &str, default_port: u16) -> Option<PeerAddress> {
    if let Some(path) = text.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| PeerAddress::Unix(path.into()));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return (address.port() != 0).then_some(PeerAddress::Tcp(address));
    }
    if let Some(bare) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(PeerAddress::Tcp(SocketAddr::new(bare.parse::<IpAddr>().ok()?, default_port)));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return ip.is_ipv4().then_some(PeerAddress::Tcp(SocketAddr::new(ip, default_port)));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().ok().filter(|port| *port != 0)?),
        None => (text, default_port),
    };
    let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') || byte >= 0x80;
    let valid = !host.is_empty() && host.bytes().all(named);
    valid.then(|| PeerAddress::Name(HostPort { host: host.to_owned(), port }))
}

fn server(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text.starts_with("http://") || word.text.starts_with("https://") {
        reading
            .error(word.span, format!("invalid host in upstream \"{}\"", word.text))
            .help("a server of an upstream is host:port; the scheme stands in proxy_pass");
        return;
    }
    let Some(address) = peer_address(&word.text, 80) else {
        reading
            .error(word.span, format!("invalid host or port in upstream \"{}\"", word.text))
            .help("write host:port, an address such as 127.0.0.1:8000 or [::1]:8000, or unix:/path");
        return;
    };
    let mut server = default_server(&word.text, word.span, address);
    for word in &directive.args[1..] {
        if word.text == "backup" && !upstream.balance.method.has_backups() {
            reading
                .error(word.span, "balancing method does not support parameter \"backup\"")
                .help("take it off, or choose by least_conn or in turns");
            continue;
        }
        server_parameter(&mut server, word, reading);
    }
    upstream.servers.push(server);
}

fn server_parameter(server: &mut UpstreamServer, word: &Word, reading: &mut Reading<'_>) {
    const MAX: u64 = u32::MAX as u64;
    const KNOWN: [&str; 7] =
        ["weight", "max_fails", "fail_timeout", "max_conns", "backup", "down", "resolve"];
    const NGINX: [&str; 5] = ["slow_start", "route", "service", "drain", "sticky"];
    match parameter(word) {
        Some(("weight", value)) => {
            // The bound keeps the sums of smooth weighted round robin far inside 64 bits.
            server.weight = reading.number(&value, 1, 1_000_000).map_or(1, |number| number as u32);
        }
        Some(("max_fails", value)) => {
            server.max_fails = reading.number(&value, 0, MAX).map_or(1, |number| number as u32);
        }
        Some(("fail_timeout", value)) => {
            server.fail_timeout = reading.duration(&value).unwrap_or(server.fail_timeout);
        }
        Some(("max_conns", value)) => {
            server.max_conns = reading.number(&value, 0, MAX).map_or(0, |number| number as u32);
        }
        None if word.text == "backup" => server.backup = true,
        None if word.text == "down" => server.down = true,
        None if word.text == "resolve" => server.resolve = matches!(server.address, PeerAddress::Name(_)),
        other => {
            let name = other.map_or(word.text.as_str(), |(name, _)| name);
            if NGINX.contains(&name) {
                reading
                    .error(
                        word.span,
                        format!("nginx knows the parameter \"{name}\", Millstream does not (yet)"),
                    )
                    .help("remove it");
                return;
            }
            let help = suggest::did_you_mean(name, KNOWN).unwrap_or_else(|| {
                "the parameters are weight=, max_fails=, fail_timeout=, max_conns=, backup, down and resolve".into()
            });
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
        }
    }
}

/// The last method written holds, as in nginx.
fn balance(
    upstream: &mut Upstream,
    directive: &Directive,
    method: BalanceMethod,
    key: Option<Template>,
    reading: &mut Reading<'_>,
) {
    if upstream.balance.method != BalanceMethod::RoundRobin {
        reading.diagnostics.warning(directive.span, "load balancing method redefined");
    }
    upstream.balance = Balance { method, key };
}

fn hash(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let key = reading.template(&directive.args[0]);
    let method = match directive.args.get(1) {
        None => BalanceMethod::Hash,
        Some(word) => match reading.one_of(word, &["consistent"]) {
            Some(_) => BalanceMethod::ConsistentHash,
            None => return,
        },
    };
    balance(upstream, directive, method, Some(key), reading);
}

fn random(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let mut method = BalanceMethod::Random;
    for (word, choice) in directive.args.iter().zip(["two", "least_conn"]) {
        if reading.one_of(word, &[choice]).is_none() {
            return;
        }
        method = BalanceMethod::RandomTwo;
    }
    balance(upstream, directive, method, None, reading);
}

/// The largest sum of weights of a `hash … consistent`: 16 million points.
const MOST_CONSISTENT_WEIGHT: u64 = 100_000;

/// What a group takes over from the `http` block, once that is read.
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

/// What only the whole block can tell.
pub fn check(upstream: &Upstream, reading: &mut Reading<'_>) {
    let weight: u64 = upstream.servers.iter().map(|server| u64::from(server.weight)).sum();
    if upstream.balance.method == BalanceMethod::ConsistentHash && weight > MOST_CONSISTENT_WEIGHT {
        reading
            .error(
                upstream.span,
                format!("the weights of upstream \"{}\" are too large for a consistent hash", upstream.name),
            )
            .help(format!("each unit has 160 points; keep the sum within {MOST_CONSISTENT_WEIGHT}"));
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
