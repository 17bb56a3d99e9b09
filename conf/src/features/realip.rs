//! The client's address out of a field, where a proxy in front is trusted to say it: `set_real_ip_from` and its family.
//!
//! Names are asked for when the configuration is read, as in nginx. Beside it: `forwarded`, which believes proxies without changing who the
//! client is. Next: `millstream-server`'s `realip`.

use std::net::{SocketAddr, ToSocketAddrs};

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::templates::without_templates;
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::network::{self, Network};
use crate::reading::Reading;
use crate::tree::Directive;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealIp {
    /// `set_real_ip_from`: trusted proxies.
    pub from: Vec<Network>,
    pub header: RealIpHeader,
    /// The last address that is not a trusted proxy's, instead of just the last.
    pub recursive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RealIpHeader {
    ForwardedFor,
    /// The first line of a field.
    Field(Box<str>),
    ProxyProtocol,
}

without_templates!(RealIp);

level! {
    pub struct RealipLevel {
        from: Vec<Network>,
        header: RealIpHeader,
        recursive: bool,
    }
}

impl Feature for RealipLevel {
    type Settings = Option<RealIp>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<RealIp> {
        let header = self.header.clone().unwrap_or_else(|| RealIpHeader::Field("X-Real-IP".into()));
        let from = self.from.clone()?;
        Some(RealIp { from, header, recursive: self.recursive.unwrap_or(false) })
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("set_real_ip_from", HTTP_SERVER_LOCATION, (1, 1), "address | CIDR | unix: | name", "",
        "Sets a trusted proxy whose `real_ip_header` contains the client's address. This address replaces that of the connection everywhere: in \
        `$remote_addr` and `$binary_remote_addr`, in logs, in `geo` and `ip_hash`, and for `proxy_cache_purge_allow`. A name is resolved when the \
        configuration is read.",
        Apply::Level(from)),
    once("real_ip_header", HTTP_SERVER_LOCATION, (1, 1), "field | X-Real-IP | X-Forwarded-For | proxy_protocol", "X-Real-IP",
        "Sets the field with the client's address: all lines of `X-Forwarded-For`, or the first line of another field. With `proxy_protocol`, the \
        address is taken from the PROXY protocol header, on listeners that accept one.",
        Apply::Level(header)),
    once("real_ip_recursive", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Uses the last address in the field that is not one of `set_real_ip_from`, instead of the last address.",
        Apply::Level(|l, d, r| l.realip.recursive = r.flag(&d.args[0]))),
];

fn from(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if !reading.without_variables(word, "an address") {
        return;
    }
    let networks = level.realip.from.get_or_insert_default();
    match network::parse(&word.text) {
        Ok((network @ (Network::Ip(..) | Network::Unix), has_more_bits)) => {
            if has_more_bits {
                reading
                    .diagnostics
                    .warning(word.span, format!("low address bits of {} are meaningless", word.text))
                    .help("bits outside the mask are ignored; write the network's first address");
            }
            networks.push(network);
        }
        _ => match named(&word.text) {
            Some(found) => networks.extend(found.map(|address| {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                Network::Ip(address.ip(), bits)
            })),
            None => {
                reading
                    .error(word.span, format!("host not found in set_real_ip_from \"{}\"", word.text))
                    .help("write an address, a network such as 10.0.0.0/8, or unix:");
            }
        },
    }
}

/// Text that cannot be a name, such as a network with a wrong mask, is not looked up.
fn named(text: &str) -> Option<std::vec::IntoIter<SocketAddr>> {
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if is_name { (text, 0).to_socket_addrs().ok() } else { None }
}

fn header(level: &mut Level, directive: &Directive, _: &mut Reading<'_>) {
    let word = &directive.args[0];
    level.realip.header = Some(match word.text.as_str() {
        "X-Forwarded-For" => RealIpHeader::ForwardedFor,
        "proxy_protocol" => RealIpHeader::ProxyProtocol,
        name => RealIpHeader::Field(name.into()),
    });
}
