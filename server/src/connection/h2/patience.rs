//! How much work a client may make that brings it nothing: resets, pings, settings and frames that carry nothing.
//!
//! A connection has two purses. Such work is taken out of the first, into which time and responses put something; what it made an upstream
//! do in vain is taken out of the second as well, which no hit fills. A client that overdraws one is told to be calm (RFC 9113 §10.5,
//! ENHANCE_YOUR_CALM). Other connections are not touched.

use std::time::Instant;

/// Initial and largest balance of a purse.
const MOST: u32 = 100_000;
/// Paid into both each second.
const A_SECOND: u32 = 10_000;
/// Paid into the first for each response.
const A_RESPONSE: u32 = 1_000;
/// Paid into the second for each response from an upstream: pays for one reset.
const AN_UPSTREAM_RESPONSE: u32 = 500;

/// Paid for each piece of a response sent as it arrived, like a stream's messages: some clients send a PING
/// for each to measure the round trip, and another small frame.
const A_PIECE: u32 = 110;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A cancelled request: 200 at once, 20 a second (CVE-2023-44487).
    Reset,
    /// One cancelled by a reset or an error after an upstream was involved: 200 at once, 20 a second, and one
    /// for each response of an upstream.
    Abandoned,
    /// A refused request: 200 at once.
    Refused,
    /// Bytes of a header block that is too large or no request: each may stand for a line (CVE-2016-6581).
    Block(usize),
    /// SETTINGS, PING and their acknowledgements, GOAWAY, PRIORITY, PRIORITY_UPDATE, unknown frames, frames
    /// of ended requests: 1,000 at once, 100 a second (CVE-2019-9512, -9515, -9516).
    Control,
    /// Empty DATA, HEADERS or CONTINUATION without an end flag (CVE-2019-9518).
    Empty,
    /// A small piece of a body or window (CVE-2019-9511), or a window of an ended request: 20,000 at once,
    /// 2,000 a second.
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

/// Bytes below which pieces of bodies and windows are [`Work::Tiny`].
pub(super) const TINY: u32 = 32;

/// The balance of each purse, and the time up to which both were paid.
#[derive(Debug)]
pub(super) struct Patience {
    own: u32,
    upstream: u32,
    seen: Instant,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overdrawn;

impl Patience {
    pub(super) fn new(now: Instant) -> Patience {
        Patience { own: MOST, upstream: MOST, seen: now }
    }

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

    /// Pieces that the client's window did not cut.
    pub(super) fn earn_pieces(&mut self, pieces: u32) {
        put(&mut self.own, pieces.saturating_mul(A_PIECE));
    }

    pub(super) fn earn(&mut self) {
        put(&mut self.own, A_RESPONSE);
    }

    /// After [`Patience::earn`], if an upstream was involved.
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
