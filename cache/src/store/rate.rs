//! `proxy_cache_invalidation rate=`: how often what is stored under a key is taken out because of an unsafe request.
//!
//! The first request takes it out at once. One that comes sooner than the rate allows is promised a turn when the time has
//! come, and all that come until then are done by that one turn: what is stored is never older than the last change by more
//! than the rate's interval, and never asked for more often. A table of fixed size, in sets by the key's hash: where a set is
//! full the turn that is longest ago is forgotten, so a flood of other keys can only make turns come sooner. Pure but for
//! the moment, which is handed in.

use std::time::Duration;

/// Keys in a set, and sets: 4,096 keys, 96 KiB once the first is met.
const WAYS: usize = 8;
const SETS: usize = 512;
/// After so long a promised turn that nobody took is forgotten: whoever had promised it is gone.
const PATIENCE: i64 = 1000;

/// What an unsafe request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Take it out.
    Now,
    /// Take it out at this moment, in milliseconds since 1970.
    At(i64),
    /// Nothing: somebody will, soon enough.
    Promised,
}

/// The turns of a zone's keys.
#[derive(Debug, Default)]
pub(super) struct Rate(Vec<Place>);

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    hash: u64,
    /// The next turn is not before this moment; 0 = the place is free.
    next: i64,
    promised: bool,
}

impl Rate {
    /// What a request may do at this moment.
    pub(super) fn turn(&mut self, hash: u64, interval: Duration, now: i64) -> Turn {
        if self.0.is_empty() {
            self.0 = vec![Place::default(); SETS * WAYS];
        }
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let first = hash as usize % SETS * WAYS;
        let set = &mut self.0[first..first + WAYS];
        let Some(place) = set.iter_mut().find(|place| place.hash == hash && place.next != 0) else {
            let place = set.iter_mut().min_by_key(|place| place.next).expect("a set has places");
            *place = Place { hash, next: now.saturating_add(interval), promised: false };
            return Turn::Now;
        };
        // A clock that was set back must not hold turns up for longer than the rate does.
        place.next = place.next.min(now.saturating_add(interval));
        let is_due = now >= place.next;
        match place.promised {
            true if now < place.next.saturating_add(PATIENCE) => Turn::Promised,
            false if !is_due => {
                place.promised = true;
                Turn::At(place.next)
            }
            _ => {
                *place = Place { hash, next: now.saturating_add(interval), promised: false };
                Turn::Now
            }
        }
    }

    /// A promised turn is taken.
    pub(super) fn taken(&mut self, hash: u64, interval: Duration, now: i64) {
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let first = hash as usize % SETS * WAYS;
        let set = self.0.get_mut(first..first + WAYS).unwrap_or_default();
        if let Some(place) = set.iter_mut().find(|place| place.hash == hash && place.promised) {
            (place.next, place.promised) = (now.saturating_add(interval), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_turn_a_second_and_what_comes_sooner_is_done_by_the_next() {
        let mut rate = Rate::default();
        assert_eq!(rate.turn(7, SECOND, 10_000), Turn::Now);
        assert_eq!(rate.turn(7, SECOND, 10_001), Turn::At(11_000));
        assert_eq!(rate.turn(7, SECOND, 10_500), Turn::Promised);
        assert_eq!(rate.turn(8, SECOND, 10_500), Turn::Now, "another key has its own");
        rate.taken(7, SECOND, 11_003);
        assert_eq!(rate.turn(7, SECOND, 11_500), Turn::At(12_003));
        rate.taken(7, SECOND, 12_003);
        assert_eq!(rate.turn(7, SECOND, 13_003), Turn::Now);
    }

    #[test]
    fn a_promise_that_nobody_keeps_is_not_waited_for() {
        let mut rate = Rate::default();
        rate.turn(7, SECOND, 10_000);
        assert_eq!(rate.turn(7, SECOND, 10_001), Turn::At(11_000));
        assert_eq!(rate.turn(7, SECOND, 11_999), Turn::Promised);
        assert_eq!(rate.turn(7, SECOND, 12_000), Turn::Now);
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let mut rate = Rate::default();
        rate.turn(7, SECOND, 1_000_000);
        assert_eq!(rate.turn(7, SECOND, 10_000), Turn::At(11_000));
    }

    #[test]
    fn a_flood_of_keys_takes_no_more_room() {
        let mut rate = Rate::default();
        for hash in 0..100_000 {
            assert_eq!(rate.turn(hash, SECOND, 10_000 + hash as i64), Turn::Now);
        }
        assert_eq!(rate.0.len(), SETS * WAYS);
    }
}
