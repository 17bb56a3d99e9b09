//! Networks that lie in each other, laid out flat: where a value begins.
//!
//! IPv4 addresses stand in the upper bits, so that both kinds are laid out by the same steps. Next: `declared/made/geo`.

use std::collections::HashMap;

use crate::declared::made::geo::GeoTable;

#[derive(Debug, Default)]
pub(super) struct Networks {
    /// By first address and mask length.
    entries: HashMap<(u128, u8), u32>,
}

impl Networks {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value that it replaces.
    pub(super) fn insert(&mut self, first: u128, bits: u8, value: u32) -> Option<u32> {
        self.entries.insert((first, bits), value)
    }

    pub(super) fn remove(&mut self, first: u128, bits: u8) -> Option<u32> {
        self.entries.remove(&(first, bits))
    }

    /// Addresses in no network have the first value.
    pub(super) fn table<T: Address>(&self) -> GeoTable<T> {
        let mut entries: Vec<_> = self.entries.iter().map(|(&network, &value)| (network, value)).collect();
        // Whoever lies in another comes behind it.
        entries.sort_unstable();
        let mut flat = Flat::new(0);
        // Those that are not over yet, the innermost last: their last address and their value.
        let mut around: Vec<(u128, u32)> = vec![(u128::MAX, 0)];
        for ((first, bits), value) in entries {
            while let Some(&(last, _)) = around.last()
                && last < first
            {
                around.pop();
                flat.go_on(last, &around);
            }
            flat.begin(first, value);
            around.push((first | u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0), value));
        }
        while let Some((last, _)) = around.pop() {
            flat.go_on(last, &around);
        }
        flat.table()
    }
}

pub(super) struct Flat {
    starts: Vec<(u128, u32)>,
}

impl Flat {
    pub(super) fn new(value: u32) -> Self {
        Flat { starts: vec![(0, value)] }
    }

    pub(super) fn begin(&mut self, start: u128, value: u32) {
        match self.starts.last_mut() {
            Some((last, known)) if *last == start => *known = value,
            Some((_, known)) if *known == value => {}
            _ => self.starts.push((start, value)),
        }
    }

    /// After the last address of a network, the enclosing one continues.
    fn go_on(&mut self, last: u128, around: &[(u128, u32)]) {
        if let (Some(next), Some(&(_, value))) = (last.checked_add(1), around.last()) {
            self.begin(next, value);
        }
    }

    pub(super) fn table<T: Address>(self) -> GeoTable<T> {
        let (starts, values) = self.starts.into_iter().map(|(start, value)| (T::upper(start), value)).unzip();
        let (starts, values): (Vec<T>, Vec<u32>) = (starts, values);
        GeoTable { starts: starts.into(), values: values.into() }
    }
}

/// An address as a number, from the upper bits of a `u128`.
pub(super) trait Address {
    fn upper(bits: u128) -> Self;
}

impl Address for u32 {
    fn upper(bits: u128) -> u32 {
        (bits >> 96) as u32
    }
}

impl Address for u128 {
    fn upper(bits: u128) -> u128 {
        bits
    }
}
