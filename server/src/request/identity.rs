//! By what a request is known: its id, its trace, its visitor. Each is made when first needed.

use crate::trace::Trace;
use millstream_conf::model::LocationId;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

#[derive(Default)]
pub struct Identity {
    pub(super) visitor: OnceCell<Rc<Visitor>>,
    pub trace: OnceCell<Rc<Trace>>,
    pub(super) id: OnceCell<[u8; 32]>,
}

pub type VisitorId = [u8; 16];

/// What a request's cookie says of who visits (`userid`), and the id that its answer gives: one for a request and its subrequests.
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

/// `$request_id`: 32 random hexadecimal digits.
pub(super) fn random_id() -> [u8; 32] {
    use std::hash::BuildHasher;
    // The standard library's hasher is keyed by the system's random source; a counter keeps ids apart on a thread.
    let keys = std::hash::RandomState::new();
    let (high, low) = (keys.hash_one(1u8), keys.hash_one(2u8));
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let mut text = [0u8; 32];
    for (index, byte) in bytes.iter().enumerate() {
        text[2 * index] = b"0123456789abcdef"[usize::from(byte >> 4)];
        text[2 * index + 1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    text
}
