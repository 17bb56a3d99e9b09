//! `limit_req`: how much too fast each key asks, in nginx's figures.
//!
//! A key's excess is counted in thousandths of a request. It grows by 1000 with each request and shrinks by the rate,
//! thousandths a second, with the milliseconds since the last one that was taken. A request that asks several zones is counted in
//! the last of them at once and in the others once all have agreed; meanwhile their keys are held. With `sync`, keys are hashes, and
//! what other nodes count is added as of when they did. Next: `limits/limit_req`.

use super::{Seat, Table};
use millstream_cluster::{KeyHash, LimitDoor, LimitedZone};
use millstream_net::clock;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of an entry besides its key in nginx's slabs.
const OVERHEAD: usize = 80;
/// Milliseconds a key must be unused, with no excess left, to be removed.
const QUIET: i64 = 60_000;
/// Thousandths of a request that other nodes can add up to.
const MOST_EXCESS: i64 = i64::MAX / 4;
/// A key never counted was last seen so long ago that no excess is left.
const LONG_AGO: i64 = 86_400_000;

#[derive(Debug)]
pub struct RequestZone {
    table: Arc<Table<Excess>>,
    /// Thousandths of a request per second.
    rate: i64,
    began: Instant,
    /// `sync`.
    door: Option<Arc<LimitDoor>>,
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
        RequestZone { table: Arc::new(Table::new(size, OVERHEAD)), rate: rate as i64, began: now, door: None }
    }

    /// Keeps the keys.
    #[must_use]
    pub fn with_rate(&self, rate: u64) -> Self {
        RequestZone { table: self.table.clone(), rate: rate as i64, began: self.began, door: None }
    }

    /// Keeps the keys; counts with other nodes from now on.
    #[must_use]
    pub fn with_door(&self, door: Arc<LimitDoor>) -> Self {
        RequestZone { door: Some(door), ..self.with_rate(self.rate as u64) }
    }

    /// Differs if one of two zones has not the other's keys.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.table) as usize
    }

    pub fn door(&self) -> Option<&Arc<LimitDoor>> {
        self.door.as_ref()
    }

    /// Thousandths of a request per second.
    pub fn rate(&self) -> u64 {
        self.rate as u64
    }

    /// `burst` in thousandths. `is_last`: counts the request at once.
    #[inline]
    pub fn ask(&self, key: &[u8], burst: u64, is_last: bool, now: Instant) -> Said {
        match &self.door {
            None => self.ask_here(key, burst, self.rate, is_last, now),
            Some(door) => self.ask_shared(door, &door.hash(key), burst, is_last, now),
        }
    }

    /// With other nodes: this one allows its share of the limit while it does not know what they count.
    pub fn ask_shared(
        &self,
        door: &LimitDoor,
        key: &KeyHash,
        burst: u64,
        is_last: bool,
        now: Instant,
    ) -> Said {
        let said = self.ask_here(key, burst / u64::from(door.divisor(now)), self.share(now), is_last, now);
        if let Said::Counted(_) = said {
            self.let_in(door, *key);
        }
        said
    }

    /// The engine has counted a request of this node: if it is lost, the key goes on from there.
    pub fn counted_elsewhere(&self, key: &KeyHash) {
        self.add(key, 1, clock::now());
    }

    fn let_in(&self, door: &LimitDoor, key: KeyHash) {
        if !door.is_exact() {
            door.let_in(key);
        }
    }

    /// The rate that this node allows now.
    fn share(&self, now: Instant) -> i64 {
        match &self.door {
            None => self.rate,
            Some(door) => (self.rate / i64::from(door.divisor(now))).max(1),
        }
    }

    fn ask_here(&self, key: &[u8], burst: u64, rate: i64, is_last: bool, now: Instant) -> Said {
        let now = self.milliseconds(now);
        let (shard, hash, mut guard) = self.table.of(key);
        if let Some(node) = guard.find(hash, key) {
            guard.touch(node);
            let known = guard.state(node);
            let (excess, passed) = excess_of(rate, known, now);
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
                if known.held > 0 || !(forced && at == 0 || is_quiet(rate, &known, now)) {
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
        let (rate, now) = (self.share(now), self.milliseconds(now));
        let mut guard = self.table.lock(seat.shard);
        let known = guard.state(seat.node);
        let (excess, passed) = excess_of(rate, known, now);
        known.count(excess, passed, now);
        known.held -= 1;
        if let Some(door) = &self.door
            && let Ok(key) = guard.key(seat.node).try_into()
        {
            self.let_in(door, key);
        }
        excess
    }

    pub fn release(&self, seat: Seat) {
        self.table.lock(seat.shard).state(seat.node).held -= 1;
    }

    /// In milliseconds, at the rate that this node allows now.
    pub fn wait_for(&self, thousandths: i64, now: Instant) -> u64 {
        wait_at(self.share(now), thousandths)
    }

    /// In milliseconds, at the rate of the zone.
    pub fn wait_together(&self, thousandths: i64) -> u64 {
        wait_at(self.rate, thousandths)
    }

    fn milliseconds(&self, now: Instant) -> i64 {
        now.saturating_duration_since(self.began).as_millis() as i64
    }
}

impl LimitedZone for RequestZone {
    fn add(&self, key: &KeyHash, requests: u32, at: Instant) {
        let at = self.milliseconds(at);
        let more = i64::from(requests).saturating_mul(1000);
        let (_, hash, mut guard) = self.table.of(key);
        if let Some(node) = guard.find(hash, key) {
            guard.touch(node);
            let known = guard.state(node);
            // If a request was counted here since then, the excess has worn off until that one.
            let worn_off = worn_off(self.rate, (at - known.last).max(0));
            let one = (known.excess - worn_off + 1000).max(0);
            known.excess = one.saturating_add(more - 1000).clamp(0, MOST_EXCESS);
            known.last = known.last.max(at);
            return;
        }
        // As with the first request of a key, that one leaves no excess.
        let new = Excess { excess: (more - 1000).clamp(0, MOST_EXCESS), last: at, held: 0 };
        let rehash = self.table.rehash();
        while guard.insert(hash, key, new, &rehash).is_none() {
            match guard.oldest() {
                Some(oldest) if guard.state(oldest).held == 0 => guard.remove(oldest, &rehash),
                _ => return,
            }
        }
    }
}

fn wait_at(rate: i64, thousandths: i64) -> u64 {
    (i128::from(thousandths) * 1000 / i128::from(rate)).max(0) as u64
}

/// The excess with one more request, and the milliseconds since the last.
fn excess_of(rate: i64, known: &Excess, now: i64) -> (i64, i64) {
    let passed = match now - known.last {
        // The clock was put back.
        ..-60_000 => 1,
        passed => passed.max(0),
    };
    ((known.excess - worn_off(rate, passed) + 1000).max(0), passed)
}

fn is_quiet(rate: i64, known: &Excess, now: i64) -> bool {
    let passed = (now - known.last).abs();
    passed >= QUIET && known.excess <= worn_off(rate, passed)
}

fn worn_off(rate: i64, milliseconds: i64) -> i64 {
    rate.saturating_mul(milliseconds) / 1000
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
    fn what_other_nodes_have_let_in_counts_from_when_they_did() {
        let began = millstream_net::clock::now();
        let zone = RequestZone::new(1 << 20, 1000, began);
        let at = |milliseconds| began + Duration::from_millis(milliseconds);
        let ask = |key: &KeyHash, moment| zone.ask(key, 2000, true, at(moment));
        assert_eq!(ask(&[1; 16], 0), Said::Counted(0));
        zone.add(&[1; 16], 2, at(0));
        assert_eq!(ask(&[1; 16], 0), Said::TooMuch(3000));
        assert_eq!(ask(&[1; 16], 1000), Said::Counted(2000));
        zone.add(&[1; 16], 1, at(500));
        assert_eq!(ask(&[1; 16], 2000), Said::TooMuch(3000), "of a moment before");
        zone.add(&[2; 16], 3, at(1000));
        assert_eq!(ask(&[2; 16], 1500), Said::TooMuch(2500), "of a key that is new here");
        zone.add(&[1; 16], 1, at(60_000));
        assert_eq!(ask(&[1; 16], 60_000), Said::Counted(1000), "the first one leaves no excess");
        zone.add(&[3; 16], u32::MAX, at(0));
        zone.add(&[3; 16], u32::MAX, at(0));
        assert!(matches!(ask(&[3; 16], 0), Said::TooMuch(_)));
    }

    #[test]
    fn a_wait_is_what_the_rate_takes_for_the_excess() {
        let zone = |rate| RequestZone::new(1 << 20, rate, millstream_net::clock::now());
        for (rate, excess, expected) in
            [(1000, 1000, 1000), (1000, 1, 1), (2000, 2998, 1499), (166, 834, 5024), (10_000, 50, 5)]
        {
            assert_eq!(zone(rate).wait_together(excess), expected, "{rate} {excess}");
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
