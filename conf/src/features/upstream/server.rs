//! `server` in an `upstream` block: its address and what balancing knows of it.
//!
//! Names are not resolved here. Next: `balancing`, the methods.

use crate::address::PeerAddress;
use crate::declared::upstream::{BalanceMethod, Upstream, UpstreamServer};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::tree::{Directive, Word};
use std::time::Duration;

/// With nginx's defaults.
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
        service: None,
        max_conns: 0,
        drain: false,
        route: None,
        slow_start: Duration::ZERO,
    }
}

pub(super) fn read(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text.starts_with("http://") || word.text.starts_with("https://") {
        reading
            .error(word.span, format!("invalid host in upstream \"{}\"", word.text))
            .help("a server of an upstream is host:port; the scheme is set in proxy_pass");
        return;
    }
    let Some(address) = PeerAddress::parse(&word.text, 80) else {
        reading
            .error(word.span, format!("invalid host or port in upstream \"{}\"", word.text))
            .help("write host:port, an address such as 127.0.0.1:8000 or [::1]:8000, or unix:/path");
        return;
    };
    let mut server = default_server(&word.text, word.span, address);
    for word in &directive.args[1..] {
        let name = word.text.split('=').next().unwrap_or_default();
        if matches!(name, "backup" | "slow_start") && !upstream.balance.method.is_adaptable() {
            reading
                .error(word.span, format!("balancing method does not support parameter \"{name}\""))
                .help(BalanceMethod::ADAPTABLE);
            continue;
        }
        server_parameter(&mut server, word, reading);
    }
    if server.service.is_some() {
        let resolves = directive.args[1..].iter().any(|word| word.text == "resolve");
        check_service(&server, resolves, reading);
    }
    upstream.servers.push(server);
}

/// A service's hosts and ports are looked up at run time.
fn check_service(server: &UpstreamServer, resolves: bool, reading: &mut Reading<'_>) {
    let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_port = server.name.rsplit_once(':').is_some_and(|(_, port)| is_number(port));
    let (problem, help) = match &server.address {
        _ if !resolves => ("requires \"resolve\" parameter", "add resolve"),
        PeerAddress::Tcp(_) | PeerAddress::Name(_) if has_port => {
            ("may not have port", "remove the port: SRV records contain it")
        }
        PeerAddress::Tcp(_) | PeerAddress::Unix(_) => {
            ("requires domain name", "write a domain name, or remove service=")
        }
        PeerAddress::Name(_) => return,
    };
    reading.error(server.span, format!("service upstream \"{}\" {problem}", server.name)).help(help);
}

fn server_parameter(server: &mut UpstreamServer, word: &Word, reading: &mut Reading<'_>) {
    const MAX: u64 = u32::MAX as u64;
    const KNOWN: [&str; 11] = [
        "weight",
        "max_fails",
        "fail_timeout",
        "max_conns",
        "slow_start",
        "route",
        "backup",
        "down",
        "drain",
        "resolve",
        "service",
    ];
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
        Some(("slow_start", value)) => {
            server.slow_start = reading.duration(&value).unwrap_or(server.slow_start);
        }
        Some(("route", value)) => server.route = route(&value, reading),
        Some(("service", value)) if value.text.is_empty() => {
            reading
                .error(word.span, "service is empty")
                .help("write a name, as in service=http, or remove it");
        }
        Some(("service", value)) => server.service = Some(value.text),
        None if word.text == "backup" => server.backup = true,
        // The last of the two counts, as in nginx.
        None if word.text == "down" => (server.down, server.drain) = (true, false),
        None if word.text == "drain" => (server.down, server.drain) = (false, true),
        None if word.text == "resolve" => server.resolve = matches!(server.address, PeerAddress::Name(_)),
        other => {
            let name = other.map_or(word.text.as_str(), |(name, _)| name);
            let help = suggest::did_you_mean(name, KNOWN).unwrap_or_else(|| {
                "the parameters are weight=, max_fails=, fail_timeout=, max_conns=, slow_start=, route=, service=, backup, down, drain \
                and resolve"
                    .into()
            });
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
        }
    }
}

/// nginx's bound on the name of a server, in bytes.
const LONGEST_ROUTE: usize = 32;

fn route(word: &Word, reading: &mut Reading<'_>) -> Option<String> {
    if word.text.is_empty() {
        reading.error(word.span, "route is empty").help("write a name, or remove it");
    } else if word.text.len() > LONGEST_ROUTE {
        reading.error(word.span, "route is longer than 32").help("write a shorter name");
    } else {
        return Some(word.text.clone());
    }
    None
}
