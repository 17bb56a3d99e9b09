//! FastCGI: a request's body in records, and an answer's records undone in the buffer they were read into.
//!
//! The answer's text is a CGI head and a body, which end where the application says so and not where the connection does.

use crate::error::ExchangeError;
use millstream_wire::fastcgi::{Kind, Records, encode};
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Method};
use std::fmt;

/// Gets the application's STDERR, and returns whether it invalidates the response.
pub type Complaints = Box<dyn Fn(&[u8]) -> bool>;

pub struct FastCgi {
    records: Records,
    complaints: Complaints,
    /// STDERR before the head invalidated the response.
    caught: bool,
    headed: bool,
}

impl FastCgi {
    pub(super) fn new(complaints: Complaints) -> FastCgi {
        FastCgi { records: Records::default(), complaints, caught: false, headed: false }
    }

    pub(super) fn received(&mut self, buffer: &mut Vec<u8>, from: usize) {
        self.records.undo(buffer, from);
        if !self.records.complaints().is_empty() {
            let caught = (self.complaints)(&self.records.take_complaints());
            self.caught |= caught && !self.headed;
        }
    }

    /// Whether the connection can be reused is known once its last record has come.
    pub(super) fn accept(
        &mut self,
        method: Method,
        head: &ResponseHead,
        fields: Fields<'_>,
    ) -> Result<(Framing, bool), ExchangeError> {
        if self.caught {
            return Err(ExchangeError::Caught);
        }
        self.headed = true;
        let framing = framing::cgi(method, head.status, fields).map_err(ExchangeError::BadFraming)?;
        Ok((framing, true))
    }

    /// Waits for the last record, which follows the end of the text: an application that writes it to a
    /// closed connection may be killed (SIGPIPE).
    pub(super) fn is_ended(&self) -> Result<bool, ExchangeError> {
        if self.caught {
            return Err(ExchangeError::Caught);
        }
        self.records.is_ended().map_err(ExchangeError::BadRecord)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.records.is_closed()
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.records.is_at_rest()
    }
}

impl fmt::Debug for FastCgi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastCgi").field("records", &self.records).finish_non_exhaustive()
    }
}

/// What surrounds a piece of the request's body, of at most [`encode::MOST`] bytes.
pub(super) fn frame(length: usize, last: bool, before: &mut Vec<u8>) -> &'static [u8] {
    const END: &[u8] = &[1, Kind::Stdin as u8, 0, 1, 0, 0, 0, 0];
    if length > 0 {
        before.extend_from_slice(&encode::header(Kind::Stdin, length));
    }
    if last { END } else { b"" }
}
