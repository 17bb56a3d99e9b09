//! A batch of spans as OTLP has it: one `ExportTraceServiceRequest`.
//!
//! The messages are OpenTelemetry's own. Before: `span`; next: `figures`, which shares its parts; `collector`, who gets it.

use crate::span::{Attribute, Span, SpanKind, Value};
use millstream_conf::model::OtelResource;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as otlp, ResourceSpans, ScopeSpans, Status, span};
use prost::Message;

/// The bytes of a batch.
pub(crate) fn encode(resource: &OtelResource, spans: Vec<Span>) -> Vec<u8> {
    let scoped = ScopeSpans {
        scope: Some(scope()),
        spans: spans.into_iter().map(one).collect(),
        ..ScopeSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(about(resource)),
            scope_spans: vec![scoped],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec()
}

/// What is said of the service.
pub(crate) fn about(resource: &OtelResource) -> Resource {
    let attributes =
        resource.iter().map(|(name, value)| key_value(name.clone(), text(value.clone()))).collect();
    Resource { attributes, ..Resource::default() }
}

/// Who measured.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "millstream".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    }
}

fn one(span: Span) -> otlp::Span {
    let kind = match span.kind {
        SpanKind::Server => span::SpanKind::Server,
        SpanKind::Client => span::SpanKind::Client,
        SpanKind::Internal => span::SpanKind::Internal,
    };
    let failed = Status { code: StatusCode::Error.into(), ..Status::default() };
    otlp::Span {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        trace_state: span.state,
        name: span.name.into_owned(),
        kind: kind.into(),
        start_time_unix_nano: span.start,
        end_time_unix_nano: span.end,
        attributes: span.attributes.into_iter().map(attribute).collect(),
        status: span.failed.then_some(failed),
        ..otlp::Span::default()
    }
}

fn attribute((name, value): Attribute) -> KeyValue {
    let value = match value {
        Value::Text(value) => text(value),
        Value::Number(number) => any_value::Value::IntValue(number),
        Value::Texts(value) => {
            any_value::Value::ArrayValue(ArrayValue { values: vec![AnyValue { value: Some(text(value)) }] })
        }
    };
    key_value(name.into_owned(), value)
}

pub(crate) fn text(value: String) -> any_value::Value {
    any_value::Value::StringValue(value)
}

pub(crate) fn key_value(key: String, value: any_value::Value) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
