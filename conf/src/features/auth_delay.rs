//! `auth_delay`: how long a request waits that is refused with 401.
//!
//! Next: `millstream-server`'s `phase`.

use std::time::Duration;

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;

level! {
    pub struct AuthDelayLevel {
        /// The time; 0 = none.
        delay: Duration,
    }
}

impl Feature for AuthDelayLevel {
    type Settings = Duration;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Duration {
        self.delay.unwrap_or_default()
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("auth_delay", HTTP_SERVER_LOCATION, (1, 1), "time", "0s",
        "Delays each 401 by this time, to slow down password guessing and timing attacks.",
        Apply::Level(|l, d, r| l.auth_delay.delay = r.duration(&d.args[0]))),
];
