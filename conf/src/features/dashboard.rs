//! `dashboard`: where the live dashboard is, with the API and the metrics beside it.
//!
//! Who may look is said by `api_allow` and `api_token` of the same level. Before: `api`, whose level holds it; next: `own_server`, which
//! makes a server of it; `millstream-admin`'s `api`, which answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::context::HTTP;
use super::listen::listen_address;
use super::right::{Write, write_parameter};
use super::{Apply, Level, Row, once};
use crate::address::ListenAddress;
use crate::reading::Reading;
use crate::source::Span;
use crate::tree::Directive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dashboard {
    pub address: SocketAddr,
    pub write: Write,
    /// `optional`: not an error if the address is in use.
    pub optional: bool,
    pub span: Span,
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("dashboard", HTTP, (1, 3), "[address:]port [write=on|token|off] [optional] | off", "off",
        "Opens the live dashboard: a page at `/`, the metrics at `/metrics`, the API at `/api/9/` (`write=token` by default), `/healthz` and \
        `/readyz`. A port alone means 127.0.0.1. By default, only clients on this machine may read. `api_allow` and `api_token` in the `http` block \
        allow others, and an address of another network requires one of them. With `write=token`, clients in `api_allow` may only read; changes \
        require the token of `api_token`, or `api_allow local` for programs on this machine. With `write=on`, all clients in `api_allow` may make \
        changes. With `optional`, the server starts without the dashboard if the address is in use.",
        Apply::Level(dashboard)),
];

/// A port alone is on loopback.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return (port != 0).then_some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    match listen_address(text)? {
        // Without a port it would be that of HTTP, which nobody means.
        ListenAddress::Tcp(address) if text.ends_with(&format!(":{}", address.port())) => Some(address),
        _ => None,
    }
}

fn dashboard(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (word, parameters) = (&directive.args[0], &directive.args[1..]);
    let (mut write, mut optional) = (Write::Token, false);
    for word in parameters {
        if word.text == "optional" {
            optional = true;
        } else if !write_parameter(word, &mut write, reading) {
            return reading.not_one_of(word, &["optional", "write=on", "write=token", "write=off"]);
        }
    }
    if word.text == "off" {
        return;
    }
    let Some(address) = address(&word.text) else {
        reading.error(word.span, format!("\"{}\" is not an address for the dashboard", word.text)).help(
            "write a port (for this machine only), an address with a port such as 127.0.0.1:8081, or off",
        );
        return;
    };
    level.api.dashboard = Some(Dashboard { address, write, optional, span: directive.span });
}

/// A reachable address needs a list or a token: by default only this machine is admitted, so no one could use
/// it.
pub(crate) fn refuse_open(level: &Level, reading: &mut Reading<'_>) {
    let Some(Dashboard { address, span, .. }) = level.api.dashboard else { return };
    let right = &level.api.right;
    if !address.ip().is_loopback() && right.allow.is_none() && right.token.is_none() {
        reading
            .error(span, format!("the dashboard at {address} is open to other machines, and nothing limits access"))
            .help("write api_allow with their addresses, or api_token, in the same block; or only a port, for this machine");
    }
}
