//! The values of made variables (`map`, `geo` …) that one request has read so far.
//!
//! They stand in one text, which the next request reuses; a request that reads none touches nothing here. One that comes back to
//! itself has no value, and no chain of them is longer than `DEEPEST`. Next: `request`, which has one; `variables/made`, which
//! makes the values.

use millstream_conf::model::{Made, MadeId};
use std::cell::RefCell;

/// How many made variables may be made of each other in a row, as in nginx.
const DEEPEST: usize = 100;

/// The made variables of one request, as far as they were read.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    known: RefCell<RememberedValues>,
}

#[derive(Debug, Clone, Default)]
struct RememberedValues {
    /// The values one after the other.
    text: Vec<u8>,
    /// Which variable's is where.
    values: Vec<(MadeId, u32, u32)>,
    /// Those that are being made, the outermost first.
    open: Vec<MadeId>,
}

impl Remembered {
    /// Forgets all values; they keep their room.
    pub fn clear(&mut self) {
        let known = self.known.get_mut();
        if !known.values.is_empty() {
            known.text.clear();
            known.values.clear();
        }
    }

    /// Appends a value that is known already.
    pub fn append(&self, id: MadeId, out: &mut Vec<u8>) -> bool {
        let known = self.known.borrow();
        let Some(&(_, start, end)) = known.values.iter().find(|(own, ..)| *own == id) else { return false };
        out.extend_from_slice(&known.text[start as usize..end as usize]);
        true
    }

    /// Begins to make a variable; false where it is being made already, or too many are.
    pub fn begin(&self, id: MadeId) -> bool {
        let open = &mut self.known.borrow_mut().open;
        if open.len() >= DEEPEST || open.contains(&id) {
            return false;
        }
        open.push(id);
        true
    }

    /// Ends what was begun last, and keeps its value unless it is to be made anew.
    pub fn end(&self, made: &Made, value: &[u8]) {
        let mut known = self.known.borrow_mut();
        let id = known.open.pop();
        if let Some(id) = id.filter(|_| !made.volatile) {
            let start = known.text.len() as u32;
            known.text.extend_from_slice(value);
            let end = known.text.len() as u32;
            known.values.push((id, start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_conf::source::Span;

    fn made(volatile: bool) -> Made {
        Made { name: "x".into(), span: Span::default(), volatile, making: None }
    }

    #[test]
    fn a_value_is_kept_for_the_request_unless_it_is_volatile() {
        let (mut remembered, mut out) = (Remembered::default(), Vec::new());
        for (id, volatile) in [(MadeId(0), false), (MadeId(1), true)] {
            assert!(remembered.begin(id));
            remembered.end(&made(volatile), b"value");
        }
        assert!(remembered.append(MadeId(0), &mut out) && !remembered.append(MadeId(1), &mut out));
        assert_eq!(out, b"value");
        remembered.clear();
        assert!(!remembered.append(MadeId(0), &mut out));
    }

    #[test]
    fn what_comes_back_to_itself_is_not_begun_and_neither_is_one_too_many() {
        let remembered = Remembered::default();
        assert!(remembered.begin(MadeId(0)) && !remembered.begin(MadeId(0)));
        let begun = (1..1000).take_while(|&id| remembered.begin(MadeId(id))).count();
        assert_eq!(begun, DEEPEST - 1);
        remembered.end(&made(true), b"");
        assert!(remembered.begin(MadeId(1)) || remembered.begin(MadeId(500)));
    }
}
