//! Variables that the configuration gives values to, by their numbers: what `set` sets and what named groups capture. And what groups
//! without a name captured last.
//!
//! The values of a request stand in one text one after the other, which is reused; setting one again appends it. A variable
//! that was not set is told apart from an empty one. Before: `conf`, which numbers them; next: `variables`.

use crate::shows::Shows;
use std::cell::{Cell, Ref, RefCell};

/// Of the last regular expression that matched.
#[derive(Debug, Default, Clone)]
pub struct Captures {
    pub text: Vec<u8>,
    /// Group 0 is the whole match; an unused group is empty.
    pub groups: Vec<(u32, u32)>,
    /// What the text reveals about the client.
    pub shows: Shows,
    /// What it and all earlier texts revealed.
    pub have_shown: Shows,
}

impl Captures {
    pub fn clear(&mut self) {
        self.text.clear();
        self.groups.clear();
        (self.shows, self.have_shown) = (Shows::NOTHING, Shows::NOTHING);
    }
}

#[derive(Debug, Clone, Default)]
pub struct Slots {
    text: RefCell<Vec<u8>>,
    places: Vec<Cell<SlotValue>>,
    /// What the values, and the choice among them, have revealed so far.
    shows: Vec<Cell<Shows>>,
}

#[derive(Debug, Clone, Copy)]
enum SlotValue {
    Unset,
    Missed,
    At(u32, u32),
}

impl Slots {
    pub fn with(count: usize) -> Slots {
        let mut slots = Slots::default();
        slots.reset(count);
        slots
    }

    pub fn reset(&mut self, count: usize) {
        self.text.get_mut().clear();
        self.places.clear();
        self.places.resize(count, Cell::new(SlotValue::Unset));
        self.shows.clear();
        self.shows.resize(count, Cell::default());
    }

    pub fn value(&self, number: u16) -> Option<Ref<'_, [u8]>> {
        match self.places.get(usize::from(number))?.get() {
            SlotValue::At(start, end) => {
                Some(Ref::map(self.text.borrow(), |text| &text[start as usize..end as usize]))
            }
            SlotValue::Unset | SlotValue::Missed => None,
        }
    }

    /// Whether it is the first read without a value.
    pub fn miss(&self, number: u16) -> bool {
        let Some(place) = self.places.get(usize::from(number)) else { return false };
        matches!(place.replace(SlotValue::Missed), SlotValue::Unset)
    }

    /// A copy without the values that reveal any of these.
    pub fn without(&self, any: Shows) -> Slots {
        let copy = self.clone();
        for (place, shows) in copy.places.iter().zip(&copy.shows) {
            if shows.get().has(any) {
                place.set(SlotValue::Missed);
            }
        }
        copy
    }

    /// Whether a value, or its lack, reveals any of these.
    pub fn have_shown(&self, any: Shows) -> bool {
        self.shows.iter().any(|shows| shows.get().has(any))
    }

    pub fn shows(&self, number: u16) -> Shows {
        self.shows.get(usize::from(number)).map(Cell::get).unwrap_or_default()
    }

    /// Notes what decided a variable's value, or its lack.
    pub fn decide(&self, number: u16, shows: Shows) {
        if let Some(before) = self.shows.get(usize::from(number)) {
            before.set(before.get() | shows);
        }
    }

    /// Also during an evaluation, by an expression of a `map`. What the old value revealed still counts, as
    /// others may be derived from it.
    pub fn set(&self, number: u16, value: &[u8], shows: Shows) {
        let Some(place) = self.places.get(usize::from(number)) else { return };
        self.decide(number, shows);
        let mut text = self.text.borrow_mut();
        let start = text.len() as u32;
        text.extend_from_slice(value);
        place.set(SlotValue::At(start, text.len() as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_the_value_that_it_was_given_last_and_none_after_a_reset() {
        let mut slots = Slots::default();
        slots.reset(2);
        assert!(slots.value(0).is_none());
        assert!(slots.miss(0) && !slots.miss(0), "it is missed for the first time once");
        slots.set(0, b"one", Shows::WHO);
        slots.set(1, b"", Shows::NOTHING);
        slots.set(0, b"other", Shows::NOTHING);
        assert_eq!(
            (slots.value(0).as_deref(), slots.value(1).as_deref()),
            (Some(&b"other"[..]), Some(&b""[..]))
        );
        assert_eq!((slots.shows(0), slots.shows(1)), (Shows::WHO, Shows::NOTHING));
        slots.reset(1);
        assert!(slots.value(0).is_none() && slots.value(1).is_none());
        slots.set(1, b"past the end", Shows::WHO);
        assert!(slots.value(1).is_none());
    }
}
