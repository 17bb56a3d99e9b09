//! Values of variables that one request has read so far and that stay: of made ones (`map`, `geo` …), and of those that depend on the
//! location which reads them first.
//!
//! They stand in one text, which the next request reuses; a request that reads none touches nothing here. One that comes back to
//! itself has no value, and no chain of them is longer than `DEEPEST`. Next: `request`, which has one; `variables`, which
//! makes the values.

use crate::shows::Shows;
use millstream_conf::model::MadeId;
use millstream_conf::variables::Builtin;
use std::cell::RefCell;

/// Nesting of variables made of others, as in nginx.
const DEEPEST: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberedId {
    Made(MadeId),
    Builtin(Builtin),
}

/// Variables of one request that keep their first value.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    known: RefCell<RememberedValues>,
}

#[derive(Debug, Clone, Default)]
struct RememberedValues {
    /// All values in a row.
    text: Vec<u8>,
    values: Vec<RememberedValue>,
    open: Vec<RememberedId>,
}

#[derive(Debug, Clone, Copy)]
struct RememberedValue {
    id: RememberedId,
    /// Range in `text`; `None`: the variable has no value.
    place: Option<(u32, u32)>,
    shows: Shows,
}

impl Remembered {
    pub fn clear(&mut self) {
        let known = self.known.get_mut();
        if !known.values.is_empty() {
            known.text.clear();
            known.values.clear();
        }
    }

    /// Whether the variable has a value; `None` if that is not known yet.
    pub fn append(&self, id: RememberedId, out: &mut Vec<u8>) -> Option<bool> {
        let known = self.known.borrow();
        let value = known.values.iter().find(|value| value.id == id)?;
        if let Some((start, end)) = value.place {
            out.extend_from_slice(&known.text[start as usize..end as usize]);
        }
        Some(value.place.is_some())
    }

    /// What a known value reveals about the client.
    pub fn shows(&self, id: RememberedId) -> Option<Shows> {
        self.known.borrow().values.iter().find(|value| value.id == id).map(|value| value.shows)
    }

    pub fn begin(&self, id: RememberedId) -> bool {
        let open = &mut self.known.borrow_mut().open;
        if open.len() >= DEEPEST || open.contains(&id) {
            return false;
        }
        open.push(id);
        true
    }

    pub fn end(&self) {
        self.known.borrow_mut().open.pop();
    }

    /// Ends the last evaluation and keeps its value, or that there is none.
    pub fn end_with(&self, value: Option<&[u8]>, shows: Shows) {
        let mut known = self.known.borrow_mut();
        let Some(id) = known.open.pop() else { return };
        let place = value.map(|value| {
            let start = known.text.len() as u32;
            known.text.extend_from_slice(value);
            (start, known.text.len() as u32)
        });
        known.values.push(RememberedValue { id, place, shows });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(id: u16) -> RememberedId {
        RememberedId::Made(MadeId(id))
    }

    #[test]
    fn a_value_stays_for_the_request_unless_it_is_to_be_made_anew() {
        let (mut remembered, mut out) = (Remembered::default(), Vec::new());
        let link = RememberedId::Builtin(Builtin::SecureLink);
        assert!(remembered.begin(made(0)) && remembered.begin(link));
        remembered.end_with(None, Shows::WHO);
        remembered.end_with(Some(b"value"), Shows::NOTHING);
        assert!(remembered.begin(made(1)));
        remembered.end();
        let told = [made(0), link, made(1)].map(|id| remembered.append(id, &mut out));
        assert_eq!((told, out.as_slice()), ([Some(true), Some(false), None], &b"value"[..]));
        assert_eq!([link, made(1)].map(|id| remembered.shows(id)), [Some(Shows::WHO), None]);
        remembered.clear();
        assert_eq!(remembered.append(made(0), &mut out), None);
    }

    #[test]
    fn what_comes_back_to_itself_is_not_begun_and_neither_is_one_too_many() {
        let remembered = Remembered::default();
        assert!(remembered.begin(made(0)) && !remembered.begin(made(0)));
        let begun = (1..1000).take_while(|&id| remembered.begin(made(id))).count();
        assert_eq!(begun, DEEPEST - 1);
        remembered.end();
        assert!(remembered.begin(made(1)) || remembered.begin(made(500)));
    }
}
