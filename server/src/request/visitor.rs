//! What a request's cookie says of who visits (`userid`), and the id that its answer gives.
//!
//! One for a request and its subrequests. Next: `variables/userid`, which reads and makes it.

use millstream_conf::model::LocationId;
use std::cell::{Cell, OnceCell};

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

impl Visitor {
    pub(super) fn at(location: LocationId) -> Visitor {
        Visitor { location: Cell::new(location), came: OnceCell::new(), given: OnceCell::new() }
    }
}
