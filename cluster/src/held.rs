//! What a node knows of a zone's log: how far it followed it, and the latest orders, in case the engine loses them.
//!
//! ```text
//! given here ─▶ unplaced ─▶ published ─▶ placed at its number ─▶ a new epoch in which it is missing ─▶ unplaced
//! read from the log ───────────────────────▲
//! ```
//! Pure data, bounded: past a bound the oldest orders go. The others notice what is missing then, and purge their zones. Next:
//! `journal`, which keeps it over a restart.

use crate::epoch::Epoch;
use crate::marks::{Mark, Marks, Turn};
use crate::order::{Issuer, Order};
use std::collections::{BTreeMap, VecDeque};

/// As many rows as the rules of a zone have.
pub(crate) const MOST_ORDERS: usize = 65_536;
/// 1,024 of the longest prefixes, and as much again.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The last entry of the log that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cursor {
    /// Number of the epoch in the entry's id.
    pub(crate) epoch: u64,
    /// Sequence number; the next entry has the next one.
    pub(crate) sequence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) issuer: Issuer,
    /// Number of this node's last order.
    pub(crate) issued: u64,
    /// The greatest number of its orders that was in a log.
    pub(crate) published: u64,
    /// `None` before the first one is followed.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) cursor: Cursor,
    pub(crate) marks: Marks,
    placed: VecDeque<(u64, Order)>,
    unplaced: BTreeMap<(Issuer, u64), Order>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(issuer: Issuer) -> Held {
        Held {
            issuer,
            issued: 0,
            published: 0,
            epoch: None,
            cursor: Cursor::default(),
            marks: Marks::default(),
            placed: VecDeque::new(),
            unplaced: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// As another issuer begins beside the one that holds it: what is in no log yet is the first one's.
    pub(crate) fn as_another(&self, issuer: Issuer) -> Held {
        let mut marks = self.marks.clone();
        marks.set(self.issuer, Mark { number: self.published, open: false });
        let (epoch, cursor) = (self.epoch.clone(), self.cursor);
        Held { epoch, cursor, marks, ..Held::new(issuer) }
    }

    /// Takes over a later state, and keeps the orders.
    pub(crate) fn take_state(&mut self, later: Held) {
        let (placed, unplaced) = (std::mem::take(&mut self.placed), std::mem::take(&mut self.unplaced));
        let bytes = self.bytes;
        *self = Held { placed, unplaced, bytes, ..later };
    }

    pub(crate) fn len(&self) -> usize {
        self.placed.len() + self.unplaced.len()
    }

    /// Placed ones with their sequence numbers, then the others.
    pub(crate) fn orders(&self) -> impl Iterator<Item = (Option<u64>, &Order)> {
        let placed = self.placed.iter().map(|(place, order)| (Some(*place), order));
        placed.chain(self.unplaced.values().map(|order| (None, order)))
    }

    /// Orders of this node after a number that are in no log yet, the first first.
    pub(crate) fn own_unplaced(&self, after: u64, most: usize) -> Vec<Order> {
        let range = (self.issuer, after.saturating_add(1))..=(self.issuer, u64::MAX);
        self.unplaced.range(range).take(most).map(|(_, order)| order.clone()).collect()
    }

    pub(crate) fn unpublished(&self) -> usize {
        self.unplaced.range((self.issuer, 0)..=(self.issuer, u64::MAX)).count()
    }

    /// Orders of other nodes that are in no log any more.
    pub(crate) fn others_unplaced(&self, most: usize) -> Vec<Order> {
        let others = self.unplaced.values().filter(|order| order.issuer != self.issuer);
        others.take(most).cloned().collect()
    }

    pub(crate) fn has_unplaced(&self) -> bool {
        !self.unplaced.is_empty()
    }

    /// Adds an order as it was read from a journal, or as this node gives it.
    pub(crate) fn add(&mut self, place: Option<u64>, order: Order) {
        self.bytes += order.cost();
        let key = (order.issuer, order.number);
        let replaced = match place {
            Some(place) => {
                let replaced = self.unplaced.remove(&key);
                self.placed.push_back((place, order));
                replaced
            }
            None => self.unplaced.insert(key, order),
        };
        self.bytes -= replaced.map_or(0, |order| order.cost());
        self.keep_within_bounds();
    }

    fn keep_within_bounds(&mut self) {
        while self.len() > MOST_ORDERS || self.bytes > MOST_BYTES {
            let oldest = match self.placed.pop_front() {
                Some((_, order)) => Some(order),
                None => self.unplaced.pop_first().map(|(_, order)| order),
            };
            let Some(oldest) = oldest else { return };
            self.bytes -= oldest.cost();
        }
    }

    /// The order was seen in the log. Returns it if it was in none before.
    pub(crate) fn place(&mut self, issuer: Issuer, number: u64, place: u64) -> Option<&Order> {
        if issuer == self.issuer {
            self.published = self.published.max(number);
        }
        let order = self.unplaced.remove(&(issuer, number))?;
        self.placed.push_back((place, order));
        self.placed.back().map(|(_, order)| order)
    }

    /// What an order that was read is to this node.
    pub(crate) fn turn(&self, order: &Order) -> Turn {
        match order.issuer == self.issuer {
            true if order.number <= self.issued => Turn::Known,
            // Given before the end of this node's journal was lost.
            true => Turn::Next,
            false => self.marks.turn(order.issuer, order.number),
        }
    }

    /// Notes that an order was carried out.
    pub(crate) fn carried_out(&mut self, order: Order, place: u64) {
        if order.issuer == self.issuer {
            self.issued = self.issued.max(order.number);
            self.published = self.published.max(order.number);
        } else {
            self.marks.set(order.issuer, Mark { number: order.number, open: false });
        }
        self.add(Some(place), order);
    }

    /// Goes on in another epoch; what its log does not hold is to be published again. Returns false if what it
    /// holds is unknown: then the zone must be purged.
    pub(crate) fn follow(&mut self, epoch: Epoch) -> bool {
        let survived = match &self.epoch {
            Some(known) if epoch.is_after(known) => Some(epoch.base),
            _ => None,
        };
        let base = survived.unwrap_or(0);
        let (kept, lost) =
            std::mem::take(&mut self.placed).into_iter().partition(|(place, _)| *place <= base);
        self.placed = kept;
        let lost: VecDeque<(u64, Order)> = lost;
        self.unplaced.extend(lost.into_iter().map(|(_, order)| ((order.issuer, order.number), order)));
        self.cursor.sequence = self.cursor.sequence.min(base);
        self.epoch = Some(epoch);
        survived.is_some()
    }

    /// The zone was purged after the head was at `cursor` and issuers had published these numbers.
    pub(crate) fn start_over(&mut self, cursor: Cursor, numbers: impl Iterator<Item = (Issuer, u64)>) {
        self.cursor = cursor;
        let own = self.issuer;
        self.marks.reopen(numbers.filter(|(issuer, _)| *issuer != own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{How, What};

    fn order(issuer: u8, number: u64) -> Order {
        let issuer = Issuer([issuer; 16]);
        Order { issuer, number, at: 0, how: How::Hard, awaited: false, what: What::Tag(vec![issuer.0[0]]) }
    }

    fn epoch(text: &str) -> Epoch {
        Epoch::parse(text).expect("an epoch")
    }

    #[test]
    fn a_new_epoch_unplaces_what_its_log_does_not_hold() {
        let mut held = Held::new(Issuer([1; 16]));
        assert!(!held.follow(epoch("1:a::r:0")), "nothing is known of it");
        held.add(None, order(1, 1));
        assert_eq!(held.own_unplaced(0, 9).len(), 1);
        assert!(held.place(Issuer([1; 16]), 1, 1).is_some());
        held.carried_out(order(2, 1), 2);
        held.carried_out(order(2, 2), 3);
        held.cursor = Cursor { epoch: 1, sequence: 3 };
        assert!(!held.has_unplaced() && held.published == 1);
        assert!(held.follow(epoch("2:b:a:s:2")));
        assert_eq!(held.others_unplaced(9), [order(2, 2)]);
        assert_eq!(held.cursor.sequence, 2);
        assert_eq!(held.turn(&order(2, 2)), Turn::Known);
        assert!(held.place(Issuer([2; 16]), 2, 3).is_some() && !held.has_unplaced());
        assert!(!held.follow(epoch("4:d:c:s:3")), "one was missed");
        assert_eq!((held.own_unplaced(0, 9).len(), held.others_unplaced(9).len()), (1, 2));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let mut held = Held::new(Issuer([1; 16]));
        for number in 1..=MOST_ORDERS as u64 + 10 {
            held.carried_out(order(2, number), number);
        }
        assert_eq!(held.len(), MOST_ORDERS);
        assert_eq!(held.orders().next().map(|(place, _)| place), Some(Some(11)));
        let long = |number| Order { what: What::Prefix(vec![b'x'; 8 * 1024]), ..order(2, number) };
        for number in 1..=8_000 {
            held.carried_out(long(1_000_000 + number), 1_000_000 + number);
        }
        assert!(held.len() >= 2_048 && held.len() < 5_000, "{}", held.len());
    }
}
