//! `limit_conn`: how many requests of each key may be under way at a time.
//!
//! Next: `limit`, what it shares with `limit_req`; `millstream-server`'s `limits/limit_conn`.

use std::sync::Arc;

use super::context::{HTTP, HTTP_SERVER_LOCATION};
use super::limit::{self, TooMuch, TooMuchLevel};
use super::phases::Phases;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::declared::Kind;
use crate::declared::limit_zone::{ConnectionZone, ConnectionZoneId};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

without_templates!(ConnectionZoneId);

record! {
    pub struct ConnectionLimit {
        pub zone: ConnectionZoneId,
        pub key: Template,
        /// Connections allowed at a time.
        pub most: u32,
    }
}

record! {
    pub struct ConnectionLimits {
        /// Each zone once, in order.
        pub limits: Arc<[ConnectionLimit]>,
        /// Whether one of the zones has `sync=exact`.
        pub is_exact: bool,
        pub too_much: TooMuch,
    }
}

#[derive(Debug, Clone, Default)]
pub struct LimitConnLevel {
    limits: Vec<ConnectionLimit>,
    too_much: TooMuchLevel,
}

impl Feature for LimitConnLevel {
    type Settings = ConnectionLimits;

    fn inherit(&mut self, above: &Self) {
        if self.limits.is_empty() {
            self.limits.clone_from(&above.limits);
        }
        self.too_much.inherit(&above.too_much);
    }

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> ConnectionLimits {
        let too_much = self.too_much.resolve(place, reading);
        let zones = &reading.declared.connection_zones;
        let is_exact = self.limits.iter().any(|limit| zones[limit.zone.0 as usize].zone.is_exact());
        ConnectionLimits { limits: self.limits.clone().into(), is_exact, too_much }
    }

    fn phases(settings: &ConnectionLimits) -> Phases {
        Phases::LIMITS.only_if(!settings.limits.is_empty())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("limit_conn_zone", HTTP, (2, 4), "key zone=name:size [sync | sync=exact] [cluster=name]", "",
        "Defines a zone that counts concurrent requests by a key, such as `$binary_remote_addr`, for `limit_conn`. One megabyte holds about 16,000 \
        keys; if there is no room for another key, its request is rejected. Requests with an empty key are not counted. With `sync`, requests are counted \
        across all nodes of a `cluster`, which exchange their counts ten times a second. With `sync=exact`, the cluster's engine decides \
        on each request, and the request waits at most the cluster's `timeout` for the decision. If the engine does not respond, each node allows its \
        share of the number, and at least one. `cluster` names the cluster if there are several. `sync`, `sync=exact` and `cluster` are not in nginx.",
        Apply::Declare(zone)),
    often("limit_conn", HTTP_SERVER_LOCATION, (2, 2), "zone number", "",
        "The maximum number of concurrent requests with the same key of the zone, across all workers. These directives are inherited only if the \
        current level has none.",
        Apply::Level(limit_conn)),
    once("limit_conn_status", HTTP_SERVER_LOCATION, (1, 1), "code", "503",
        "The status of rejected requests, 400 to 599.",
        Apply::Level(|l, d, r| l.limit_conn.too_much.status(d, r))),
    once("limit_conn_log_level", HTTP_SERVER_LOCATION, (1, 1), "info | notice | warn | error", "error",
        "The level at which rejected requests are logged.",
        Apply::Level(|l, d, r| l.limit_conn.too_much.log_level(d, r))),
    once("limit_conn_dry_run", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Counts and logs requests without limiting them. The result is in `$limit_conn_status`.",
        Apply::Level(|l, d, r| l.limit_conn.too_much.dry_run(d, r))),
];

fn zone(directive: &Directive, reading: &mut Reading<'_>) {
    if let Some(zone) = limit::zone(Kind::ConnectionZone, directive, reading, &[], |_, _, _| false) {
        reading.declared.connection_zones.push(ConnectionZone { zone });
    }
}

fn limit_conn(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let most = reading.number(&directive.args[1], 1, 65535);
    let zones = &reading.declared.connection_zones;
    let Some(at) = zones.iter().position(|known| known.zone.name == word.text) else {
        let names: Vec<String> = zones.iter().map(|known| known.zone.name.clone()).collect();
        let names = names.iter().map(String::as_str);
        return limit::unknown_zone(word, &word.text, "limit_conn_zone", names, reading);
    };
    let limits = &mut level.limit_conn.limits;
    let (zone, key) = (ConnectionZoneId(at as u32), zones[at].zone.key.clone());
    if limits.iter().any(|known| known.zone == zone) {
        reading
            .error(directive.span, "\"limit_conn\" directive is duplicate")
            .help("write each zone once in a block");
        return;
    }
    limits.extend(most.map(|most| ConnectionLimit { zone, key, most: most as u32 }));
}
