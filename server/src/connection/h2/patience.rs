//! How much work a client may make that brings it nothing: resets, pings, settings and frames that carry nothing.
//!
//! A connection has two purses. Such work is taken out of the first, into which time and responses put something; what it made an upstream
//! do in vain is taken out of the second as well, which no hit fills. A client that overdraws one is told to be calm
//! (RFC 9113 §10.5, ENHANCE_YOUR_CALM). Other connections are not touched. Before: `frames`, which charges.

use std::time::Instant;

/// What a purse holds at the most, and a new one has.
const MOST: u32 = 100_000;
/// What each second puts into either.
const A_SECOND: u32 = 10_000;
/// What each response puts into the first.
const A_RESPONSE: u32 = 1_000;
/// What each response puts into the second for which an upstream was asked: it pays for one reset.
const AN_UPSTREAM_RESPONSE: u32 = 500;

/// What each piece of an answer puts on it that went out as it came, as the messages of a stream do: its client may say PING for each, as some do
/// to measure the way, and something small of its own.
const A_PIECE: u32 = 110;

/// Work that brings nothing, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A request that its client gives up, whatever was done for it: 200 at once, 20 a second (CVE-2023-44487).
    Reset,
    /// One that was given up, by a reset or a broken rule, once an upstream was asked for it: 200 at once, 20 a second, and one for each
    /// response of an upstream.
    Abandoned,
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
            Work::Reset | Work::Abandoned | Work::Refused => 500,
            Work::Block(octets) => 500 + octets.min(MOST as usize) as u32 / 8,
            Work::Control | Work::Empty => 100,
            Work::Tiny => 5,
        }
    }
}

/// Pieces of bodies and windows below this are [`Work::Tiny`].
pub(super) const TINY: u32 = 32;

/// A connection's purses: what is left in each, and up to when time was paid into both.
#[derive(Debug)]
pub(super) struct Patience {
    own: u32,
    upstream: u32,
    seen: Instant,
}

/// A purse is overdrawn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overdrawn;

impl Patience {
    /// That of a new connection.
    pub(super) fn new(now: Instant) -> Patience {
        Patience { own: MOST, upstream: MOST, seen: now }
    }

    /// Takes work out of the purse that it is for.
    pub(super) fn charge(&mut self, work: Work, now: Instant) -> Result<(), Overdrawn> {
        if *self.purse_of(work) < work.cost() {
            let passed = now.saturating_duration_since(self.seen).as_millis().min(u128::from(MOST)) as u32;
            self.seen = now;
            put(&mut self.own, passed * (A_SECOND / 1000));
            put(&mut self.upstream, passed * (A_SECOND / 1000));
        }
        let purse = self.purse_of(work);
        *purse = purse.checked_sub(work.cost()).ok_or(Overdrawn)?;
        Ok(())
    }

    fn purse_of(&mut self, work: Work) -> &mut u32 {
        if work == Work::Abandoned { &mut self.upstream } else { &mut self.own }
    }

    /// So many pieces of answers went out, none of which the client's window cut.
    pub(super) fn earn_pieces(&mut self, pieces: u32) {
        put(&mut self.own, pieces.saturating_mul(A_PIECE));
    }

    /// A request was answered whole.
    pub(super) fn earn(&mut self) {
        put(&mut self.own, A_RESPONSE);
    }

    /// That response was one for which an upstream was asked.
    pub(super) fn earn_upstream(&mut self) {
        put(&mut self.upstream, AN_UPSTREAM_RESPONSE);
    }
}

fn put(purse: &mut u32, amount: u32) {
    *purse = purse.saturating_add(amount).min(MOST);
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

    #[test]
    fn hits_do_not_pay_for_what_upstreams_did_in_vain_and_responses_of_upstreams_do() {
        let now = clock::now();
        let mut patience = Patience::new(now);
        for _ in 0..200 {
            assert_eq!(patience.charge(Work::Abandoned, now), Ok(()));
            patience.earn();
        }
        assert_eq!(patience.charge(Work::Abandoned, now), Err(Overdrawn));
        assert_eq!(patience.charge(Work::Reset, now), Ok(()), "the other purse is full");
        for _ in 0..1_000 {
            patience.earn_upstream();
            assert_eq!(patience.charge(Work::Abandoned, now), Ok(()));
        }
        let later = now + Duration::from_millis(50);
        assert_eq!(patience.charge(Work::Abandoned, later), Ok(()));
        assert_eq!(patience.charge(Work::Abandoned, later), Err(Overdrawn));
    }
}
