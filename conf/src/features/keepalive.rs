//! How long a client's connection is kept for further requests.
//!
//! Next: `millstream-server`'s `connection`, which keeps it.

use std::time::Duration;

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, Level, MANY, Row, idle, often, once};
use crate::reading::Reading;
use crate::tree::Directive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepaliveDisable {
    pub msie6: bool,
    pub safari: bool,
}

without_templates!(KeepaliveDisable);

settings! {
    pub struct Keepalive, KeepaliveLevel(place, reading) {
        /// Zero = no keep-alive.
        timeout: Duration = Duration::from_secs(75),
        /// Sent as `Keep-Alive: timeout=`. A level that writes only the first argument inherits this, as in
        /// nginx.
        header: Option<Duration> = None,
        requests: u64 = 1000,
        time: Duration = Duration::from_secs(3600),
        disable: KeepaliveDisable = KeepaliveDisable { msie6: true, safari: false },
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("keepalive_timeout", HTTP_SERVER_LOCATION, (1, 2), "timeout [header_timeout]", "75s",
        "The time for which an idle client connection is kept open. 0 closes it after each response. The second time is sent as `Keep-Alive: \
        timeout=`.",
        Apply::Level(keepalive_timeout)),
    once("keepalive_requests", HTTP_SERVER_LOCATION, (1, 1), "number", "1000",
        "The maximum number of requests on a client connection.",
        Apply::Level(|l, d, r| l.keepalive.requests = r.number(&d.args[0], 0, u64::MAX))),
    once("keepalive_time", HTTP_SERVER_LOCATION, (1, 1), "time", "1h",
        "The maximum age of a client connection. After this time, it is closed at the end of a response.",
        Apply::Level(|l, d, r| l.keepalive.time = r.duration(&d.args[0]))),
    often("keepalive_disable", HTTP_SERVER_LOCATION, (1, MANY), "none | msie6 | safari …", "msie6",
        "Closes connections of some browsers after a response: with `msie6`, Internet Explorer 4 to 6 after a POST; with `safari`, Safari on macOS.",
        Apply::Level(keepalive_disable)),
    idle("keepalive_min_timeout", HTTP_SERVER_LOCATION, (1, 1), "time",
        "The minimum time that an idle connection is kept if nginx stops or connections run short.",
        "an idle connection is kept for at least 200 ms if connections run short, and for 500 ms at a stop"),
];

fn keepalive_disable(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let none = KeepaliveDisable { msie6: false, safari: false };
    let disable = level.keepalive.disable.get_or_insert(none);
    for word in &directive.args {
        match reading.one_of(word, &["none", "msie6", "safari"]) {
            Some(1) => disable.msie6 = true,
            Some(2) => disable.safari = true,
            _ => {}
        }
    }
}

fn keepalive_timeout(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    level.keepalive.timeout = reading.duration(&directive.args[0]);
    let header = directive.args.get(1).and_then(|word| reading.duration(word));
    level.keepalive.header = header.map(|header| Some(header).filter(|header| !header.is_zero()));
}
