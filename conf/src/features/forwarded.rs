//! Proxies in front of this one, and what they say of the client.
//!
//! Next: `millstream-server`'s `forwarded`, which reads their fields.

use std::sync::Arc;

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::right::networks;
use super::{Apply, MANY, Row, often};
use crate::network::Network;

settings! {
    pub struct Forwarded, ForwardedLevel(place, reading) {
        /// `trusted_proxy`: whose X-Forwarded-* are trusted.
        trusted: Vec<Network> => Arc<[Network]> = Vec::new(),
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("trusted_proxy", HTTP_SERVER_LOCATION, (1, MANY), "address | CIDR | unix: | all …", "",
        "Sets the proxies whose X-Forwarded-For, X-Real-IP, X-Forwarded-Proto and X-Forwarded-Host are trusted, in the variables `$forwarded_for`, \
        `$forwarded_addr`, `$forwarded_proto` and `$forwarded_host`. For other clients, these variables describe the connection. A proxy is \
        recognized only by the address of the connection. X-Real-IP is used only if there is no X-Forwarded-For. If a response depends on such a \
        variable, add the variable to `proxy_cache_key`. These directives are inherited only if the current level has none.",
        Apply::Level(|l, d, r| {
            let networks = networks(&d.args, r).into_iter().map(|(network, _)| network);
            l.forwarded.trusted.get_or_insert_default().extend(networks);
        })),
];
