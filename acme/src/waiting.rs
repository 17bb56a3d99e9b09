//! Waiting without anybody else having to, and the chance by which not all wait alike.
//!
//! How long is decided elsewhere: `schedule` and `stapling`, which get a moment or a chance from outside.

use aws_lc_rs::rand;
use millstream_net::clock;
use millstream_net::timer::Deadline;
use std::time::Duration;

pub(crate) async fn pause(wait: Duration) {
    let mut moment = Deadline::new();
    moment.set(clock::now() + wait);
    moment.passed().await;
}

/// In 0..1.
pub(crate) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without random bytes there is no key either.
    _ = rand::fill(&mut bytes);
    f64::from(u32::from_be_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
