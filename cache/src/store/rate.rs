//! `proxy_cache_invalidation rate=`: how often what is stored under a key is taken out because of an unsafe request.
//!
//! The first request takes it out at once. One that comes sooner than the rate allows is promised a turn when the time has
//! come, and all that come until then are done by that one turn: what is stored is never older than the last change by more
//! than the rate's interval, and never asked for more often. The promise is the zone's, not the asker's: it is kept here with
//! its key until somebody takes it, who need not be the one that was promised. A table of fixed size, in sets by the key's
//! hash: where a set is full the turn that is longest ago is forgotten, but no promise. Where there is no room for one the
//! turn comes at once, so a flood of other keys can only make turns come sooner.
//!
//! The clients whose requests wait for the turn are kept with it: what was asked for before their requests is not for them.
//! [`WaitingSets`] tells without a lock that a key has none. Pure but for the moment, which is handed in.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Keys in a set, and sets: 4,096 keys, 256 KiB once the first is met.
const WAYS: usize = 8;
const SETS: usize = 512;
/// Bytes of keys that have a promise, and of their writers.
const PROMISED: usize = 1024 * 1024;
/// Writers that wait for one turn. One more makes it due at once: no client pays for the number of others,
/// and every turn ahead of time has cost as many upstream requests.
const WRITERS: usize = 64;

/// What an unsafe request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Now,
    /// Only arrange that promises are kept at this moment, in milliseconds since 1970.
    At(i64),
    /// Nothing: it will be invalidated soon enough.
    Promised,
}

/// What an unsafe request has changed.
#[derive(Debug, Clone, Copy)]
pub struct Changed<'k> {
    pub key: &'k [u8],
    /// It may be stored in slices too.
    pub has_pieces: bool,
}

impl<'k, K: AsRef<[u8]> + ?Sized> From<&'k K> for Changed<'k> {
    fn from(key: &'k K) -> Self {
        Changed { key: key.as_ref(), has_pieces: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct Rate {
    places: Vec<KeyTurn>,
    /// Bytes of the keys in promises, and of writers.
    promised: usize,
    is_over: bool,
}

#[derive(Debug, Clone, Default)]
struct KeyTurn {
    hash: u64,
    /// The next turn is not before this moment; 0 = the place is free.
    next: i64,
    promise: Option<Promise>,
    writers: Vec<Writer>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Writer {
    pub(super) client: IpAddr,
    /// Its last request's place in the order of fills and purges.
    pub(super) order: u64,
}

/// Sets of keys with waiting writers, a bit each: one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct WaitingSets([AtomicU64; SETS / 64]);

impl WaitingSets {
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let set = set_of(hash);
        self.0[set / 64].load(Ordering::Acquire) >> (set % 64) & 1 != 0
    }

    /// Updates the bit of this hash's set; call it under the table's lock.
    pub(super) fn note(&self, hash: u64, rate: &Rate) {
        let set = set_of(hash);
        let (word, bit) = (&self.0[set / 64], 1 << (set % 64));
        let _ = match rate.has_writers(hash) {
            true => word.fetch_or(bit, Ordering::AcqRel),
            false => word.fetch_and(!bit, Ordering::AcqRel),
        };
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Promise {
    key: Box<[u8]>,
    has_pieces: bool,
    /// In milliseconds.
    interval: i64,
}

impl Promise {
    pub(super) fn changed(&self) -> Changed<'_> {
        Changed { key: &self.key, has_pieces: self.has_pieces }
    }
}

impl KeyTurn {
    /// The next turn is an interval later. A clock that was set back delays it by no more than the rate does.
    fn take_due(&mut self, at: i64, now: i64) -> Option<Promise> {
        let next = self.next;
        let is_due = |promise: &mut Promise| at >= next || next > now.saturating_add(promise.interval);
        let promise = self.promise.take_if(is_due)?;
        self.next = now.saturating_add(promise.interval);
        Some(promise)
    }
}

impl Rate {
    pub(super) fn turn(
        &mut self,
        (hash, Changed { key, has_pieces }): (u64, Changed<'_>),
        interval: Duration,
        now: i64,
        writer: Writer,
    ) -> Turn {
        if self.is_over {
            return Turn::Now;
        }
        if self.places.is_empty() {
            self.places = vec![KeyTurn::default(); SETS * WAYS];
        }
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let set = &mut self.places[places_of(hash)];
        let Some(place) = set.iter_mut().find(|place| place.hash == hash && place.next != 0) else {
            let is_free = |place: &&mut KeyTurn| place.promise.is_none() && place.writers.is_empty();
            let free = set.iter_mut().filter(is_free).min_by_key(|place| place.next);
            if let Some(place) = free {
                *place =
                    KeyTurn { hash, next: now.saturating_add(interval), promise: None, writers: Vec::new() };
            }
            return Turn::Now;
        };
        // A clock that was set back must not hold turns up for longer than the rate does.
        place.next = place.next.min(now.saturating_add(interval));
        let is_promised = place.promise.is_some();
        let is_known = place.writers.iter().any(|known| known.client == writer.client);
        let more = if is_promised { 0 } else { key.len() } + if is_known { 0 } else { size_of::<Writer>() };
        let has_room = self.promised + more <= PROMISED && (is_known || place.writers.len() < WRITERS);
        if now < place.next && has_room {
            self.promised += more;
            place.writers.retain(|known| known.client != writer.client);
            place.writers.push(writer);
            if is_promised {
                return Turn::Promised;
            }
            place.promise = Some(Promise { key: key.into(), has_pieces, interval });
            return Turn::At(place.next);
        }
        // Whoever has this turn does what was promised with it.
        self.promised -= place.promise.take().map_or(0, |promise| promise.key.len());
        place.next = now.saturating_add(interval);
        Turn::Now
    }

    /// The place in the order of a client's own pending request; 0 if there is none.
    pub(super) fn own_write(&self, hash: u64, client: IpAddr) -> u64 {
        let writers =
            self.set(hash).iter().filter(|place| place.hash == hash).flat_map(|place| &place.writers);
        writers.filter(|writer| writer.client == client).map(|writer| writer.order).max().unwrap_or(0)
    }

    /// What was stored under this key before this place in the order is gone, and earlier writers are served.
    pub(super) fn carried_out(&mut self, hash: u64, order: u64) {
        let Some(set) = self.places.get_mut(places_of(hash)) else { return };
        for place in set.iter_mut().filter(|place| place.hash == hash) {
            let before = place.writers.len();
            place.writers.retain(|writer| writer.order > order);
            self.promised -= (before - place.writers.len()) * size_of::<Writer>();
        }
    }

    fn has_writers(&self, hash: u64) -> bool {
        self.set(hash).iter().any(|place| !place.writers.is_empty())
    }

    fn set(&self, hash: u64) -> &[KeyTurn] {
        self.places.get(places_of(hash)).unwrap_or_default()
    }

    /// The promise of this key for the moment `at`, unless it was taken already.
    pub(super) fn take(&mut self, hash: u64, at: i64, now: i64) -> Option<Promise> {
        let set = self.places.get_mut(places_of(hash))?;
        let promise =
            set.iter_mut().filter(|place| place.hash == hash).find_map(|place| place.take_due(at, now))?;
        self.promised -= promise.key.len();
        Some(promise)
    }

    /// As [`Rate::take_all`], for good: from here on every turn is due at once.
    pub(super) fn end(&mut self, now: i64) -> Vec<Promise> {
        self.is_over = true;
        self.take_all(i64::MAX, now)
    }

    /// As [`Rate::take`], for all keys.
    pub(super) fn take_all(&mut self, at: i64, now: i64) -> Vec<Promise> {
        let promises: Vec<_> = self.places.iter_mut().filter_map(|place| place.take_due(at, now)).collect();
        self.promised -= promises.iter().map(|promise| promise.key.len()).sum::<usize>();
        promises
    }
}

fn set_of(hash: u64) -> usize {
    hash as usize % SETS
}

fn places_of(hash: u64) -> std::ops::Range<usize> {
    let first = set_of(hash) * WAYS;
    first..first + WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SEVEN: (u64, &[u8]) = (7, b"seven");

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    fn turn(rate: &mut Rate, key: (u64, &[u8]), now: i64) -> Turn {
        rate.turn((key.0, key.1.into()), SECOND, now, Writer { client: client(1), order: 1 })
    }

    fn write(rate: &mut Rate, number: u32, order: u64, now: i64) -> Turn {
        rate.turn((7, b"seven".into()), SECOND, now, Writer { client: client(number), order })
    }

    fn keys(promises: &[Promise]) -> Vec<&[u8]> {
        promises.iter().map(|promise| &*promise.key).collect()
    }

    #[test]
    fn who_waits_for_a_turn_is_known_until_it_was_carried_out() {
        let (mut rate, waiting) = (Rate::default(), WaitingSets::default());
        assert_eq!(write(&mut rate, 1, 10, 10_000), Turn::Now);
        waiting.note(7, &rate);
        assert!(!waiting.may_have(7), "nobody waits");
        assert_eq!(write(&mut rate, 1, 20, 10_001), Turn::At(11_000));
        assert_eq!(write(&mut rate, 2, 30, 10_002), Turn::Promised);
        assert_eq!(write(&mut rate, 1, 40, 10_003), Turn::Promised);
        waiting.note(7, &rate);
        assert!(waiting.may_have(7) && !waiting.may_have(8));
        let own = |rate: &Rate| [1, 2, 3].map(|number| rate.own_write(7, client(number)));
        assert_eq!(own(&rate), [40, 30, 0], "each by its last request");
        assert_eq!(rate.own_write(7 + SETS as u64, client(1)), 0, "of another key in the set");
        assert!(rate.take(7, 11_000, 11_000).is_some());
        assert_eq!(own(&rate), [40, 30, 0], "taken is not carried out");
        rate.carried_out(7, 35);
        assert_eq!(own(&rate), [40, 0, 0], "what came after it waits for the next");
        rate.carried_out(7, 50);
        waiting.note(7, &rate);
        assert_eq!((own(&rate), waiting.may_have(7), rate.promised), ([0, 0, 0], false, 0));
    }

    #[test]
    fn with_too_many_writers_the_turn_comes_at_once() {
        let mut rate = Rate::default();
        for round in 0..3 {
            assert_eq!(write(&mut rate, 0, 1, 10_000 + round), Turn::Now);
            for number in 0..WRITERS as u32 {
                let expected = if number == 0 { Turn::At(11_000 + round) } else { Turn::Promised };
                assert_eq!(write(&mut rate, number, 2, 10_000 + round), expected);
            }
            assert_eq!(write(&mut rate, 7, 3, 10_000 + round), Turn::Promised, "one of them again");
            assert_eq!(write(&mut rate, 99, 4, 10_001 + round), Turn::Now);
            rate.carried_out(7, 5);
            assert_eq!(rate.promised, 0);
            // As for a client whose turn comes by itself.
            rate.places[places_of(7)].iter_mut().for_each(|place| place.next = place.next.min(1));
        }
    }

    #[test]
    fn one_turn_a_second_and_what_comes_sooner_is_done_by_the_next() {
        let mut rate = Rate::default();
        assert_eq!(turn(&mut rate, SEVEN, 10_000), Turn::Now);
        assert_eq!(turn(&mut rate, SEVEN, 10_001), Turn::At(11_000));
        assert_eq!(turn(&mut rate, SEVEN, 10_500), Turn::Promised);
        assert_eq!(turn(&mut rate, (8, b"eight"), 10_500), Turn::Now, "another key has its own");
        assert_eq!(rate.take(7, 11_000, 11_003).as_ref().map(|promise| &*promise.key), Some(&b"seven"[..]));
        assert_eq!(turn(&mut rate, SEVEN, 11_500), Turn::At(12_003));
        assert_eq!(rate.take(7, 11_000, 11_600), None, "the new promise is for later");
        assert_eq!(rate.take(7, 12_003, 12_003).as_ref().map(|promise| &*promise.key), Some(&b"seven"[..]));
        assert_eq!(turn(&mut rate, SEVEN, 13_003), Turn::Now);
    }

    #[test]
    fn a_promise_is_kept_by_whoever_comes_first_and_once() {
        let mut rate = Rate::default();
        for (hash, key) in [SEVEN, (8, b"eight")] {
            turn(&mut rate, (hash, key), 10_000);
            assert_eq!(turn(&mut rate, (hash, key), 10_001), Turn::At(11_000));
        }
        assert!(rate.take_all(10_999, 10_999).is_empty());
        assert_eq!(turn(&mut rate, SEVEN, 11_000), Turn::Now, "a request whose time has come");
        assert_eq!(keys(&rate.take_all(11_900, 11_900)), [b"eight"], "then the round of a second");
        assert_eq!(rate.take(8, 11_000, 11_900), None);
        assert_eq!(turn(&mut rate, SEVEN, 11_950), Turn::At(12_000));
        assert_eq!(keys(&rate.take_all(i64::MAX, 11_960)), [b"seven"], "at the end none is left");
        [7, 8].into_iter().for_each(|hash| rate.carried_out(hash, 1));
        assert_eq!(rate.promised, 0);
    }

    #[test]
    fn after_the_end_nothing_is_put_off() {
        let mut rate = Rate::default();
        assert_eq!(turn(&mut rate, SEVEN, 10_000), Turn::Now);
        assert_eq!(turn(&mut rate, SEVEN, 10_001), Turn::At(11_000));
        assert_eq!(keys(&rate.end(10_002)), [b"seven"]);
        assert_eq!(turn(&mut rate, SEVEN, 10_003), Turn::Now);
        assert_eq!(turn(&mut rate, SEVEN, 10_004), Turn::Now);
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let mut rate = Rate::default();
        turn(&mut rate, SEVEN, 1_000_000);
        assert_eq!(turn(&mut rate, SEVEN, 10_000), Turn::At(11_000));
        assert_eq!(keys(&rate.take_all(9_000, 9_000)), [b"seven"]);
    }

    #[test]
    fn a_flood_of_keys_takes_no_more_room_and_no_promise_away() {
        let mut rate = Rate::default();
        let long = [b'x'; 4000];
        let mut turns = 0;
        for hash in 0..100_000 {
            assert_eq!(turn(&mut rate, (hash, &long), 10_000), Turn::Now);
            turns += usize::from(matches!(turn(&mut rate, (hash, &long), 10_001), Turn::At(_)));
        }
        assert_eq!(rate.places.len(), SETS * WAYS);
        assert!(rate.promised <= PROMISED && turns > 200, "{} bytes, {turns} promises", rate.promised);
        assert_eq!(rate.take_all(11_000, 11_000).len(), turns);
    }
}
