//! A slot knows its key whatever comes and goes.

use super::*;
use crate::body::Body;
use crate::samples::{head, start};
use bytes::Bytes;
use proptest::prelude::*;

const KEY: &[u8] = b"the key";

fn key() -> Arc<Key> {
    Arc::new(Key::new(KEY, 5))
}

fn entry() -> Arc<Entry> {
    let body = Body::Memory(Bytes::from_static(b"body").into());
    Arc::new(Entry::new(KEY, None, (1, 1), head(&[], None, 60, start()).view(), body))
}

fn cell(value: u8, entry: Option<Arc<Entry>>) -> Cell {
    Cell { values: Some(Arc::new([value])), entry, ..Cell::default() }
}

proptest! {
    #[test]
    fn a_slot_with_cells_states_its_key(steps in proptest::collection::vec((0u8..4, any::<u8>()), 0..40)) {
        let mut slot = Slot::new(key(), 0, 0);
        for (step, number) in steps {
            let count = slot.cells.len();
            match step {
                0 => slot.push(cell(number, None), key),
                1 => slot.push(cell(number, Some(entry())), key),
                2 if count > 0 => _ = slot.remove(number as usize % count),
                3 if count > 0 => _ = slot.take_entry(number as usize % count),
                _ if count > 0 => _ = slot.put_entry(number as usize % count, entry()),
                _ => {}
            }
            let with_entry = slot.cells.iter().filter(|cell| cell.entry.is_some()).count();
            prop_assert!(slot.cells.is_empty() || slot.key() == KEY);
            prop_assert!(slot.key.is_none() || with_entry == 0, "kept twice");
        }
    }
}

#[test]
fn cells_keep_their_order() {
    let mut slot = Slot::new(key(), 0, 0);
    (0..5).for_each(|number| slot.push(cell(number, None), key));
    assert_eq!(slot.remove(1).values.as_deref(), Some(&[1][..]));
    assert_eq!(slot.position(Some(&[2])), Some(1));
    (0..3).for_each(|_| _ = slot.remove(0));
    assert_eq!((slot.position(Some(&[4])), slot.cells.len()), (Some(0), 1));
}

#[test]
fn a_slot_is_small() {
    assert!(size_of::<Slot>() <= 104, "{}", size_of::<Slot>());
}
