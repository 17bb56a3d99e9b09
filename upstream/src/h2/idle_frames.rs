//! Frames that carry nothing: too many of them in too short a time only keep a core busy (RFC 9113 §10.5).
//!
//! A PING every ten seconds on a connection that waits for messages is none of them. Next: `frames`, which counts.

use millstream_wire::h2::frame::Frame;
use std::time::{Duration, Instant};

/// In a row, within [`A_WHILE`].
const MOST: u32 = 10_000;
const A_WHILE: Duration = Duration::from_secs(100);

/// When the first came since a frame that carried something, and how many.
#[derive(Debug, Default)]
pub(super) struct IdleFrames(Option<(Instant, u32)>);

impl IdleFrames {
    /// Whether there are too many with this one.
    pub(super) fn overflow(&mut self, frame: &Frame<'_>, now: fn() -> Instant) -> bool {
        if carries_something(frame) {
            self.0 = None;
            return false;
        }
        let (since, count) = self.0.get_or_insert_with(|| (now(), 0));
        *count += 1;
        if *count <= MOST {
            return false;
        }
        let is_soon = now().saturating_duration_since(*since) < A_WHILE;
        self.0 = None;
        is_soon
    }
}

/// Whether a frame affects a call or a window.
fn carries_something(frame: &Frame<'_>) -> bool {
    match frame {
        Frame::Data { data, end, .. } => !data.is_empty() || *end,
        Frame::Headers { .. }
        | Frame::Continuation { .. }
        | Frame::WindowUpdate { .. }
        | Frame::Reset { .. }
        | Frame::GoAway { .. }
        | Frame::PushPromise { .. } => true,
        Frame::Settings { .. }
        | Frame::Ping { .. }
        | Frame::Priority { .. }
        | Frame::PriorityUpdate { .. }
        | Frame::Unknown { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_net::clock;
    use std::cell::Cell;

    thread_local! {
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static START: Instant = clock::now();
    }

    fn now() -> Instant {
        START.with(|start| *start) + PASSED.get()
    }

    #[test]
    fn a_ping_now_and_then_is_never_too_many_and_ten_thousand_at_once_are() {
        let ping = Frame::Ping { ack: false, payload: [0; 8] };
        let mut frames = IdleFrames::default();
        for _ in 0..25_000 {
            PASSED.set(PASSED.get() + Duration::from_secs(10));
            assert!(!frames.overflow(&ping, now), "one every ten seconds");
        }
        let mut frames = IdleFrames::default();
        let taken = (0..20_000).take_while(|_| !frames.overflow(&ping, now)).count();
        assert_eq!(taken, MOST as usize);
    }
}
