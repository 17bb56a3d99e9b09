//! The heads of requests and answers: start line and fields, up to and with the empty line.
//!
//! A head is a set of offsets into the bytes it was read from; it copies nothing and, once its list of fields has
//! grown, allocates nothing. It accepts exactly one reading of its bytes. What frames the content is decided by
//! [`crate::h1::framing`], what a request is for by whoever routes it.

mod request;
mod response;

#[cfg(test)]
mod tests;

pub use crate::h1::head_error::{HeadError, ResponseHeadError};
pub use crate::h1::limits::{HeadLimits, Progress};
pub use request::RequestHead;
pub use response::ResponseHead;
