//! HTTP/1 messages (RFC 9112): heads, what frames the content, chunked bodies, and writing them.
//!
//! A connection reads with [`head`], asks [`framing`] where the content ends, and takes chunked content apart with
//! [`chunked`], or all of it with [`content`]; [`encode`] writes. Whatever two readers could understand differently is an error here.

pub mod encode;
pub mod limits;
pub mod field_line;
pub mod head_error;
pub mod request_line;
pub mod target_form;
pub mod head;
pub mod framing;
pub mod chunked;
pub mod content;
