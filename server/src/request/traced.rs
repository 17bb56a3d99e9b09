//! A request and its trace: the context that it came with, and the one that the upstream is told in its place.
//!
//! What is told stands among the request's own fields, as in nginx: so logs, variables and every protocol see the same. Before: `trace`;
//! next: `tracing`, which decides.

use super::Request;
use crate::trace::Trace;
use millstream_traces::context::TraceContext;
use millstream_traces::id::SpanId;
use millstream_traces::state;
use millstream_wire::FieldId;
use millstream_wire::field::Field;
use millstream_wire::span::Span;
use std::rc::Rc;

const TRACEPARENT: &[u8] = b"traceparent";
const TRACESTATE: &[u8] = b"tracestate";

impl Request {
    /// Created when first needed: the sender's if `otel_trace_context` accepts it, else a new one.
    pub fn trace(&self) -> &Rc<Trace> {
        self.identity.trace.get_or_init(|| {
            let extracts = self.location().settings.otel.context.extract;
            let parent = if extracts { self.context_that_came() } else { None };
            let state = parent.and_then(|_| state::joined(self.fields().all_named(TRACESTATE)));
            Rc::new(Trace::begun(parent, state))
        })
    }

    /// `traceparent`; several are ignored.
    fn context_that_came(&self) -> Option<TraceContext> {
        let mut fields = self.fields().all_named(TRACEPARENT);
        let one = TraceContext::parse(fields.next()?);
        one.filter(|_| fields.next().is_none())
    }

    pub fn tell_context(&mut self) {
        let trace = self.trace().clone();
        let bytes = &self.received.bytes;
        let is_context =
            |name: &[u8]| name.eq_ignore_ascii_case(TRACEPARENT) || name.eq_ignore_ascii_case(TRACESTATE);
        self.received
            .head
            .fields
            .retain(|field| field.id != FieldId::Other || !is_context(field.name(bytes)));
        let mut value = Vec::new();
        let told = TraceContext { trace: trace.id, span: trace.span, sampled: trace.sampled.get() };
        let at = told.write(&mut value);
        let start = self.append_field(TRACEPARENT, &value);
        trace.told.set(Some(start + at));
        if let Some(state) = &trace.state {
            self.append_field(TRACESTATE, state.as_bytes());
        }
    }

    fn append_field(&mut self, name: &[u8], value: &[u8]) -> usize {
        let start = self.received.bytes.len();
        self.received.bytes.extend_from_slice(name);
        let middle = self.received.bytes.len();
        self.received.bytes.extend_from_slice(value);
        let (name, value) = (Span::new(start, middle), Span::new(middle, self.received.bytes.len()));
        self.received.head.fields.push(Field::new(FieldId::Other, name, value));
        middle
    }

    /// The id of a span for a request to a server, which is told it; `None` unless recorded.
    pub fn begin_try(&mut self) -> Option<SpanId> {
        let trace = self.identity.trace.get().filter(|trace| trace.sampled.get())?;
        let id = SpanId::random();
        if let Some(at) = trace.told.get()
            && let Some(digits) = self.received.bytes.get_mut(at..at + SpanId::DIGITS)
        {
            digits.copy_from_slice(&id.digits());
        }
        Some(id)
    }
}
