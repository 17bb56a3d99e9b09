//! What an answer's body goes through before it is coded: a list of filters, empty for most answers.
//!
//! ```text
//! body → gunzip → sub_filter → charset → coding → framing
//! ```
//! Each filter sees the head as the one before leaves it, and says with it whether it has anything to do; then it is given the body
//! piece by piece. What it holds back has a bound. The order is nginx's. Next: the filters; `client/sending`, which has the chain
//! of the answer that is on its way.

use super::body::{BodyFilter, Draft};
use super::{charset, gunzip, sub_filter};
use crate::request::Request;
use millstream_conf::model::Phases;
use millstream_wire::{Fields, Headers};

/// The filters of one body.
pub struct Chain(Vec<Box<dyn BodyFilter>>);

/// What makes a filter of a head, where it has anything to do.
type Begin = fn(&Request, &mut Draft) -> Option<Box<dyn BodyFilter>>;

const FILTERS: [Begin; 3] = [gunzip::begin, sub_filter::begin, charset::begin];

/// Whether filters may go through bodies of the location, or fields follow them that are evaluated when they have gone out.
pub fn is_there(request: &Request) -> bool {
    request.location().settings.phases.has(Phases::FILTERS)
}

/// The filters that an answer goes through, with the head as they leave it. Nothing where there are none.
pub fn of(request: &Request, status: u16, fields: Fields<'_>, length: Option<u64>) -> Option<(Chain, Draft)> {
    if !is_there(request) {
        return None;
    }
    let mut draft = Draft { status, headers: Headers::copied_from(fields, |_, _, _| true), length };
    let filters: Vec<_> = FILTERS.iter().filter_map(|begin| begin(request, &mut draft)).collect();
    (!filters.is_empty()).then_some((Chain(filters), draft))
}

/// What the filters of a location do to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Bytes become others, one by one.
    Bytes,
    /// Its length changes too.
    Length,
}

/// What happens to an answer of 200, so that it is known whether it has ranges.
pub fn change(request: &Request, fields: Fields<'_>, length: Option<u64>) -> Change {
    match of(request, 200, fields, length) {
        None => Change::None,
        Some((_, draft)) if draft.length == length => Change::Bytes,
        Some(_) => Change::Length,
    }
}

impl Chain {
    /// What comes of a piece.
    pub fn take(&mut self, request: &Request, piece: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(piece.len());
        let mut rest = self.0.iter_mut();
        if let Some(first) = rest.next() {
            first.take(request, piece, &mut text);
        }
        for filter in rest {
            let mut out = Vec::with_capacity(text.len());
            filter.take(request, &text, &mut out);
            text = out;
        }
        text
    }

    /// What is left at the end; `None` where the body cannot be whole.
    pub fn end(mut self, request: &Request) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for filter in &mut self.0 {
            let mut out = Vec::new();
            filter.take(request, &text, &mut out);
            if !filter.end(request, &mut out) {
                return None;
            }
            text = out;
        }
        Some(text)
    }
}
