//! How much of what has come a connection takes before others have their turn.
//!
//! A request that is answered at once costs its few microseconds, any other may cost a connection to an upstream: of these there is a
//! number, of all a time.

use millstream_net::clock;
use std::time::{Duration, Instant};

const MOST_OPENED: u16 = 32;
const LONGEST: Duration = Duration::from_millis(1);
/// Work between two looks at the clock: one per frame, and one for each [`OCTETS`] of it.
const WORK_AT_ONCE: u16 = 16;
const OCTETS: usize = 256;

#[derive(Debug)]
pub(super) struct FrameTurn {
    end: Instant,
    opened: u16,
    work: u16,
    is_over: bool,
}

impl FrameTurn {
    pub(super) fn begin(now: Instant) -> FrameTurn {
        FrameTurn { end: now + LONGEST, opened: 0, work: 0, is_over: false }
    }

    pub(super) fn goes_on(&mut self) -> bool {
        self.is_over |= self.opened >= MOST_OPENED;
        if self.work >= WORK_AT_ONCE {
            self.work = 0;
            self.is_over |= clock::now() >= self.end;
        }
        !self.is_over
    }

    pub(super) fn take(&mut self, octets: usize) {
        // A frame has 2^14 octets at the most (RFC 9113 §4.2), as we allow no more.
        self.work = self.work.saturating_add(u16::try_from(1 + octets / OCTETS).unwrap_or(u16::MAX));
    }

    pub(super) fn open(&mut self) {
        self.opened += 1;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_with_its_last_request_or_its_time() {
        let mut turn = FrameTurn::begin(clock::now() + Duration::from_secs(60));
        for _ in 0..MOST_OPENED {
            assert!(turn.goes_on());
            turn.open();
        }
        assert!(!turn.goes_on() && turn.is_over());
        let took = |octets: usize| {
            let mut late = FrameTurn::begin(clock::now() - LONGEST);
            (0..100)
                .take_while(|_| {
                    let goes_on = late.goes_on();
                    late.take(octets);
                    goes_on
                })
                .count()
        };
        assert_eq!((took(0), took(16_000)), (usize::from(WORK_AT_ONCE), 1));
        let mut other = FrameTurn::begin(clock::now() + Duration::from_secs(60));
        assert_eq!((0..1_000).take_while(|_| other.goes_on()).count(), 1_000, "hits are many");
    }
}
