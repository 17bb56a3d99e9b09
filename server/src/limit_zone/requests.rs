//! `limit_req`: how much too fast each key asks, in nginx's figures.
//!
//! A key's excess is counted in thousandths of a request. It grows by 1000 with each request and shrinks by the rate,
//! thousandths a second, with the milliseconds since the last one that was taken. A request that asks several zones is counted in
//! the last of them at once and in the others once all have agreed; meanwhile their keys are held. Next: `limits/limit_req`.

use super::{Seat, Table};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of an entry besides its key in nginx's slabs.
const OVERHEAD: usize = 80;
/// Milliseconds a key must be unused, with no excess left, to be removed.
const QUIET: i64 = 60_000;
/// A key never counted was last seen so long ago that no excess is left.
const LONG_AGO: i64 = 86_400_000;

#[derive(Debug)]
pub struct RequestZone {
    table: Arc<Table<Excess>>,
    /// Thousandths of a request per second.
    rate: i64,
    began: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Excess {
    /// In thousandths of a request.
    excess: i64,
    /// When a request was last counted, in milliseconds since the zone's creation.
    last: i64,
    /// Requests between look-up and counting, which keep the key.
    held: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Counted(i64),
    /// Allowed; the key is held until it is counted or released.
    Held(Seat),
    TooMuch(i64),
    Full,
}

impl RequestZone {
    /// `size` in bytes, `rate` in thousandths of a request per second.
    pub fn new(size: u64, rate: u64, now: Instant) -> Self {
        RequestZone { table: Arc::new(Table::new(size, OVERHEAD)), rate: rate as i64, began: now }
    }

    /// Keeps the keys.
    #[must_use]
    pub fn with_rate(&self, rate: u64) -> Self {
        RequestZone { table: self.table.clone(), rate: rate as i64, began: self.began }
    }

    /// `burst` in thousandths. `is_last`: counts the request at once.
    pub fn ask(&self, key: &[u8], burst: u64, is_last: bool, now: Instant) -> Said {
        let now = self.milliseconds(now);
        let (shard, hash, mut guard) = self.table.of(key);
        if let Some(node) = guard.find(hash, key) {
            guard.touch(node);
            let known = guard.state(node);
            let (excess, passed) = self.excess(known, now);
            if excess.unsigned_abs() > burst {
                return Said::TooMuch(excess);
            }
            if !is_last {
                known.held += 1;
                return Said::Held(Seat { shard, node });
            }
            known.count(excess, passed, now);
            return Said::Counted(excess);
        }
        let rehash = self.table.rehash();
        let new = match is_last {
            true => Excess { excess: 0, last: now, held: 0 },
            false => Excess { excess: 0, last: now - LONG_AGO, held: 1 },
        };
        for forced in [false, true] {
            // Up to two keys with nothing to remember go in any case, and in need the oldest whatever it has.
            for at in 0..if forced { 3 } else { 2 } {
                let Some(oldest) = guard.oldest() else { break };
                let known = *guard.state(oldest);
                if known.held > 0 || !(forced && at == 0 || self.is_quiet(&known, now)) {
                    break;
                }
                guard.remove(oldest, &rehash);
            }
            match guard.insert(hash, key, new, &rehash) {
                Some(_) if is_last => return Said::Counted(0),
                Some(node) => return Said::Held(Seat { shard, node }),
                None => {}
            }
        }
        Said::Full
    }

    /// Also releases the key; returns the excess.
    pub fn count(&self, seat: Seat, now: Instant) -> i64 {
        let now = self.milliseconds(now);
        let mut guard = self.table.lock(seat.shard);
        let known = guard.state(seat.node);
        let (excess, passed) = self.excess(known, now);
        known.count(excess, passed, now);
        known.held -= 1;
        excess
    }

    pub fn release(&self, seat: Seat) {
        self.table.lock(seat.shard).state(seat.node).held -= 1;
    }

    /// In milliseconds.
    pub fn wait_for(&self, thousandths: i64) -> u64 {
        (i128::from(thousandths) * 1000 / i128::from(self.rate)).max(0) as u64
    }

    /// The excess with one more request, and the milliseconds since the last.
    fn excess(&self, known: &Excess, now: i64) -> (i64, i64) {
        let passed = match now - known.last {
            // The clock was put back.
            ..-60_000 => 1,
            passed => passed.max(0),
        };
        ((known.excess - self.worn_off(passed) + 1000).max(0), passed)
    }

    fn is_quiet(&self, known: &Excess, now: i64) -> bool {
        let passed = (now - known.last).abs();
        passed >= QUIET && known.excess <= self.worn_off(passed)
    }

    fn worn_off(&self, milliseconds: i64) -> i64 {
        self.rate.saturating_mul(milliseconds) / 1000
    }

    fn milliseconds(&self, now: Instant) -> i64 {
        now.saturating_duration_since(self.began).as_millis() as i64
    }
}

impl Excess {
    fn count(&mut self, excess: i64, passed: i64, now: i64) {
        self.excess = excess;
        if passed > 0 {
            self.last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(rate: u64, burst: u64, moments: &[(u64, i64)]) {
        let began = millstream_net::clock::now();
        let zone = RequestZone::new(1 << 20, rate, began);
        for (at, expected) in moments {
            let said = zone.ask(b"key", burst, true, began + Duration::from_millis(*at));
            let excess = match said {
                Said::Counted(excess) => excess,
                Said::TooMuch(excess) => -excess,
                other => panic!("{other:?}"),
            };
            assert_eq!(excess, *expected, "rate {rate} burst {burst} at {at} ms of {moments:?}");
        }
    }

    #[test]
    fn the_excess_is_that_of_nginx() {
        // 1r/s: nothing at once, everything after a second.
        check(1000, 0, &[(0, 0), (0, -1000), (500, -500), (999, -1), (1000, 0), (1001, -999), (2000, 0)]);
        // A burst of two; a refused request is not counted.
        check(1000, 2000, &[(0, 0), (0, 1000), (0, 2000), (0, -3000), (0, -3000), (1000, 2000), (9000, 0)]);
        // 10r/m is 166 thousandths a second, rounded down.
        check(166, 0, &[(0, 0), (6000, -4), (6025, 0)]);
        check(166, 1000, &[(0, 0), (1000, 834), (2000, -1668), (7025, 834)]);
        // Requests within one millisecond do not move the last moment.
        check(2000, 3000, &[(10, 0), (10, 1000), (10, 2000), (11, 2998), (12, -3996), (511, 2998)]);
        // 1r/m and a very high rate.
        check(16, 0, &[(0, 0), (62_000, -8), (62_500, 0)]);
        check(1_000_000_000, 0, &[(0, 0), (0, -1000), (1, 0)]);
    }

    #[test]
    fn a_wait_is_what_the_rate_takes_for_the_excess() {
        let zone = |rate| RequestZone::new(1 << 20, rate, millstream_net::clock::now());
        for (rate, excess, expected) in
            [(1000, 1000, 1000), (1000, 1, 1), (2000, 2998, 1499), (166, 834, 5024), (10_000, 50, 5)]
        {
            assert_eq!(zone(rate).wait_for(excess), expected, "{rate} {excess}");
        }
    }

    #[test]
    fn a_held_key_is_counted_once_all_zones_agree() {
        let began = millstream_net::clock::now();
        let zone = RequestZone::new(1 << 20, 1000, began);
        let Said::Held(seat) = zone.ask(b"key", 1000, false, began) else { panic!("it may come") };
        assert_eq!(zone.count(seat, began), 0, "the first request finds nothing before it");
        let Said::Held(seat) = zone.ask(b"key", 1000, false, began) else { panic!("it may come") };
        zone.release(seat);
        assert_eq!(zone.ask(b"key", 1000, true, began), Said::Counted(1000), "the released one left nothing");
    }

    #[test]
    fn a_full_zone_forgets_the_oldest_key_and_no_held_one() {
        let began = millstream_net::clock::now();
        let room = 256 * 128;
        let zone = RequestZone::new(room, 1000, began);
        let Said::Held(_) = zone.ask(b"held", 0, false, began) else { panic!("there is room") };
        for key in 0..255u16 {
            assert_eq!(zone.ask(&key.to_be_bytes(), 0, true, began), Said::Counted(0));
        }
        // The held one is the oldest, behind which nothing is looked for, as in nginx.
        assert_eq!(zone.ask(b"more", 0, true, began), Said::Full);
        let Said::Held(seat) = zone.ask(b"held", 1000, false, began) else { panic!("it is known") };
        assert_eq!(zone.ask(b"more", 0, true, began), Said::Counted(0));
        assert_eq!(zone.ask(&0u16.to_be_bytes(), 0, true, began), Said::Counted(0), "it was forgotten");
        assert_eq!(zone.ask(&255u16.to_be_bytes()[..1], 0, true, began), Said::Counted(0));
        zone.release(seat);
    }

    #[test]
    fn of_many_at_once_the_burst_and_one_come_in() {
        let began = millstream_net::clock::now();
        let zone = Arc::new(RequestZone::new(1 << 20, 1, began));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let zone = zone.clone();
                std::thread::spawn(move || {
                    (0..100)
                        .filter(|_| matches!(zone.ask(b"k", 20_000, true, began), Said::Counted(_)))
                        .count()
                })
            })
            .collect();
        let taken: usize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        assert_eq!(taken, 21);
    }
}
