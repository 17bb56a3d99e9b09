//! Variables that the configuration gives values to, by their numbers: what `set` sets and what named groups capture. And what groups
//! without a name captured last.
//!
//! The values of a request stand in one text one after the other, which is reused; setting one again appends it. A variable
//! that was not set is told apart from an empty one. Before: `conf`, which numbers them; next: `variables`.

use std::cell::{Cell, Ref, RefCell};

/// Captures of the regular expression that matched last: text and byte ranges of its groups.
#[derive(Debug, Default, Clone)]
pub struct Captures {
    /// What was matched against.
    pub text: Vec<u8>,
    /// Group 0 is the whole match; a group that took no part is empty.
    pub groups: Vec<(u32, u32)>,
    /// Whether the text shows who asks.
    pub is_personal: bool,
}

impl Captures {
    /// Takes them away.
    pub fn clear(&mut self) {
        self.text.clear();
        self.groups.clear();
        self.is_personal = false;
    }
}

/// The values of one request.
#[derive(Debug, Clone, Default)]
pub struct Slots {
    text: RefCell<Vec<u8>>,
    places: Vec<Cell<SlotValue>>,
}

#[derive(Debug, Clone, Copy)]
enum SlotValue {
    /// Neither set nor read.
    Unset,
    /// Read without a value.
    Missed,
    /// From here to there in the text, and whether it shows who asks.
    At(u32, u32, bool),
}

impl Slots {
    /// Room for so many variables, none of which has a value.
    pub fn with(count: usize) -> Slots {
        let mut slots = Slots::default();
        slots.reset(count);
        slots
    }

    /// Takes all values away, and makes room for so many variables.
    pub fn reset(&mut self, count: usize) {
        self.text.get_mut().clear();
        self.places.clear();
        self.places.resize(count, Cell::new(SlotValue::Unset));
    }

    /// A variable's value.
    pub fn value(&self, number: u16) -> Option<Ref<'_, [u8]>> {
        match self.places.get(usize::from(number))?.get() {
            SlotValue::At(start, end, _) => {
                Some(Ref::map(self.text.borrow(), |text| &text[start as usize..end as usize]))
            }
            SlotValue::Unset | SlotValue::Missed => None,
        }
    }

    /// Notes that a variable was read without a value: whether for the first time.
    pub fn miss(&self, number: u16) -> bool {
        let Some(place) = self.places.get(usize::from(number)) else { return false };
        matches!(place.replace(SlotValue::Missed), SlotValue::Unset)
    }

    /// Whether its value shows who asks.
    pub fn is_personal(&self, number: u16) -> bool {
        let place = self.places.get(usize::from(number));
        place.is_some_and(|place| matches!(place.get(), SlotValue::At(_, _, true)))
    }

    /// Gives a variable a value, which may show who asks; an expression of a `map` does so while a value is being evaluated.
    pub fn set(&self, number: u16, value: &[u8], is_personal: bool) {
        let Some(place) = self.places.get(usize::from(number)) else { return };
        let mut text = self.text.borrow_mut();
        let start = text.len() as u32;
        text.extend_from_slice(value);
        place.set(SlotValue::At(start, text.len() as u32, is_personal));
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
        slots.set(0, b"one", true);
        slots.set(1, b"", false);
        slots.set(0, b"other", false);
        assert_eq!(
            (slots.value(0).as_deref(), slots.value(1).as_deref()),
            (Some(&b"other"[..]), Some(&b""[..]))
        );
        slots.reset(1);
        assert!(slots.value(0).is_none() && slots.value(1).is_none());
        slots.set(1, b"past the end", true);
        assert!(slots.value(1).is_none());
    }
}
