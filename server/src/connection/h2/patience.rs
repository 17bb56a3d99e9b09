//! How much work a client may make that brings it nothing: resets, pings, settings and frames that carry nothing.
//!
//! A connection has an account. Such work is taken off it, answers and time put something on it, and who has overdrawn it is told to be calm
//! (RFC 9113 §10.5, ENHANCE_YOUR_CALM). Nobody else's connection is touched. Before: `frames`, which charges.

use std::time::Instant;

/// What an account holds at the most, and a new one has.
const MOST: u32 = 100_000;
/// What each second puts on it.
const A_SECOND: u32 = 10_000;
/// What each answer puts on it.
const AN_ANSWER: u32 = 1_000;

/// What each piece of an answer puts on it that went out as it came, as the messages of a stream do: its client may say PING for each, as some do
/// to measure the way, and something small of its own.
const A_PIECE: u32 = 110;

/// Work that brings nothing, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A request that its client gives up, whatever was done for it: 200 at once, 20 a second (CVE-2023-44487).
    Reset,
    /// A request that is not taken on: 200 at once.
    Refused,
    /// A header block of so many octets that is too large or no request: each octet of it may stand for a line (CVE-2016-6581).
    Block(usize),
    /// SETTINGS, PING and answers to them, GOAWAY, PRIORITY, PRIORITY_UPDATE, frames of unknown kinds, frames of requests that are over: 1,000
    /// at once, 100 a second (CVE-2019-9512, -9515, -9516).
    Control,
    /// DATA, HEADERS or CONTINUATION without anything in it that does not end anything (CVE-2019-9518).
    Empty,
    /// A little of a body or of a window (CVE-2019-9511), or a window of a request that is over: 20,000 at once, 2,000 a second.
    Tiny,
}

impl Work {
    fn cost(self) -> u32 {
        match self {
            Work::Reset | Work::Refused => 500,
            Work::Block(octets) => 500 + octets.min(MOST as usize) as u32 / 8,
            Work::Control | Work::Empty => 100,
            Work::Tiny => 5,
        }
    }
}

/// Pieces of bodies and windows below this are [`Work::Tiny`].
pub(super) const TINY: u32 = 32;

/// A connection's account.
#[derive(Debug)]
pub(super) struct Patience {
    left: u32,
    seen: Instant,
}

/// The account is overdrawn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overdrawn;

impl Patience {
    /// That of a new connection.
    pub(super) fn new(now: Instant) -> Patience {
        Patience { left: MOST, seen: now }
    }

    /// Takes work off it.
    pub(super) fn charge(&mut self, work: Work, now: Instant) -> Result<(), Overdrawn> {
        let cost = work.cost();
        if self.left < cost {
            let passed = now.saturating_duration_since(self.seen).as_millis().min(u128::from(MOST)) as u32;
            self.seen = now;
            self.left = (self.left + passed * (A_SECOND / 1000)).min(MOST);
        }
        self.left = self.left.checked_sub(cost).ok_or(Overdrawn)?;
        Ok(())
    }

    /// So many pieces of answers went out, none of which the client's window cut.
    pub(super) fn earn_pieces(&mut self, pieces: u32) {
        self.left = self.left.saturating_add(pieces.saturating_mul(A_PIECE)).min(MOST);
    }

    /// A request was answered whole.
    pub(super) fn earn(&mut self) {
        self.left = (self.left + AN_ANSWER).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_net::clock;
    use std::time::Duration;

    #[test]
    fn who_gives_up_more_requests_than_it_may_has_to_be_calm() {
        let start = clock::now();
        let mut patience = Patience::new(start);
        for _ in 0..200 {
            assert_eq!(patience.charge(Work::Reset, start), Ok(()));
        }
        assert_eq!(patience.charge(Work::Reset, start), Err(Overdrawn));
        let later = start + Duration::from_millis(100);
        assert_eq!(patience.charge(Work::Reset, later), Ok(()));
        assert_eq!(patience.charge(Work::Reset, later), Ok(()));
        assert_eq!(patience.charge(Work::Reset, later), Err(Overdrawn));
    }

    #[test]
    fn who_takes_as_many_answers_as_it_gives_up_goes_on_for_ever() {
        let now = clock::now();
        let mut patience = Patience::new(now);
        for _ in 0..10_000 {
            assert_eq!(patience.charge(Work::Reset, now), Ok(()));
            patience.earn();
        }
    }
}
