//! Tracing: whether a request is recorded, and the spans that are made of it once it is over.
//!
//! ```text
//! the request (SERVER) ─┬─ cache look-up, in memory, then perhaps on disk
//!                       ├─ cache lock: waiting for another's fill
//!                       └─ each upstream server asked (CLIENT) ─┬─ connect
//!                                                               ├─ header
//!                                                               └─ body
//! ```
//! Nothing is done for a request without `otel_trace`; one that is recorded notes moments, and makes its spans behind its answer. Nothing here
//! waits. Before: `trace`; next: `tracing/attributes`, what spans say; `millstream-traces`, which exports them.

mod attributes;
mod attempts;

use crate::location_text;
use crate::request::{self, Request};
use crate::shown;
use crate::trace::{Noted, Trace};
use crate::variables;
use millstream_conf::model::{LocationMatch, Otel};
use millstream_net::clock;
use millstream_telemetry::metrics::Counter;
use millstream_traces::span::{Span, SpanKind, Value, text};
use std::borrow::Cow;
use std::time::Instant;

/// Decides on recording, in the location after rewriting; internal redirects do not decide again.
pub fn begin(request: &mut Request, otel: &Otel) {
    if request.descent.is_internal {
        return;
    }
    let is_on = |value: Vec<u8>| matches!(value.as_slice(), b"on" | b"1");
    let sampled = otel.trace.as_ref().is_some_and(|trace| is_on(variables::value(trace, request)));
    if sampled || otel.context.inject {
        request.trace().sampled.set(sampled);
    }
    if otel.context.inject {
        request::tell_context(request);
    }
}

fn recorded(request: &Request) -> Option<&Trace> {
    request.identity.trace.get().map(|trace| &**trace).filter(|trace| trace.sampled.get())
}

/// The start for [`note`]; `None` unless recorded.
#[inline]
pub fn moment(request: &Request) -> Option<Instant> {
    recorded(request).map(|_| clock::now())
}

#[inline]
pub fn note(
    request: &Request,
    began: Option<Instant>,
    name: &'static str,
    says: (&'static str, &'static str),
) {
    if let Some(start) = began {
        note_now(request, start, name, says);
    }
}

#[cold]
fn note_now(request: &Request, start: Instant, name: &'static str, says: (&'static str, &'static str)) {
    if let Some(trace) = recorded(request) {
        let says = Some((says.0, Value::Text(says.1.to_owned())));
        trace.note(Noted { name, start, end: clock::now(), says });
    }
}

/// Moves its tries to the parent's trace.
pub fn end_subrequest(request: &Request) {
    if let Some(trace) = recorded(request) {
        trace.note_tries(&request.tries.list);
    }
}

#[cold]
pub fn end(request: &Request) {
    let (Some(trace), Some(tracing)) = (recorded(request), &request.generation.shared.tracing) else {
        return;
    };
    let (spans, left_out) = spans(request, trace);
    let dropped = tracing.sink.hand_over(spans) + left_out;
    if dropped > 0 {
        request.worker.metrics.add(Counter::SpansDropped, dropped as u64);
    }
}

/// One moment by both clocks, from which all others are computed, so that spans nest as their times do.
#[derive(Debug, Clone, Copy)]
struct Reckoning {
    instant: Instant,
    unix_nanoseconds: u64,
    /// No span starts before the request.
    earliest: Instant,
}

impl Reckoning {
    /// Nanoseconds since 1970, clamped to the request.
    fn unix(&self, moment: Instant) -> u64 {
        let moment = moment.clamp(self.earliest, self.instant);
        let ago = u64::try_from(self.instant.duration_since(moment).as_nanos()).unwrap_or(u64::MAX);
        self.unix_nanoseconds.saturating_sub(ago)
    }
}

struct Family<'a> {
    trace: &'a Trace,
    reckoning: Reckoning,
}

impl Family<'_> {
    fn child(
        &self,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        (start, end): (Instant, Instant),
    ) -> Span {
        Span {
            trace: self.trace.id,
            id: millstream_traces::id::SpanId::random(),
            parent: Some(self.trace.span),
            state: self.trace.state.clone().unwrap_or_default(),
            name: name.into(),
            kind,
            start: self.reckoning.unix(start),
            end: self.reckoning.unix(end),
            attributes: Vec::new(),
            failed: false,
        }
    }
}

/// The request's own first; and how many were left out.
fn spans(request: &Request, trace: &Trace) -> (Vec<Span>, usize) {
    let (instant, unix_nanoseconds) = (clock::now(), clock::unix_nanoseconds());
    let reckoning = Reckoning { instant, unix_nanoseconds, earliest: request.received.started.min(instant) };
    let family = Family { trace, reckoning };
    let own = Span {
        id: trace.span,
        parent: trace.parent.map(|parent| parent.span),
        attributes: attributes::of_request(request),
        failed: request.sent.status >= 500,
        ..family.child(name(request), SpanKind::Server, (request.received.started, instant))
    };
    let (noted, tries, left_out) = trace.take();
    let mut spans = vec![own];
    for one in noted {
        let attributes = one.says.into_iter().map(|(name, value)| (name.into(), value)).collect();
        spans.push(Span { attributes, ..family.child(one.name, SpanKind::Internal, (one.start, one.end)) });
    }
    for (number, one) in tries.iter().chain(&request.tries.list).enumerate() {
        attempts::append(request, &family, number, one, &mut spans);
    }
    (spans, left_out)
}

/// `otel_span_name`, else the location, else the method.
fn name(request: &Request) -> String {
    let location = request.location();
    match (&location.settings.otel.span_name, &location.matches) {
        (Some(template), _) => shown::value(template, request, text),
        (None, LocationMatch::Server) => text(request.method_text()),
        (None, matches) => location_text::name(matches).to_owned(),
    }
}
