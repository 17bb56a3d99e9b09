//! For tests: what is held against a clock, beside what is held against anything else.
//!
//! A machine that is given no CPU for a moment is slower than any bound, so a bound of time may be missed and is tried
//! again. What is wrong is wrong in each run; an exact claim is asserted in each and ends the test at once.

use crate::stop;
use rustix::event::PollFlags;
use std::fmt::Display;
use std::net::TcpStream;
use std::time::Duration;

/// Runs at the most.
const RUNS: u32 = 4;

/// Runs a check until it is in time.
pub(crate) fn timed(check: impl Fn() -> Result<(), String>) {
    let mut late = Vec::new();
    for _ in 0..RUNS {
        match check() {
            Ok(()) => return,
            Err(why) => late.push(why),
        }
    }
    panic!("none of {RUNS} runs was in time: {late:#?}");
}

/// A claim that holds on a machine that has its CPU.
pub(crate) fn in_time(holds: bool, why: impl Display) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_string()) }
}

/// What a server's work on an answer is to its client: so long, unless the client leaves or says more before.
pub(crate) fn work_on(client: &TcpStream, time: Duration) {
    _ = stop::wait(client, PollFlags::IN, None, time);
}
