//! What an answer's body goes through before it is coded: a list of filters, empty for most answers.
//!
//! ```text
//! body → gunzip → sub_filter → (addition) → charset → ssi → coding → framing
//! ```
//! Each filter sees the head as the one before leaves it, and says with it whether it has anything to do; then it is given the body
//! piece by piece. What it holds back has a bound. The order is nginx's. Next: the filters; `client/sending`, which has the chain
//! of the answer that is on its way.

use super::addition::{self, Addition};
use super::body::{BodyFilter, Draft};
use super::ssi::{self, Ssi};
use super::{charset, gunzip, sub_filter};
use crate::request::Request;
use millstream_conf::model::Phases;
use millstream_wire::{Fields, Headers};

/// The filters of one body.
pub struct Chain(Vec<Box<dyn BodyFilter>>);

/// What makes a filter of a head, where it has anything to do.
type Begin = fn(&Request, &mut Draft) -> Option<Box<dyn BodyFilter>>;

/// What happens to an answer on its way out, where anything does.
pub struct Changes {
    /// The filters that its body goes through.
    pub chain: Option<Chain>,
    /// What stands before and behind it, which does not go through them.
    pub addition: Option<Addition>,
    /// What finds commands in it.
    pub ssi: Option<Box<Ssi>>,
    /// The head as all of them leave it.
    pub draft: Draft,
}

const BEFORE_ADDITION: [Begin; 2] = [gunzip::begin, sub_filter::begin];
const BEHIND_ADDITION: [Begin; 1] = [charset::begin];

/// Whether filters may go through bodies of the location, or fields follow them that are evaluated when they have gone out.
pub fn is_there(request: &Request) -> bool {
    request.location().settings.phases.has(Phases::FILTERS)
}

/// What happens to an answer, with the head as that leaves it. Nothing where nothing does.
pub fn of(request: &Request, status: u16, fields: Fields<'_>, length: Option<u64>) -> Option<Changes> {
    if !is_there(request) {
        return None;
    }
    let mut draft = Draft { status, headers: Headers::copied_from(fields, |_, _, _| true), length };
    let mut filters: Vec<_> = BEFORE_ADDITION.iter().filter_map(|begin| begin(request, &mut draft)).collect();
    let addition = addition::begin(request, &mut draft);
    filters.extend(BEHIND_ADDITION.iter().filter_map(|begin| begin(request, &mut draft)));
    let chain = (!filters.is_empty()).then_some(Chain(filters));
    let ssi = ssi::begin(request, &mut draft);
    let is_changed = chain.is_some() || addition.is_some() || ssi.is_some();
    is_changed.then_some(Changes { chain, addition, ssi, draft })
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
        Some(changes) if changes.draft.length == length => Change::Bytes,
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
