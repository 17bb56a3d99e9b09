//! `proxy_cache_invalidation rate=`: how often what is stored under a key is taken out because of an unsafe request.
//!
//! The first request takes it out at once. One that comes sooner than the rate allows is promised a turn when the time has
//! come, and all that come until then are done by that one turn: what is stored is never older than the last change by more
//! than the rate's interval, and never asked for more often. The promise is the zone's, not the asker's: it is kept here with
//! its key until somebody takes it, who need not be the one that was promised. A table of fixed size, in sets by the key's
//! hash: where a set is full the turn that is longest ago is forgotten, but no promise. Where there is no room for one the
//! turn comes at once, so a flood of other keys can only make turns come sooner. Pure but for the moment, which is handed in.

use std::time::Duration;

/// Keys in a set, and sets: 4,096 keys, 160 KiB once the first is met.
const WAYS: usize = 8;
const SETS: usize = 512;
/// Bytes of keys that have a promise.
const PROMISED: usize = 1024 * 1024;

/// What an unsafe request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Take it out.
    Now,
    /// Nothing but see to it that promises are kept at this moment, in milliseconds since 1970.
    At(i64),
    /// Nothing: somebody will, soon enough.
    Promised,
}

/// The turns of a zone's keys.
#[derive(Debug, Default)]
pub(super) struct Rate {
    places: Vec<KeyTurn>,
    /// Bytes of the keys in promises.
    promised: usize,
    /// Whether nothing may be put off any more.
    is_over: bool,
}

#[derive(Debug, Clone, Default)]
struct KeyTurn {
    hash: u64,
    /// The next turn is not before this moment; 0 = the place is free.
    next: i64,
    promise: Option<Promise>,
}

#[derive(Debug, Clone)]
struct Promise {
    key: Box<[u8]>,
    /// In milliseconds.
    interval: i64,
}

impl KeyTurn {
    /// The promise whose time has come; the next turn is an interval later. A clock that was set back puts it off by no more
    /// than the rate does.
    fn take_due(&mut self, at: i64, now: i64) -> Option<Box<[u8]>> {
        let next = self.next;
        let is_due = |promise: &mut Promise| at >= next || next > now.saturating_add(promise.interval);
        let Promise { key, interval } = self.promise.take_if(is_due)?;
        self.next = now.saturating_add(interval);
        Some(key)
    }
}

impl Rate {
    /// What a request for a key may do at this moment.
    pub(super) fn turn(&mut self, (hash, key): (u64, &[u8]), interval: Duration, now: i64) -> Turn {
        if self.is_over {
            return Turn::Now;
        }
        if self.places.is_empty() {
            self.places = vec![KeyTurn::default(); SETS * WAYS];
        }
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let set = &mut self.places[places_of(hash)];
        let Some(place) = set.iter_mut().find(|place| place.hash == hash && place.next != 0) else {
            let free = set.iter_mut().filter(|place| place.promise.is_none()).min_by_key(|place| place.next);
            if let Some(place) = free {
                *place = KeyTurn { hash, next: now.saturating_add(interval), promise: None };
            }
            return Turn::Now;
        };
        // A clock that was set back must not hold turns up for longer than the rate does.
        place.next = place.next.min(now.saturating_add(interval));
        let has_room = self.promised + key.len() <= PROMISED;
        if now < place.next && place.promise.is_some() {
            return Turn::Promised;
        }
        if now < place.next && has_room {
            self.promised += key.len();
            place.promise = Some(Promise { key: key.into(), interval });
            return Turn::At(place.next);
        }
        // Whoever has this turn does what was promised with it.
        self.promised -= place.promise.take().map_or(0, |promise| promise.key.len());
        place.next = now.saturating_add(interval);
        Turn::Now
    }

    /// The key with this hash, where it was promised a turn until the moment `at` and nobody took it; it is taken now.
    pub(super) fn take(&mut self, hash: u64, at: i64, now: i64) -> Option<Box<[u8]>> {
        let set = self.places.get_mut(places_of(hash))?;
        let key =
            set.iter_mut().filter(|place| place.hash == hash).find_map(|place| place.take_due(at, now))?;
        self.promised -= key.len();
        Some(key)
    }

    /// As [`Rate::take_all`], for good: all promises are taken, and from here on every turn comes at once.
    pub(super) fn end(&mut self, now: i64) -> Vec<Box<[u8]>> {
        self.is_over = true;
        self.take_all(i64::MAX, now)
    }

    /// As [`Rate::take`], all keys.
    pub(super) fn take_all(&mut self, at: i64, now: i64) -> Vec<Box<[u8]>> {
        let keys: Vec<_> = self.places.iter_mut().filter_map(|place| place.take_due(at, now)).collect();
        self.promised -= keys.iter().map(|key| key.len()).sum::<usize>();
        keys
    }
}

fn places_of(hash: u64) -> std::ops::Range<usize> {
    let first = hash as usize % SETS * WAYS;
    first..first + WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SEVEN: (u64, &[u8]) = (7, b"seven");

    #[test]
    fn one_turn_a_second_and_what_comes_sooner_is_done_by_the_next() {
        let mut rate = Rate::default();
        assert_eq!(rate.turn(SEVEN, SECOND, 10_000), Turn::Now);
        assert_eq!(rate.turn(SEVEN, SECOND, 10_001), Turn::At(11_000));
        assert_eq!(rate.turn(SEVEN, SECOND, 10_500), Turn::Promised);
        assert_eq!(rate.turn((8, b"eight"), SECOND, 10_500), Turn::Now, "another key has its own");
        assert_eq!(rate.take(7, 11_000, 11_003).as_deref(), Some(&b"seven"[..]));
        assert_eq!(rate.turn(SEVEN, SECOND, 11_500), Turn::At(12_003));
        assert_eq!(rate.take(7, 11_000, 11_600), None, "the new promise is for later");
        assert_eq!(rate.take(7, 12_003, 12_003).as_deref(), Some(&b"seven"[..]));
        assert_eq!(rate.turn(SEVEN, SECOND, 13_003), Turn::Now);
    }

    #[test]
    fn a_promise_is_kept_by_whoever_comes_first_and_once() {
        let mut rate = Rate::default();
        for (hash, key) in [SEVEN, (8, b"eight")] {
            rate.turn((hash, key), SECOND, 10_000);
            assert_eq!(rate.turn((hash, key), SECOND, 10_001), Turn::At(11_000));
        }
        assert!(rate.take_all(10_999, 10_999).is_empty());
        assert_eq!(rate.turn(SEVEN, SECOND, 11_000), Turn::Now, "a request whose time has come");
        assert_eq!(rate.take_all(11_900, 11_900), [b"eight"[..].into()], "then the round of a second");
        assert_eq!(rate.take(8, 11_000, 11_900), None);
        assert_eq!(rate.turn(SEVEN, SECOND, 11_950), Turn::At(12_000));
        assert_eq!(rate.take_all(i64::MAX, 11_960), [b"seven"[..].into()], "at the end none is left");
        assert_eq!(rate.promised, 0);
    }

    #[test]
    fn after_the_end_nothing_is_put_off() {
        let mut rate = Rate::default();
        assert_eq!(rate.turn(SEVEN, SECOND, 10_000), Turn::Now);
        assert_eq!(rate.turn(SEVEN, SECOND, 10_001), Turn::At(11_000));
        assert_eq!(rate.end(10_002), [b"seven"[..].into()]);
        assert_eq!(rate.turn(SEVEN, SECOND, 10_003), Turn::Now);
        assert_eq!(rate.turn(SEVEN, SECOND, 10_004), Turn::Now);
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let mut rate = Rate::default();
        rate.turn(SEVEN, SECOND, 1_000_000);
        assert_eq!(rate.turn(SEVEN, SECOND, 10_000), Turn::At(11_000));
        assert_eq!(rate.take_all(9_000, 9_000), [b"seven"[..].into()]);
    }

    #[test]
    fn a_flood_of_keys_takes_no_more_room_and_no_promise_away() {
        let mut rate = Rate::default();
        let long = [b'x'; 4000];
        let mut turns = 0;
        for hash in 0..100_000 {
            assert_eq!(rate.turn((hash, &long), SECOND, 10_000), Turn::Now);
            turns += usize::from(matches!(rate.turn((hash, &long), SECOND, 10_001), Turn::At(_)));
        }
        assert_eq!(rate.places.len(), SETS * WAYS);
        assert!(rate.promised <= PROMISED && turns > 200, "{} bytes, {turns} promises", rate.promised);
        assert_eq!(rate.take_all(11_000, 11_000).len(), turns);
    }
}
