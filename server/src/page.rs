//! What the parts of one page have in common (`filter/ssi`): the client's request and all subrequests that its answer is made of.
//!
//! Variables that commands set, blocks, what an expression captured, and how many subrequests there were: one for all of them, as in
//! nginx, and within bounds, for whoever writes a page may not be whoever runs the server. Before: nothing; next: `request`, each of
//! which has a [`Sheet`].

use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of variables, blocks and captures of a page.
const MOST_HELD: usize = 1024 * 1024;
/// Subrequests of a page; nginx stops at 64,535.
const MOST_PARTS: u32 = 1000;
/// Concurrent subrequests of a page, without those that earlier parts wait for.
const AT_A_TIME: u32 = 16;
/// As in nginx.
const DEEPEST: u8 = 51;
/// Work of a page's expressions, as in [`Page::expression`]: a thousand of them on short texts.
const MOST_MATCHING: u64 = 16 * 1024 * 1024;

/// Shared by all parts of a page.
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

/// Shared by all responses it replaces.
pub type Block = Rc<Vec<u8>>;

#[derive(Debug, Default)]
pub struct Sheet {
    pub page: Rc<Page>,
    /// `config timefmt`.
    pub time_format: RefCell<Option<Vec<u8>>>,
    /// Replaces an empty or failed response.
    pub stub: RefCell<Option<Stub>>,
    depth: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    pub text: Block,
    pub media: Vec<u8>,
}

/// No room for variables and blocks, or no work left.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMuch;

impl Page {
    /// Or a capture of the last expression; the name is in lower case.
    pub fn value(&self, name: &[u8]) -> Option<Bytes> {
        if let [digit @ b'0'..=b'9'] = name
            && let Some(captured) = self.captures.borrow().get(usize::from(digit - b'0'))
        {
            return Some(captured.clone());
        }
        let variables = self.variables.borrow();
        variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

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

    pub fn capture(&self, groups: Vec<Bytes>) -> Result<(), TooMuch> {
        let bytes = |groups: &[Bytes]| groups.iter().map(Bytes::len).sum::<usize>();
        self.hold(bytes(&groups))?;
        let before = self.captures.replace(groups);
        self.held.set(self.held.get() - bytes(&before));
        Ok(())
    }

    /// In bytes of text, or equal work.
    pub fn worked(&self, work: usize) {
        self.work.set(self.work.get() + work as u64);
    }

    pub fn work(&self) -> u64 {
        self.work.get()
    }

    /// Call it before the work. Fails at the page's limit.
    pub fn expression(&self, work: usize) -> Result<(), TooMuch> {
        let matching = self.matching.get() + work as u64;
        if matching > MOST_MATCHING {
            return Err(TooMuch);
        }
        self.matching.set(matching);
        self.worked(work);
        Ok(())
    }

    pub fn begin_block(&self, name: &[u8]) -> Result<(), TooMuch> {
        self.hold(name.len())?;
        self.blocks.borrow_mut().push((name.to_vec(), Block::default()));
        Ok(())
    }

    pub fn grow(&self, text: &[u8]) -> Result<(), TooMuch> {
        self.hold(text.len())?;
        if let Some((_, block)) = self.blocks.borrow_mut().last_mut() {
            Rc::make_mut(block).extend_from_slice(text);
        }
        Ok(())
    }

    pub fn block(&self, name: &[u8]) -> Option<Block> {
        let blocks = self.blocks.borrow();
        blocks.iter().find(|(known, _)| known == name).map(|(_, block)| block.clone())
    }

    /// Whether another subrequest may start that no one waits for yet.
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

#[derive(Debug)]
pub struct PartPlace(Rc<Page>);

impl PartPlace {
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
    pub fn below(&self, stub: Option<Stub>) -> Sheet {
        Sheet {
            page: self.page.clone(),
            time_format: RefCell::default(),
            stub: RefCell::new(stub),
            depth: self.depth + 1,
        }
    }

    /// Whether another subrequest may start here; counts it.
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
