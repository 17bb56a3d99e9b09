//! `resolver` and `resolver_timeout`: the name servers for names that are looked up while running.
//!
//! Next: `millstream-net`'s `resolver`, which asks them; `upstream`, whose servers may be looked up again and again.

use std::time::Duration;

use super::context::{ACME_ISSUER, HTTP_SERVER_LOCATION, UPSTREAM};
use super::level::settings;
use super::{Apply, Row, once};
use crate::address::PeerAddress;
use crate::declared::resolver::{RESOLVER_TIMEOUT, Resolver, ResolverId};
use crate::reading::{Reading, parameter};
use crate::tree::{Directive, Word};

settings! {
    pub struct Resolving, ResolverLevel(place, reading) {
        /// `None` uses the system's resolver.
        servers: Option<ResolverId> = None,
        timeout: Duration = RESOLVER_TIMEOUT,
    }
}

const SYNTAX: &str = "address … [valid=time] [ipv4=on|off] [ipv6=on|off] [status_zone=zone]";

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("resolver", HTTP_SERVER_LOCATION, (1, super::MANY), SYNTAX, "",
        "Sets the name servers (default port 53) that resolve the host of a `proxy_pass` with variables and the servers of an upstream with \
        `resolve`. A result is cached for its TTL, or for the time in `valid=`. Without a resolver, the operating system resolves names, including \
        those in its hosts file. With `status_zone=`, the API counts requests and responses.",
        Apply::Level(|l, d, r| l.resolver.servers = resolver(d, r).map(Some))),
    once("resolver", UPSTREAM, (1, super::MANY), SYNTAX, "",
        "Sets the name servers for the servers of this group, instead of those in the `http` block.",
        Apply::Upstream(|u, d, r| u.resolver = resolver(d, r))),
    once("resolver_timeout", HTTP_SERVER_LOCATION, (1, 1), "time", "30s",
        "The maximum time for resolving a name.",
        Apply::Level(|l, d, r| l.resolver.timeout = r.duration(&d.args[0]))),
    once("resolver_timeout", UPSTREAM, (1, 1), "time", "30s",
        "The maximum time for resolving the name of a server of this group.",
        Apply::Upstream(|u, d, r| u.resolver_timeout = r.duration(&d.args[0]))),
    once("resolver", ACME_ISSUER, (1, super::MANY), SYNTAX, "",
        "Sets the name servers for the authority's server, instead of those in the `http` block. Without either, the operating system resolves its \
        name.",
        Apply::Issuer(|i, d, r| i.resolver = resolver(d, r))),
    once("resolver_timeout", ACME_ISSUER, (1, 1), "time", "30s",
        "The maximum time for resolving the name of the authority's server.",
        Apply::Issuer(|i, d, r| i.resolver_timeout = r.duration(&d.args[0]))),
];

fn resolver(directive: &Directive, reading: &mut Reading<'_>) -> Option<ResolverId> {
    let mut made = Resolver {
        span: directive.span,
        zone: None,
        servers: Vec::new(),
        valid: None,
        ipv4: true,
        ipv6: true,
    };
    for word in &directive.args {
        match parameter(word) {
            Some(("valid", value)) => made.valid = reading.duration(&value),
            Some(("ipv4", value)) => made.ipv4 = is_on(&value, reading),
            Some(("ipv6", value)) => made.ipv6 = is_on(&value, reading),
            Some(("status_zone", value)) => made.zone = Some(value.text),
            _ => made.servers.extend(server(word, reading)),
        }
    }
    if !made.ipv4 && !made.ipv6 {
        reading
            .error(directive.span, "\"ipv4\" and \"ipv6\" cannot both be \"off\"")
            .help("leave one of them on");
        return None;
    }
    // One that is wrong has its error already.
    let is_parameter =
        |word: &Word| matches!(parameter(word), Some(("valid" | "ipv4" | "ipv6" | "status_zone", _)));
    if directive.args.iter().all(is_parameter) {
        reading
            .error(directive.span, "no name servers defined")
            .help("write an address, as in resolver 127.0.0.11 valid=10s;");
        return None;
    }
    reading.declared.resolvers.push(made);
    Some(ResolverId(reading.declared.resolvers.len() as u32 - 1))
}

fn server(word: &Word, reading: &mut Reading<'_>) -> Option<PeerAddress> {
    match PeerAddress::parse(&word.text, 53) {
        None | Some(PeerAddress::Unix(_)) => {
            reading
                .error(word.span, format!("invalid host or port in resolver \"{}\"", word.text))
                .help("write an address, as in 127.0.0.53, [::1]:53 or ns1.example.com");
            None
        }
        found => found,
    }
}

fn is_on(word: &Word, reading: &mut Reading<'_>) -> bool {
    reading.one_of(word, &["on", "off"]) != Some(1)
}
