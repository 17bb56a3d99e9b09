//! A span: something that took time for a request, and what is said of it.
//!
//! Plain data, made by whoever serves. Next: `queue`, where it waits; `message`, what it becomes.

use crate::id::{SpanId, TraceId};
use std::borrow::Cow;

/// Bytes of an attribute: what clients send may be long, and many spans wait.
const MOST_TEXT: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request received.
    Server,
    /// A request sent.
    Client,
    Internal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
    /// A list of one text, as OpenTelemetry wants header fields.
    Texts(String),
}

pub type Attribute = (Cow<'static, str>, Value);

#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub state: String,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    pub attributes: Vec<Attribute>,
    pub failed: bool,
}

/// Replaces what is not UTF-8 and cuts what is too long.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_TEXT)]).into_owned()
}
