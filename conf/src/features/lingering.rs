//! How a connection is closed whose client may still send.
//!
//! Next: `millstream-server`'s `connection/lingering`.

use std::time::Duration;

use super::context::HTTP_SERVER_LOCATION;
use super::level::settings;
use super::templates::without_templates;
use super::{Apply, Row, once};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LingeringClose {
    Off,
    On,
    Always,
}

without_templates!(LingeringClose);

settings! {
    pub struct Lingering, LingeringLevel(place, reading) {
        close: LingeringClose = LingeringClose::On,
        time: Duration = Duration::from_secs(30),
        timeout: Duration = Duration::from_secs(5),
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("lingering_close", HTTP_SERVER_LOCATION, (1, 1), "off | on | always", "on",
        "Reads and discards data that a client is still sending before its connection is closed, so that the client can read the response. `on`: only if \
        data was left unread; `always`: always. With HTTP/2, the end of a successful response that was made without reading \
        the whole request body is held back until the rest of the body has been received and discarded, or `lingering_time`, `lingering_timeout` or \
        `client_max_body_size` is reached.",
        Apply::Level(|l, d, r| {
            use LingeringClose::{Always, Off, On};
            l.lingering.close = r.choice(&d.args[0], &[("off", Off), ("on", On), ("always", Always)]);
        })),
    once("lingering_time", HTTP_SERVER_LOCATION, (1, 1), "time", "30s",
        "The maximum duration of `lingering_close`.",
        Apply::Level(|l, d, r| l.lingering.time = r.duration(&d.args[0]))),
    once("lingering_timeout", HTTP_SERVER_LOCATION, (1, 1), "time", "5s",
        "The maximum time that `lingering_close` waits for more data.",
        Apply::Level(|l, d, r| l.lingering.timeout = r.duration(&d.args[0]))),
];
