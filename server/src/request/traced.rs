//! A request and its trace: the context that it came with, and the one that the upstream is told in its place.
//!
//! What is told stands among the request's own fields, as in nginx: so logs, variables and every protocol see the same. Before: `trace`;
//! next: `tracing`, which decides.

use super::{Received, Request};
use crate::trace::Trace;
use millstream_traces::context::TraceContext;
use millstream_traces::id::SpanId;
use millstream_traces::state;
use millstream_wire::FieldId;

const TRACEPARENT: &[u8] = b"traceparent";
const TRACESTATE: &[u8] = b"tracestate";

/// The sender's if `otel_trace_context` accepts it, else a new one.
pub(super) fn begin(request: &Request) -> Trace {
    let extracts = request.location().settings.otel.context.extract;
    let parent = if extracts { context_that_came(request) } else { None };
    let state = parent.and_then(|_| state::joined(request.fields().all_named(TRACESTATE)));
    Trace::begun(parent, state)
}

/// `traceparent`; several are ignored.
fn context_that_came(request: &Request) -> Option<TraceContext> {
    let mut fields = request.fields().all_named(TRACEPARENT);
    let one = TraceContext::parse(fields.next()?);
    one.filter(|_| fields.next().is_none())
}

pub fn tell_context(request: &mut Request) {
    let trace = request.trace().clone();
    let Received { bytes, head, .. } = &mut request.received;
    let is_context =
        |name: &[u8]| name.eq_ignore_ascii_case(TRACEPARENT) || name.eq_ignore_ascii_case(TRACESTATE);
    head.fields.retain(|field| field.id != FieldId::Other || !is_context(field.name(bytes)));
    let mut value = Vec::new();
    let told = TraceContext { trace: trace.id, span: trace.span, sampled: trace.sampled.get() };
    let at = told.write(&mut value);
    let start = request.received.append_field(TRACEPARENT, &value);
    trace.told.set(Some(start + at));
    if let Some(state) = &trace.state {
        request.received.append_field(TRACESTATE, state.as_bytes());
    }
}

/// The id of a span for a request to a server, which is told it; `None` unless recorded.
pub fn begin_try(request: &mut Request) -> Option<SpanId> {
    let trace = request.identity.trace.get().filter(|trace| trace.sampled.get())?;
    let id = SpanId::random();
    if let Some(at) = trace.told.get()
        && let Some(digits) = request.received.bytes.get_mut(at..at + SpanId::DIGITS)
    {
        digits.copy_from_slice(&id.digits());
    }
    Some(id)
}
