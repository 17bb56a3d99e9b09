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

/// Notes of one request at the most, those of its subrequests included: a page may be made of many.
const MOST_NOTES: usize = 128;

/// Something inside a request that took time.
pub struct Noted {
    /// What the span is called.
    pub name: &'static str,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// What is said of it.
    pub says: Option<(&'static str, Value)>,
}

/// What a request knows of its trace.
pub struct Trace {
    /// The span that the request came with.
    pub parent: Option<TraceContext>,
    /// `tracestate`, where the trace came with the request.
    pub state: Option<String>,
    /// The trace.
    pub id: TraceId,
    /// The span of the request.
    pub span: SpanId,
    /// Whether it is recorded.
    pub sampled: Cell<bool>,
    /// Where in the request's bytes stands the id of the span that the upstream is told.
    pub told: Cell<Option<usize>>,
    noted: RefCell<Vec<Noted>>,
    tries: RefCell<Vec<Try>>,
    left_out: Cell<usize>,
}

impl Trace {
    /// That of a request that came with this, or a new one. Nothing is recorded yet.
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

    /// The same for what goes on without the request: its ids, and nothing is recorded.
    pub fn unrecorded(&self) -> Trace {
        Trace { id: self.id, span: self.span, ..Trace::begun(self.parent, self.state.clone()) }
    }

    /// Notes something that is over.
    pub fn note(&self, noted: Noted) {
        let mut all = self.noted.borrow_mut();
        if !self.sampled.get() || all.len() >= MOST_NOTES {
            self.left_out.set(self.left_out.get() + usize::from(self.sampled.get()));
            return;
        }
        all.push(noted);
    }

    /// Notes the upstream servers that were asked for a subrequest.
    pub fn note_tries(&self, tries: &[Try]) {
        let mut all = self.tries.borrow_mut();
        let fit = if self.sampled.get() { tries.len().min(MOST_NOTES - all.len()) } else { 0 };
        all.extend_from_slice(&tries[..fit]);
        self.left_out.set(self.left_out.get() + if self.sampled.get() { tries.len() - fit } else { 0 });
    }

    /// What was noted, the tries of subrequests, and how many notes were left out.
    pub fn take(&self) -> (Vec<Noted>, Vec<Try>, usize) {
        (self.noted.take(), self.tries.take(), self.left_out.take())
    }
}
