//! The span of an upstream server that was asked, and below it those of its connection, its head and its body.
//!
//! They are made of what the `$upstream_*` variables are made of. Before: `tracing`.

use super::Family;
use super::attributes::Says;
use crate::request::Request;
use crate::tries::Try;
use millstream_traces::span::{Span, SpanKind, text};

pub(super) fn append(
    request: &Request,
    family: &Family<'_>,
    number: usize,
    one: &Try,
    spans: &mut Vec<Span>,
) {
    let start = one.asked_at;
    let end = one.response_time.map_or(family.reckoning.instant, |time| start + time);
    let mut says = Says(Vec::with_capacity(6));
    says.text("http.method", request.method_text());
    says.text("net.peer.name", one.peer.as_bytes());
    if one.status > 0 {
        says.number("http.status_code", one.status.into());
    }
    if number > 0 {
        says.number("http.resend_count", number as i64);
    }
    says.number("http.response_content_length", i64::try_from(one.response_length).unwrap_or(i64::MAX));
    let mut asked = family.child(text(request.method_text()), SpanKind::Client, (start, end));
    asked.id = one.span.unwrap_or(asked.id);
    asked.attributes = says.0;
    asked.failed = one.status >= 400;
    let below = |name: &'static str, from, to| Span {
        parent: Some(asked.id),
        ..family.child(name, SpanKind::Internal, (from, to))
    };
    let connected = one.connect_time.map(|time| start + time);
    let answered = one.header_time.map(|time| start + time);
    let mut parts = Vec::with_capacity(3);
    // A connection that was there already took no time.
    parts.extend(connected.filter(|at| *at > start).map(|at| below("connect", start, at)));
    if let Some(connected) = connected {
        parts.push(below("header", connected, answered.unwrap_or(end)));
    }
    parts.extend(answered.map(|answered| below("body", answered, end)));
    spans.push(asked);
    spans.append(&mut parts);
}
