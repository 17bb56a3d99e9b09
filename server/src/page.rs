//! What the parts of one page have in common (`filter/ssi`): the client's request and all subrequests that its answer is made of.
//!
//! Variables that commands set, blocks, what an expression captured, and how many subrequests there were: one for all of them, as in
//! nginx, and within bounds, for whoever writes a page may not be whoever runs the server. Before: nothing; next: `request`, each of
//! which has a [`Sheet`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of variables and blocks of one page.
const MOST_HELD: usize = 1024 * 1024;
/// Subrequests that one page is made of; nginx stops at 64,535 of them.
const MOST_PARTS: u32 = 1000;
/// Subrequests one within the other, as in nginx.
const DEEPEST: u8 = 51;

/// What all parts of a page have.
#[derive(Debug, Default)]
pub struct Page {
    variables: RefCell<Vec<(Vec<u8>, Vec<u8>)>>,
    blocks: RefCell<Vec<(Vec<u8>, Vec<u8>)>>,
    captures: RefCell<Vec<Vec<u8>>>,
    held: Cell<usize>,
    parts: Cell<u32>,
}

/// What one request has of its page.
#[derive(Debug, Default)]
pub struct Sheet {
    /// What it shares.
    pub page: Rc<Page>,
    /// How dates are written in it, where a command says so.
    pub time_format: RefCell<Option<Vec<u8>>>,
    /// What stands for its answer where that is empty or an error: the text and its type.
    pub stub: RefCell<Option<Stub>>,
    depth: u8,
}

/// What stands for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    /// Its text, with commands in it.
    pub text: Vec<u8>,
    /// Its media type.
    pub media: Vec<u8>,
}

/// There is no room for more variables and blocks.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMuch;

impl Page {
    /// A variable's value, or what the last expression captured; the name is in lower case.
    pub fn value(&self, name: &[u8]) -> Option<Vec<u8>> {
        if let [digit @ b'0'..=b'9'] = name
            && let Some(captured) = self.captures.borrow().get(usize::from(digit - b'0'))
        {
            return Some(captured.clone());
        }
        let variables = self.variables.borrow();
        variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn set(&self, name: &[u8], value: Vec<u8>) -> Result<(), TooMuch> {
        self.hold(name.len() + value.len())?;
        let mut variables = self.variables.borrow_mut();
        match variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, before)) => {
                self.held.set(self.held.get() - name.len() - before.len());
                *before = value;
            }
            None => variables.push((name.to_vec(), value)),
        }
        Ok(())
    }

    /// Takes over what an expression captured.
    pub fn capture(&self, groups: Vec<Vec<u8>>) {
        *self.captures.borrow_mut() = groups;
    }

    /// Begins a block, which [`Page::grow`] adds to.
    pub fn begin_block(&self, name: &[u8]) -> Result<(), TooMuch> {
        self.hold(name.len())?;
        self.blocks.borrow_mut().push((name.to_vec(), Vec::new()));
        Ok(())
    }

    /// Adds to the block that was begun last.
    pub fn grow(&self, text: &[u8]) -> Result<(), TooMuch> {
        self.hold(text.len())?;
        if let Some((_, block)) = self.blocks.borrow_mut().last_mut() {
            block.extend_from_slice(text);
        }
        Ok(())
    }

    /// A block by its name: of several the first.
    pub fn block(&self, name: &[u8]) -> Option<Vec<u8>> {
        let blocks = self.blocks.borrow();
        blocks.iter().find(|(known, _)| known == name).map(|(_, block)| block.clone())
    }

    fn hold(&self, bytes: usize) -> Result<(), TooMuch> {
        let held = self.held.get() + bytes;
        if held > MOST_HELD {
            return Err(TooMuch);
        }
        self.held.set(held);
        Ok(())
    }
}

impl Sheet {
    /// That of a subrequest, which is a part of this one.
    pub fn below(&self, stub: Option<Stub>) -> Sheet {
        Sheet {
            page: self.page.clone(),
            time_format: RefCell::default(),
            stub: RefCell::new(stub),
            depth: self.depth + 1,
        }
    }

    /// Whether one more subrequest may be made from here, which is counted.
    pub fn may_ask(&self) -> bool {
        let parts = self.page.parts.get();
        let may = self.depth < DEEPEST && parts < MOST_PARTS;
        self.page.parts.set(parts + u32::from(may));
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_no_more_than_its_bound_and_a_new_value_takes_the_place_of_the_old() {
        let page = Page::default();
        for _ in 0..10 {
            assert_eq!(page.set(b"a", vec![b'x'; MOST_HELD / 4]), Ok(()));
        }
        assert_eq!(page.set(b"b", vec![b'x'; MOST_HELD]), Err(TooMuch));
        assert_eq!(page.value(b"b"), None);
        assert_eq!(page.begin_block(b"block"), Ok(()));
        assert_eq!(page.grow(&vec![b'y'; MOST_HELD / 2]), Ok(()));
        assert_eq!(page.grow(&vec![b'y'; MOST_HELD / 2]), Err(TooMuch));
        assert_eq!(page.block(b"block").map(|block| block.len()), Some(MOST_HELD / 2));
    }

    #[test]
    fn a_digit_is_a_capture_where_there_is_one() {
        let page = Page::default();
        page.set(b"1", b"variable".to_vec()).expect("there is room");
        assert_eq!(page.value(b"1").as_deref(), Some(&b"variable"[..]));
        page.capture(vec![b"whole".to_vec(), b"first".to_vec()]);
        assert_eq!(page.value(b"1").as_deref(), Some(&b"first"[..]));
        assert_eq!(page.value(b"2"), None);
    }

    #[test]
    fn subrequests_are_bounded_in_depth_and_number() {
        let mut sheet = Sheet::default();
        let mut depth = 0;
        while sheet.may_ask() {
            sheet = sheet.below(None);
            depth += 1;
        }
        assert_eq!(depth, 51);
        let sheet = Sheet::default();
        assert_eq!((0..2000).filter(|_| sheet.may_ask()).count(), 1000);
    }
}
