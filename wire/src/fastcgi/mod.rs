//! FastCGI as bytes and values: records, the parameters of a request, and the streams both are cut into.
//!
//! One request at a time on a connection, always number 1, in the role of a responder: all that web servers ever speak. It does no
//! I/O. The head of an answer is text, which [`ResponseHead::parse_cgi`](crate::h1::head::ResponseHead::parse_cgi) reads.
//! Next: [`encode`] for what is sent, [`Records`] for what comes.

pub mod encode;
mod records;

pub use records::{RecordError, Records};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    BeginRequest = 1,
    EndRequest = 3,
    Params = 4,
    Stdin = 5,
    Stdout = 6,
    Stderr = 7,
}

pub const HEADER: usize = 8;

const VERSION: u8 = 1;

/// The id of the only request on a connection.
const REQUEST: u16 = 1;

#[cfg(test)]
mod tests;
