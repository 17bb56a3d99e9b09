//! OpenTelemetry traces: the contexts that travel with requests, spans, the queue that they wait in, and their export.
//!
//! Floor 4: it knows no request. Whoever serves makes spans and hands them over without waiting; one thread exports them. Modules stand
//! lowest floor first. Next: [`context`] for what a traceparent says, [`exporter`] for what becomes of spans.

#![forbid(unsafe_code)]

pub mod id;
pub mod state;
pub mod context;
pub mod span;
pub mod queue;
mod otlp;
mod message;
mod figures;
mod outage;
mod failure;
mod post;
mod collector;
pub mod exporter;
