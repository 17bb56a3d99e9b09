//! What a request's cookie says of who visits (`userid`), and the id that its answer gives.
//!
//! One for a request and its subrequests. Next: `variables/userid`, which reads and makes it.

use super::Request;
use millstream_conf::model::LocationId;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

pub type VisitorId = [u8; 16];

#[derive(Debug)]
pub struct Visitor {
    /// The location of the client's own request, whose settings also apply to subrequests.
    pub location: Cell<LocationId>,
    pub came: OnceCell<VisitorCookie>,
    pub given: OnceCell<Option<GivenId>>,
}

#[derive(Debug)]
pub struct VisitorCookie {
    pub id: Option<VisitorId>,
    /// Empty without a cookie.
    pub text: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenId {
    pub id: VisitorId,
    pub is_new: bool,
}

impl Request {
    pub fn visitor(&self) -> &Rc<Visitor> {
        let new = || Visitor {
            location: Cell::new(self.route.location),
            came: OnceCell::new(),
            given: OnceCell::new(),
        };
        let visitor = self.identity.visitor.get_or_init(|| Rc::new(new()));
        if self.descent.wanted.is_none() {
            visitor.location.set(self.route.location);
        }
        visitor
    }
}
