//! A span: something that took time for a request, and what is said of it.
//!
//! Plain data, made by whoever serves. Next: `queue`, where it waits; `message`, what it becomes.

use crate::id::{SpanId, TraceId};
use std::borrow::Cow;

/// Bytes of an attribute at the most: what clients send may be long, and many spans wait.
const MOST_TEXT: usize = 4096;

/// Whose work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that is answered.
    Server,
    /// A request that is sent.
    Client,
    /// Something inside.
    Internal,
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// A list of one text, as OpenTelemetry has it for header fields.
    Texts(String),
}

/// An attribute's name and value.
pub type Attribute = (Cow<'static, str>, Value);

/// One span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span that it is below.
    pub parent: Option<SpanId>,
    /// `tracestate` of its trace.
    pub state: String,
    /// What it is called.
    pub name: Cow<'static, str>,
    /// Whose work it is.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub start: u64,
    /// When it ended, in the same.
    pub end: u64,
    /// What is said of it.
    pub attributes: Vec<Attribute>,
    /// Whether it failed.
    pub failed: bool,
}

/// A text of bytes that may be anything: what is not UTF-8 is replaced, and what is too long is cut.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_TEXT)]).into_owned()
}
