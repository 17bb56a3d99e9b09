//! A batch of spans as OTLP has it: one `ExportTraceServiceRequest`.
//!
//! Before: `span`, `otlp`; next: `figures`, which shares its parts; `collector`, who gets it.

use crate::otlp::{
    Any, AnyValue, ArrayValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Kind, Resource,
    ResourceSpans, STATUS_ERROR, ScopeSpans, SpanMessage, Status,
};
use crate::span::{Attribute, Span, SpanKind, Value};
use millstream_conf::model::OtelResource;
use prost::Message;

/// The bytes of a batch.
pub(crate) fn encode(resource: &OtelResource, spans: Vec<Span>) -> Vec<u8> {
    let scoped = ScopeSpans { scope: Some(scope()), spans: spans.into_iter().map(one).collect() };
    let of_resource = ResourceSpans { resource: Some(about(resource)), scope_spans: vec![scoped] };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
}

/// What is said of the service.
pub(crate) fn about(resource: &OtelResource) -> Resource {
    let attributes =
        resource.iter().map(|(name, value)| key_value(name.clone(), text(value.clone()))).collect();
    Resource { attributes }
}

/// Who measured.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope { name: "millstream".into(), version: env!("CARGO_PKG_VERSION").into() }
}

fn one(span: Span) -> SpanMessage {
    let kind = match span.kind {
        SpanKind::Server => Kind::Server,
        SpanKind::Client => Kind::Client,
        SpanKind::Internal => Kind::Internal,
    };
    SpanMessage {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        trace_state: span.state,
        name: span.name.into_owned(),
        kind: kind as i32,
        start_time_unix_nano: span.start,
        end_time_unix_nano: span.end,
        attributes: span.attributes.into_iter().map(attribute).collect(),
        status: span.failed.then_some(Status { code: STATUS_ERROR }),
    }
}

fn attribute((name, value): Attribute) -> KeyValue {
    let value = match value {
        Value::Text(value) => text(value),
        Value::Number(number) => Any::Number(number),
        Value::Texts(value) => Any::Array(ArrayValue { values: vec![AnyValue { value: Some(text(value)) }] }),
    };
    key_value(name.into_owned(), value)
}

pub(crate) fn text(value: String) -> Any {
    Any::Text(value)
}

pub(crate) fn key_value(key: String, value: Any) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(value) }) }
}
