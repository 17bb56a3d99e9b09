//! Which differences between the responses of a route have no meaning, learned from identical requests.
//!
//! A place is noise only if it is of a harmless kind *and* differed between identical requests: so is the order of an array, which
//! says nothing of that of another one. A random value that differs in each response is a secret.
//! Before: `seen`; next: `simulation`.

use crate::hash::Key;
use crate::mark::{Mark, MarkKind};
use crate::seen::Seen;

/// Places that a route knows; values in others are compared.
const MOST_PLACES: usize = 32;

/// Pairs of identical requests after which a place or the order is judged.
const ENOUGH: u32 = 6;

/// Pairs of different clients after which a counter is known to be one for all.
const ENOUGH_OF_OTHERS: u32 = 30;

/// Milliseconds between identical requests that are compared.
const WINDOW: u64 = 60_000;

#[derive(Debug, Clone)]
struct Place {
    place: u32,
    kind: MarkKind,
    identical: u32,
    identical_differing: u32,
    any_differing: u32,
    /// Identical requests that share by the plan and whose responses differed here.
    open_differing: u32,
    /// The same for any requests to one URL.
    any_open_differing: u32,
    /// Pairs of different clients, and those of any in which the later number is lower.
    others: u32,
    falling: u32,
}

impl Place {
    fn always_differs(&self) -> bool {
        self.identical >= ENOUGH && self.identical_differing * 10 >= self.identical * 9
    }

    fn often_differs(&self) -> bool {
        self.identical >= ENOUGH && self.identical_differing * 2 >= self.identical
    }

    fn is_noise(&self) -> bool {
        match self.kind {
            MarkKind::Random => false,
            MarkKind::Time => true,
            MarkKind::RequestId => self.always_differs(),
            MarkKind::Duration => self.often_differs(),
            MarkKind::Order => {
                self.identical >= ENOUGH && self.identical_differing * 10 >= self.identical * 3
            }
            // One for all clients never falls; one of each client does from one to the other.
            MarkKind::Counter => self.often_differs() && self.others >= ENOUGH_OF_OTHERS && self.falling == 0,
        }
    }
}

#[derive(Default)]
pub(crate) struct Leniency {
    places: Vec<Place>,
    /// Pairs of identical requests that share by the plan.
    open: u32,
    /// The same for any requests to one URL.
    any_open: u32,
    /// Counts up when a difference loses its meaning: what was compared before is then to be forgotten.
    pub(crate) version: u32,
}

impl Leniency {
    /// Learns from two responses to one URL. `are_identical`: their requests differ in nothing; `are_open`: the plan shares what these get.
    pub(crate) fn learn(&mut self, one: &Seen, other: &Seen, are_identical: bool, are_open: bool) {
        if other.at.abs_diff(one.at) > WINDOW {
            return;
        }
        let is_open = are_identical && are_open;
        self.open = self.open.saturating_add(u32::from(is_open));
        self.any_open = self.any_open.saturating_add(u32::from(are_open));
        let noise = self.noise();
        // Other elements have another order.
        let has_same_elements = one.meaning.unordered == other.meaning.unordered;
        for mark in one.marks.iter().filter(|mark| has_same_elements || mark.kind != MarkKind::Order) {
            let Some(twin) =
                other.marks.iter().find(|twin| twin.place == mark.place && twin.kind == mark.kind)
            else {
                continue;
            };
            let Some(place) = self.place(mark) else { continue };
            let differs = u32::from(twin.value != mark.value);
            place.any_differing += differs;
            place.any_open_differing += if are_open { differs } else { 0 };
            place.others += u32::from(one.client != other.client);
            // Requests that overlap have no order.
            place.falling += u32::from(twin.value < mark.value && other.sent >= one.at);
            if are_identical {
                place.identical += 1;
                place.identical_differing += differs;
                place.open_differing += if is_open { differs } else { 0 };
            }
        }
        if noise != self.noise() {
            self.version += 1;
        }
    }

    fn place(&mut self, mark: &Mark) -> Option<&mut Place> {
        let found = self.places.iter().position(|place| place.place == mark.place && place.kind == mark.kind);
        let at = match found {
            Some(at) => at,
            None if self.places.len() == MOST_PLACES => return None,
            None => {
                let (place, kind) = (mark.place, mark.kind);
                self.places.push(Place {
                    place,
                    kind,
                    identical: 0,
                    identical_differing: 0,
                    any_differing: 0,
                    open_differing: 0,
                    any_open_differing: 0,
                    others: 0,
                    falling: 0,
                });
                self.places.len() - 1
            }
        };
        Some(&mut self.places[at])
    }

    /// The places that are noise by learning, as bits.
    fn noise(&self) -> u32 {
        let learned = |place: &Place| place.kind != MarkKind::Time && place.is_noise();
        let bits = self.places.iter().enumerate().filter(|(_, place)| learned(place));
        bits.fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// Whether some array is compared without its order.
    pub(crate) fn is_orderless(&self) -> bool {
        self.places.iter().any(|place| place.kind == MarkKind::Order && place.is_noise())
    }

    /// Whether a random value differs in each response to identical requests; not if only requests that are passed on get it.
    pub(crate) fn has_secret(&self) -> bool {
        // With many URLs, hardly any client asks for the same one again so soon; then nothing may ever differ between clients either.
        let is_shared = |place: &Place| {
            let is_absent = self.any_open >= ENOUGH_OF_OTHERS && place.any_open_differing == 0;
            !is_absent && (place.open_differing > 0 || self.open < ENOUGH_OF_OTHERS)
        };
        let is_secret = |place: &&Place| place.kind == MarkKind::Random && place.always_differs();
        self.places.iter().filter(is_secret).any(is_shared)
    }

    /// Kinds of noise that were seen to differ.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let noise = self.places.iter().filter(|place| place.is_noise() && place.any_differing > 0);
        let mut kinds: Vec<&'static str> = noise.map(|place| place.kind.name()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// A hash of all that has a meaning.
    pub(crate) fn meaning(&self, key: &Key, seen: &Seen) -> u64 {
        seen.marks.iter().filter(|mark| !self.is_noise(mark)).fold(seen.meaning.unordered, |meaning, mark| {
            meaning.wrapping_add(key.pair(u64::from(mark.place), u64::from(mark.value)))
        })
    }

    fn is_noise(&self, mark: &Mark) -> bool {
        mark.kind == MarkKind::Time
            || mark.kind.is_harmless()
                && self
                    .places
                    .iter()
                    .any(|place| place.place == mark.place && place.kind == mark.kind && place.is_noise())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::json::Meaning;

    fn seen(at: u64, meaning: u64) -> Seen {
        Seen {
            meaning: Meaning { ordered: meaning, unordered: meaning },
            identity: 2,
            ..fixture::seen(at, 1)
        }
    }

    fn counted(at: u64, client: u32, value: u32) -> Seen {
        let mark = Mark { place: 5, value, kind: MarkKind::Counter };
        Seen { client, marks: [mark].into(), ..seen(at, 7) }
    }

    #[test]
    fn a_counter_of_all_clients_is_noise_and_one_of_each_client_is_not() {
        let key = Key::from_seed(1);
        for (of_each, is_noise) in [(false, true), (true, false)] {
            let mut leniency = Leniency::default();
            let count = |time: u64| if of_each && time % 3 == 2 { 1 } else { time as u32 };
            for time in 0..200 {
                let client = |time: u64| 2 * u32::from(time % 3 == 2);
                let (one, other) = (
                    counted(time, client(time), count(time)),
                    counted(time + 1, client(time + 1), count(time + 1)),
                );
                leniency.learn(&one, &other, client(time) == client(time + 1), true);
            }
            let are_equal =
                leniency.meaning(&key, &counted(0, 0, 1)) == leniency.meaning(&key, &counted(0, 0, 2));
            assert_eq!(are_equal, is_noise);
        }
    }

    #[test]
    fn a_secret_of_those_that_are_passed_on_is_none_of_the_others() {
        let secret = |value: u32| {
            let mark = Mark { place: 5, value, kind: MarkKind::Random };
            Seen { marks: [mark].into(), ..seen(0, 7) }
        };
        let mut leniency = Leniency::default();
        (0..50).for_each(|value| leniency.learn(&secret(value), &secret(value + 1), true, false));
        assert!(leniency.has_secret(), "no one else came");
        (0..50).for_each(|_| leniency.learn(&seen(0, 7), &seen(1, 7), true, true));
        assert!(!leniency.has_secret());
        leniency.learn(&secret(1), &secret(2), true, true);
        assert!(leniency.has_secret());
        let mut of_many_urls = Leniency::default();
        (0..50).for_each(|value| of_many_urls.learn(&secret(value), &secret(value + 1), true, false));
        (0..50).for_each(|_| of_many_urls.learn(&seen(0, 7), &seen(1, 7), false, true));
        assert!(!of_many_urls.has_secret(), "others were never identical, and none got it");
        of_many_urls.learn(&secret(1), &secret(2), false, true);
        assert!(of_many_urls.has_secret());
    }

    #[test]
    fn what_differs_between_clients_only_is_no_request_id() {
        let (key, mut leniency) = (Key::from_seed(1), Leniency::default());
        let of = |client: u32| {
            let mark = Mark { place: 5, value: client, kind: MarkKind::RequestId };
            Seen { client, marks: [mark].into(), ..seen(0, 7) }
        };
        for client in 0..2_000 {
            leniency.learn(&of(client), &of(client + 1), false, true);
        }
        assert_ne!(leniency.meaning(&key, &of(1)), leniency.meaning(&key, &of(2)));
    }

    #[test]
    fn the_order_of_a_list_has_a_meaning_unless_identical_requests_get_different_ones() {
        let key = Key::from_seed(1);
        let of = |one: u32, other: u32| {
            let mark = |place: u32, value: u32| Mark { place, value, kind: MarkKind::Order };
            Seen { marks: [mark(5, one), mark(6, other)].into(), ..seen(0, 7) }
        };
        let mut leniency = Leniency::default();
        let are_equal = |leniency: &Leniency, one: &Seen, other: &Seen| {
            leniency.meaning(&key, one) == leniency.meaning(&key, other)
        };
        for _ in 0..50 {
            leniency.learn(&of(1, 1), &of(2, 2), false, true);
            leniency.learn(&of(1, 1), &of(1, 1), true, true);
        }
        assert!(
            !are_equal(&leniency, &of(1, 1), &of(1, 2)) && leniency.version == 0,
            "each client has its own"
        );
        for _ in 0..50 {
            leniency.learn(&of(1, 1), &of(1, 2), true, true);
        }
        assert!(are_equal(&leniency, &of(1, 1), &of(1, 2)) && leniency.version == 1);
        assert!(!are_equal(&leniency, &of(1, 1), &of(2, 1)), "another list has its own order");
    }

    #[test]
    fn the_order_of_other_elements_is_not_compared() {
        let of = |elements: u64| {
            let mark = Mark { place: 5, value: elements as u32, kind: MarkKind::Order };
            Seen {
                meaning: Meaning { ordered: elements, unordered: elements },
                marks: [mark].into(),
                ..seen(0, 7)
            }
        };
        let mut leniency = Leniency::default();
        (0..100).for_each(|time| leniency.learn(&of(time), &of(time + 1), true, true));
        assert!(!leniency.is_orderless());
    }
}
