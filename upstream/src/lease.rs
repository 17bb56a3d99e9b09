//! The count of busy connections that `keepalive auto` sizes a pool by. A lease adds one while it lives.
//!
//! It is never shared between threads. Next: `pool`, which counts; `exchange/connection`, which holds one.

use std::cell::Cell;
use std::rc::Rc;

/// Counts a connection as busy while it lives.
#[derive(Debug)]
pub struct Lease {
    busy: Rc<Cell<usize>>,
}

impl Lease {
    pub fn count(busy: &Rc<Cell<usize>>) -> Lease {
        busy.set(busy.get() + 1);
        Lease { busy: Rc::clone(busy) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.busy.set(self.busy.get().saturating_sub(1));
    }
}
