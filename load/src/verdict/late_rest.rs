//! Answers whose rest comes late: the two ends of a connection wait for each other, and nobody works.
//!
//! Nagle's algorithm (RFC 896) holds a small packet back until the one before it is acknowledged; the other end delays that
//! acknowledgement (RFC 9293 §3.8.6.3), Linux by 40 ms at the least (`TCP_DELACK_MIN`). A server that writes head and body one
//! after the other meets both, on connections that are kept: on a new one Linux acknowledges the first packets at once.

use super::{Once, Run};
use crate::report::quantity::seconds;
use std::ops::RangeInclusive;

/// Seconds by which it is late in the mean: two of three answers by the 40 ms, or all of them by what comes on top.
const LATE: RangeInclusive<f64> = 0.027..=0.060;

/// What is to be said of an API that was asked straight, where its answers are such; once is a single request on a new connection.
pub fn late_rest(run: &Run, once: &Once) -> Option<String> {
    let (rest, more) = (run.latency - run.first_byte, run.latency - once.mean);
    (LATE.contains(&rest) && more >= *LATE.start()).then(|| {
        format!(
            "The rest of the API's responses arrives {} after their first byte, though no CPU is at work. That is the time of Nagle's algorithm and \
            a delayed acknowledgement when head and body are written one after the other on a reused connection: TCP_NODELAY, or one write for both, \
            saves it without any proxy.",
            seconds(rest)
        )
    })
}
