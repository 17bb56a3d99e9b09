//! How far the orders of each issuer were carried out.
//!
//! An issuer numbers its orders without gaps. So an order that was seen before is known by its number, and one that was lost shows
//! at the next. Next: `held`.

use crate::order::Issuer;
use std::collections::BTreeMap;

/// Issuers that are remembered; of another the first order must be its first.
const MOST: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    /// Everything up to it is in force.
    pub(crate) number: u64,
    /// The zone was purged after this number: whatever comes next is taken.
    pub(crate) open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Known,
    Next,
    /// An order before it is missing.
    Gap,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Marks(BTreeMap<Issuer, Mark>);

impl Marks {
    pub(crate) fn of(&self, issuer: Issuer) -> Mark {
        self.0.get(&issuer).copied().unwrap_or_default()
    }

    pub(crate) fn turn(&self, issuer: Issuer, number: u64) -> Turn {
        let mark = self.of(issuer);
        match number {
            number if number <= mark.number => Turn::Known,
            number if mark.open || number == mark.number + 1 => Turn::Next,
            _ => Turn::Gap,
        }
    }

    pub(crate) fn set(&mut self, issuer: Issuer, mark: Mark) {
        if self.0.len() >= MOST && !self.0.contains_key(&issuer) {
            self.0.pop_first();
        }
        self.0.insert(issuer, mark);
    }

    /// After a purge of the zone that covers everything issued up to these numbers.
    pub(crate) fn reopen(&mut self, numbers: impl Iterator<Item = (Issuer, u64)>) {
        self.0.values_mut().for_each(|mark| mark.open = true);
        for (issuer, number) in numbers {
            let number = number.max(self.of(issuer).number);
            self.set(issuer, Mark { number, open: true });
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Issuer, Mark)> {
        self.0.iter().map(|(issuer, mark)| (*issuer, *mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_known_next_or_behind_a_gap() {
        let (a, b) = (Issuer([1; 16]), Issuer([2; 16]));
        let mut marks = Marks::default();
        assert_eq!([1, 2].map(|number| marks.turn(a, number)), [Turn::Next, Turn::Gap]);
        marks.set(a, Mark { number: 5, open: false });
        assert_eq!([5, 6, 7].map(|number| marks.turn(a, number)), [Turn::Known, Turn::Next, Turn::Gap]);
        marks.reopen([(a, 7), (b, 3)].into_iter());
        assert_eq!([7, 8, 20].map(|number| marks.turn(a, number)), [Turn::Known, Turn::Next, Turn::Next]);
        assert_eq!([3, 9].map(|number| marks.turn(b, number)), [Turn::Known, Turn::Next]);
    }

    #[test]
    fn issuers_that_are_remembered_are_bounded() {
        let mut marks = Marks::default();
        for at in 0..3 * MOST as u32 {
            let mut issuer = [0; 16];
            issuer[..4].copy_from_slice(&at.to_be_bytes());
            marks.set(Issuer(issuer), Mark::default());
        }
        assert_eq!(marks.iter().count(), MOST);
    }
}
