//! The trace that a request belongs to: its ids, whether it is recorded, and what was noted on the way to the answer.
//!
//! A request has one only where something asks for it. It makes no spans and exports nothing. Next: `request/traced`, which makes it;
//! `tracing`, which makes spans of it.

use crate::tries::Try;
use millstream_traces::context::TraceContext;
use millstream_traces::id::{SpanId, TraceId};
use millstream_traces::span::Value;
use std::cell::{Cell, RefCell};
use std::time::Instant;

/// Per request with its subrequests: a page may have many.
const MOST_NOTES: usize = 128;

pub struct Noted {
    pub name: &'static str,
    pub start: Instant,
    pub end: Instant,
    pub says: Option<(&'static str, Value)>,
}

pub struct Trace {
    /// The received span.
    pub parent: Option<TraceContext>,
    /// `tracestate`, if received.
    pub state: Option<String>,
    pub id: TraceId,
    pub span: SpanId,
    pub sampled: Cell<bool>,
    /// Offset in the request's bytes of the span's id for the upstream.
    pub told: Cell<Option<usize>>,
    noted: RefCell<Vec<Noted>>,
    tries: RefCell<Vec<Try>>,
    left_out: Cell<usize>,
}

impl Trace {
    /// Nothing is recorded yet.
    pub fn begun(parent: Option<TraceContext>, state: Option<String>) -> Trace {
        Trace {
            id: parent.map_or_else(TraceId::random, |parent| parent.trace),
            span: SpanId::random(),
            parent,
            state,
            sampled: Cell::new(false),
            told: Cell::new(None),
            noted: RefCell::default(),
            tries: RefCell::default(),
            left_out: Cell::new(0),
        }
    }

    /// The same ids without recording, for what outlives the request.
    pub fn unrecorded(&self) -> Trace {
        Trace { id: self.id, span: self.span, ..Trace::begun(self.parent, self.state.clone()) }
    }

    pub fn note(&self, noted: Noted) {
        let mut all = self.noted.borrow_mut();
        if !self.sampled.get() || all.len() >= MOST_NOTES {
            self.left_out.set(self.left_out.get() + usize::from(self.sampled.get()));
            return;
        }
        all.push(noted);
    }

    pub fn note_tries(&self, tries: &[Try]) {
        let mut all = self.tries.borrow_mut();
        let fit = if self.sampled.get() { tries.len().min(MOST_NOTES - all.len()) } else { 0 };
        all.extend_from_slice(&tries[..fit]);
        self.left_out.set(self.left_out.get() + if self.sampled.get() { tries.len() - fit } else { 0 });
    }

    /// Notes, tries of subrequests, and the number of notes left out.
    pub fn take(&self) -> (Vec<Noted>, Vec<Try>, usize) {
        (self.noted.take(), self.tries.take(), self.left_out.take())
    }
}
