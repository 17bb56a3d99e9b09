//! HTTP/2 (RFC 9113) as values: frames, settings, flow-control windows, header blocks (RFC 7541), priorities (RFC 9218).
//!
//! ```text
//! bytes → read::read → Frame → (the connection's own state) → request::decode_request → h1::head::RequestHead
//! values → hpack::encoder → block → write::headers → bytes
//! ```
//! Which streams there are and what state they are in is for whoever owns the connection; here a frame is judged by
//! itself. A request comes out as the same head that HTTP/1 gives, so that nobody behind it needs to know.
//!
//! The order of the modules below is the order in which they may use each other, lowest first.

pub mod error_code;
pub mod window;
pub mod settings;
pub mod frame;
pub mod read;
pub mod block;
pub mod write;
pub mod hpack;
pub mod priority;
pub mod field_rules;
pub mod extra;
pub mod request_error;
pub mod request_line;
pub mod request;
pub mod response;

/// Start of a client's connection (RFC 9113 §3.4); a SETTINGS frame follows.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
