//! Finished requests kept for the next ones of this thread, so that a cache hit allocates nothing.
//!
//! A request of an older configuration is never handed out, and [`clear`] lets those go at a reload: each holds its
//! configuration alive.

use crate::generation::Generation;
use crate::request::Request;
use std::cell::RefCell;
use std::rc::Rc;

const KEPT: usize = 64;

#[allow(clippy::vec_box, reason = "the boxes are what is kept: a request moves by its pointer")]
type Spare = RefCell<Vec<Box<Request>>>;

thread_local! {
    static SPARE: Spare = const { RefCell::new(Vec::new()) };
}

/// Reset it before use.
pub(super) fn take(generation: &Rc<Generation>) -> Option<Box<Request>> {
    SPARE.with_borrow_mut(Vec::pop).filter(|request| Rc::ptr_eq(&request.generation, generation))
}

/// Unless it is of an old configuration, or there is no room.
pub(super) fn keep(request: Box<Request>) {
    let current = Rc::ptr_eq(&request.generation, &request.worker.generation());
    SPARE.with_borrow_mut(|spare| {
        if current && spare.len() < KEPT {
            spare.push(request);
        }
    });
}

/// Call it when a configuration is replaced and when the thread ends.
pub fn clear() {
    drop(SPARE.take());
}
