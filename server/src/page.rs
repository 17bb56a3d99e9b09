//! What the parts of one page have in common (`filter/ssi`): the client's request and all subrequests that its answer is made of.
//!
//! Variables that commands set, blocks, what an expression captured, and how many subrequests there were: one for all of them, as in
//! nginx, and within bounds, for whoever writes a page may not be whoever runs the server. Before: nothing; next: `request`, each of
//! which has a [`Sheet`].

use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of variables, blocks and captures of one page.
const MOST_HELD: usize = 1024 * 1024;
/// Subrequests that one page is made of; nginx stops at 64,535 of them.
const MOST_PARTS: u32 = 1000;
/// Subrequests of one page that are under way at a time, but for those that what is before them waits for.
const AT_A_TIME: u32 = 16;
/// Subrequests one within the other, as in nginx.
const DEEPEST: u8 = 51;
/// Work that expressions of one page may be, as [`Page::expression`] counts it: a thousand of them, each with a short text.
const MOST_MATCHING: u64 = 16 * 1024 * 1024;

/// What all parts of a page have.
#[derive(Debug, Default)]
pub struct Page {
    variables: RefCell<Vec<(Vec<u8>, Bytes)>>,
    blocks: RefCell<Vec<(Vec<u8>, Block)>>,
    captures: RefCell<Vec<Bytes>>,
    held: Cell<usize>,
    parts: Cell<u32>,
    under_way: Cell<u32>,
    matching: Cell<u64>,
    work: Cell<u64>,
}

/// The text of a block, which all have that it stands for.
pub type Block = Rc<Vec<u8>>;

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
    pub text: Block,
    /// Its media type.
    pub media: Vec<u8>,
}

/// There is no room for more variables and blocks, or no work is left.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMuch;

impl Page {
    /// A variable's value, or what the last expression captured; the name is in lower case.
    pub fn value(&self, name: &[u8]) -> Option<Bytes> {
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
                *before = value.into_boxed_slice().into();
            }
            None => variables.push((name.to_vec(), value.into_boxed_slice().into())),
        }
        Ok(())
    }

    /// Takes over what an expression captured.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn capture(&self, groups: Vec<Bytes>) -> Result<(), TooMuch> {
        let bytes = |groups: &[Bytes]| groups.iter().map(Bytes::len).sum::<usize>();
        self.hold(bytes(&groups))?;
        let before = self.captures.replace(groups);
        self.held.set(self.held.get() - bytes(&before));
        Ok(())
    }

    /// Counts what was done for the page, in bytes of text or what takes as long.
    pub fn worked(&self, work: usize) {
        self.work.set(self.work.get() + work as u64);
    }

    /// What has been done for it so far.
    pub fn work(&self) -> u64 {
        self.work.get()
    }

    /// Counts the work of an expression, before it is done.
    ///
    /// # Errors
    /// Those before were all that one page may have.
    pub fn expression(&self, work: usize) -> Result<(), TooMuch> {
        let matching = self.matching.get() + work as u64;
        if matching > MOST_MATCHING {
            return Err(TooMuch);
        }
        self.matching.set(matching);
        self.worked(work);
        Ok(())
    }

    /// Begins a block, which [`Page::grow`] adds to.
    pub fn begin_block(&self, name: &[u8]) -> Result<(), TooMuch> {
        self.hold(name.len())?;
        self.blocks.borrow_mut().push((name.to_vec(), Block::default()));
        Ok(())
    }

    /// Adds to the block that was begun last.
    pub fn grow(&self, text: &[u8]) -> Result<(), TooMuch> {
        self.hold(text.len())?;
        if let Some((_, block)) = self.blocks.borrow_mut().last_mut() {
            Rc::make_mut(block).extend_from_slice(text);
        }
        Ok(())
    }

    /// A block by its name: of several the first.
    pub fn block(&self, name: &[u8]) -> Option<Block> {
        let blocks = self.blocks.borrow();
        blocks.iter().find(|(known, _)| known == name).map(|(_, block)| block.clone())
    }

    /// Whether one more subrequest may be under way that nobody waits for yet.
    pub fn has_place(&self) -> bool {
        self.under_way.get() < AT_A_TIME
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

/// The place of a subrequest that is under way.
#[derive(Debug)]
pub struct PartPlace(Rc<Page>);

impl PartPlace {
    /// One of a page.
    pub fn of(page: &Rc<Page>) -> PartPlace {
        page.under_way.set(page.under_way.get() + 1);
        PartPlace(page.clone())
    }
}

impl Drop for PartPlace {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
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
        page.capture(vec![Bytes::from_static(b"whole"), Bytes::from_static(b"first")])
            .expect("there is room");
        assert_eq!(page.value(b"1").as_deref(), Some(&b"first"[..]));
        assert_eq!(page.value(b"2"), None);
    }

    #[test]
    fn captures_are_held_as_all_else_and_expressions_have_a_bound_together() {
        let page = Page::default();
        let group = |length| Bytes::from(vec![b'x'; length]);
        for _ in 0..10 {
            assert_eq!(page.capture(vec![group(MOST_HELD / 4); 2]), Ok(()));
        }
        assert_eq!(page.capture(vec![group(MOST_HELD / 4); 3]), Err(TooMuch));
        assert_eq!(page.set(b"a", vec![b'x'; MOST_HELD]), Err(TooMuch));
        assert_eq!(page.capture(Vec::new()), Ok(()));
        assert_eq!(page.set(b"a", vec![b'x'; MOST_HELD - 1]), Ok(()));
        let work = 1_000_000;
        assert_eq!(
            (0..100).filter(|_| page.expression(work).is_ok()).count() as u64,
            MOST_MATCHING / work as u64
        );
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
