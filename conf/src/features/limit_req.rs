//! `limit_req`: how many requests a second of each key are let in.
//!
//! Next: `limit`, what it shares with `limit_conn`; `millstream-server`'s `limits/limit_req`.

use std::sync::Arc;

use super::context::{HTTP, HTTP_SERVER_LOCATION};
use super::limit::{self, TooMuch, TooMuchLevel, invalid, must_have_zone};
use super::phases::Phases;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, Place, Row, often, once};
use crate::declared::Kind;
use crate::declared::limit_zone::{RequestZone, RequestZoneId};
use crate::reading::{Reading, parameter};
use crate::template::Template;
use crate::tree::{Directive, Word};

without_templates!(RequestZoneId, super::logs::LogLevel);

record! {
    pub struct RequestLimit {
        pub zone: RequestZoneId,
        pub key: Template,
        /// Thousandths of a request by which the rate may be exceeded.
        pub burst: u64,
        /// Thousandths of a request by which it may be exceeded without delay.
        pub undelayed: u64,
    }
}

record! {
    pub struct RequestLimits {
        /// Each zone once, in order.
        pub limits: Arc<[RequestLimit]>,
        /// Whether one of the zones has `sync=exact`.
        pub is_exact: bool,
        pub too_much: TooMuch,
    }
}

#[derive(Debug, Clone, Default)]
pub struct LimitReqLevel {
    limits: Vec<RequestLimit>,
    too_much: TooMuchLevel,
}

impl Feature for LimitReqLevel {
    type Settings = RequestLimits;

    fn inherit(&mut self, above: &Self) {
        if self.limits.is_empty() {
            self.limits.clone_from(&above.limits);
        }
        self.too_much.inherit(&above.too_much);
    }

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> RequestLimits {
        let too_much = self.too_much.resolve(place, reading);
        let zones = &reading.declared.request_zones;
        let is_exact = self.limits.iter().any(|limit| zones[limit.zone.0 as usize].zone.is_exact());
        RequestLimits { limits: self.limits.clone().into(), is_exact, too_much }
    }

    fn phases(settings: &RequestLimits) -> Phases {
        Phases::LIMITS.only_if(!settings.limits.is_empty())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("limit_req_zone", HTTP, (3, 5), "key zone=name:size rate=rate [sync | sync=exact] [cluster=name]", "",
        "Defines a zone that counts requests by a key, such as `$binary_remote_addr`, for `limit_req`. The rate is in requests per second (`10r/s`) \
        or per minute (`30r/m`). One megabyte holds about 8,000 keys; if there is no room, the least recently used key is removed. Requests with an \
        empty key are not counted. Requests are counted across all workers. With `sync`, they are also counted across all nodes of a `cluster`, which \
        exchange what they have counted ten times a second. With `sync=exact`, the cluster's engine decides on each request, and the request waits \
        at most the cluster's `timeout` for the decision; use it for logins. If the engine does not respond, each node allows its share \
        of the rate and of the burst. `cluster` names the cluster if there are several. `sync` is as in NGINX Plus; `sync=exact` and `cluster` are not \
        in nginx.",
        Apply::Declare(zone)),
    often("limit_req", HTTP_SERVER_LOCATION, (1, 3), "zone=name [burst=number] [nodelay | delay=number]", "",
        "Limits requests to the rate of a zone. Up to `burst` further requests are delayed until the rate allows them; the first `delay` of these, or \
        with `nodelay` all of them, are processed without delay. Requests beyond the burst are rejected. If there are several zones, a request must \
        be allowed by each, and the longest delay is used. These directives are inherited only if the current level has none.",
        Apply::Level(limit_req)),
    once("limit_req_status", HTTP_SERVER_LOCATION, (1, 1), "code", "503",
        "The status of rejected requests, 400 to 599.",
        Apply::Level(|l, d, r| l.limit_req.too_much.status(d, r))),
    once("limit_req_log_level", HTTP_SERVER_LOCATION, (1, 1), "info | notice | warn | error", "error",
        "The level at which rejected requests are logged. Delayed requests are logged one level lower.",
        Apply::Level(|l, d, r| l.limit_req.too_much.log_level(d, r))),
    once("limit_req_dry_run", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Counts and logs requests without limiting them. The result is in `$limit_req_status`.",
        Apply::Level(|l, d, r| l.limit_req.too_much.dry_run(d, r))),
];

fn zone(directive: &Directive, reading: &mut Reading<'_>) {
    let mut rate = Some(1000);
    let zone = limit::zone(Kind::RequestZone, directive, reading, &["rate="], |name, value, reading| {
        if name == "rate" {
            rate = parse_rate(value, reading);
        }
        name == "rate"
    });
    // One with a wrong rate is there, so that its use is not a second error.
    if let Some(zone) = zone {
        reading.declared.request_zones.push(RequestZone { zone, rate: rate.unwrap_or(1000) });
    }
}

/// Thousandths of a request per second, rounded down as in nginx.
fn parse_rate(word: &Word, reading: &mut Reading<'_>) -> Option<u64> {
    let text = word.text.as_str();
    let (number, seconds) = match (text.strip_suffix("r/s"), text.strip_suffix("r/m")) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 60),
        _ => (text, 1),
    };
    let whole = number.parse::<u64>().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()));
    let rate = whole.and_then(|number| number.checked_mul(1000)).map(|thousandths| thousandths / seconds);
    let rate = rate.filter(|rate| (1..=i64::MAX as u64).contains(rate));
    if rate.is_none() {
        reading
            .error(word.span, format!("invalid rate \"{text}\""))
            .help("write a whole number of requests a second or a minute, as in rate=10r/s or rate=30r/m");
    }
    rate
}

fn limit_req(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let mut zone = None;
    let (mut burst, mut undelayed) = (0, 0);
    for word in &directive.args {
        match parameter(word) {
            Some(("zone", value)) => zone = Some(value),
            Some(("burst", value)) => burst = thousandths(&value, reading),
            Some(("delay", value)) => undelayed = thousandths(&value, reading),
            None if word.text == "nodelay" => undelayed = i64::MAX as u64,
            _ => invalid(word, &["zone=", "burst=", "delay=", "nodelay"], reading),
        }
    }
    let Some(word) = zone else { return must_have_zone(directive, "zone=one", reading) };
    let zones = &reading.declared.request_zones;
    let Some(at) = zones.iter().position(|known| known.zone.name == word.text) else {
        let names: Vec<String> = zones.iter().map(|known| known.zone.name.clone()).collect();
        let names = names.iter().map(String::as_str);
        return limit::unknown_zone(&word, &word.text, "limit_req_zone", names, reading);
    };
    let limits = &mut level.limit_req.limits;
    let (zone, key) = (RequestZoneId(at as u32), zones[at].zone.key.clone());
    if limits.iter().any(|known| known.zone == zone) {
        reading
            .error(directive.span, "\"limit_req\" directive is duplicate")
            .help("write each zone once in a block");
        return;
    }
    limits.push(RequestLimit { zone, key, burst, undelayed });
}

fn thousandths(word: &Word, reading: &mut Reading<'_>) -> u64 {
    const MOST: u64 = i64::MAX as u64 / 1000;
    reading.number(word, 1, MOST).map_or(0, |number| number * 1000)
}
