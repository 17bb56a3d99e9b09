//! By what a request is known: its id, its trace, its visitor. Each is made when first needed.

use super::Visitor;
use crate::trace::Trace;
use std::cell::OnceCell;
use std::rc::Rc;

#[derive(Default)]
pub struct Identity {
    pub(super) visitor: OnceCell<Rc<Visitor>>,
    pub trace: OnceCell<Rc<Trace>>,
    pub(super) id: OnceCell<[u8; 32]>,
}
