//! What a request's cookie says of who visits (`userid`), and the id that its answer gives.
//!
//! One for a request and its subrequests. Next: `variables/userid`, which reads and makes it.

use super::Request;
use millstream_conf::model::LocationId;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// 16 bytes by which visitors are told apart, as they stand in the cookie.
pub type VisitorId = [u8; 16];

/// Who visits.
#[derive(Debug)]
pub struct Visitor {
    /// The location of the client's own request, whose settings hold for its subrequests as well.
    pub location: Cell<LocationId>,
    /// What came, once it is read.
    pub came: OnceCell<VisitorCookie>,
    /// What the answer gives, once that is decided.
    pub given: OnceCell<Option<GivenId>>,
}

/// A cookie that came.
#[derive(Debug)]
pub struct VisitorCookie {
    /// The id in it, if it is one.
    pub id: Option<VisitorId>,
    /// It; empty where none came.
    pub text: Box<[u8]>,
}

/// An id that the client is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenId {
    /// It.
    pub id: VisitorId,
    /// Whether it is a new one, or the one that came with another mark.
    pub is_new: bool,
}

impl Request {
    /// Who visits.
    pub fn visitor(&self) -> &Rc<Visitor> {
        let new =
            || Visitor { location: Cell::new(self.location), came: OnceCell::new(), given: OnceCell::new() };
        let visitor = self.visitor.get_or_init(|| Rc::new(new()));
        if self.wanted.is_none() {
            visitor.location.set(self.location);
        }
        visitor
    }
}
