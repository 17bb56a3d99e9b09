//! The door to the protocols: what a connection asks of whoever speaks over it.
//!
//! Head out and body out go through [`Speaker::frame`], what comes in through [`Speaker::received`], after which it is text: a head
//! ([`Speaker::parse`], [`Speaker::accept`]) and a body. The response's head is the same value whoever spoke. A protocol is
//! a file and an arm in each method here; there is nothing to be called through a table, and HTTP/1 costs a comparison.

use super::cgi;
use super::fastcgi::{self, Complaints, FastCgi};
use super::http1::{self, Http1};
use crate::error::ExchangeError;
use millstream_wire::fastcgi::encode::MOST;
use millstream_wire::h1::framing::Framing;
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead, ResponseHeadError};
use millstream_wire::{Fields, Method};

/// The protocol of an exchange, and its progress.
#[derive(Debug)]
pub enum Speaker {
    Http1(Http1),
    FastCgi(FastCgi),
    Cgi,
    /// Its frames and heads are handled by the stream.
    Http2,
}

impl Speaker {
    pub fn http1(chunked: bool) -> Speaker {
        Speaker::Http1(Http1 { chunked })
    }

    pub fn fastcgi(complaints: Complaints) -> Speaker {
        Speaker::FastCgi(FastCgi::new(complaints))
    }

    pub(super) fn most(&self) -> usize {
        match self {
            Speaker::Http1(_) | Speaker::Cgi | Speaker::Http2 => usize::MAX,
            Speaker::FastCgi(_) => MOST,
        }
    }

    pub(super) fn frame(&self, length: usize, last: bool, before: &mut Vec<u8>) -> &'static [u8] {
        match self {
            Speaker::Http1(http1) => http1.frame(length, last, before),
            Speaker::FastCgi(_) => fastcgi::frame(length, last, before),
            Speaker::Cgi | Speaker::Http2 => b"",
        }
    }

    /// Whether a response's final head has begun in these bytes, behind interim ones (RFC 9110 §15.2). An application has none:
    /// there it must be whole, as it may begin to write before it has read all.
    pub(super) fn says_final(&self, bytes: &[u8]) -> bool {
        match self {
            Speaker::Http1(_) => behind_interim(bytes).is_some_and(|rest| rest.len() > STATUS),
            Speaker::FastCgi(_) | Speaker::Cgi => end_of_head(bytes).is_some(),
            Speaker::Http2 => false,
        }
    }

    /// Unpacks what was read to `buffer[from..]`.
    pub(super) fn received(&mut self, buffer: &mut Vec<u8>, from: usize) {
        match self {
            Speaker::Http1(_) | Speaker::Cgi | Speaker::Http2 => {}
            Speaker::FastCgi(spoken) => spoken.received(buffer, from),
        }
    }

    pub(super) fn parse(
        &self,
        head: &mut ResponseHead,
        text: &[u8],
        limits: &HeadLimits,
    ) -> Result<Progress, ResponseHeadError> {
        match self {
            Speaker::Http1(_) | Speaker::Http2 => head.parse(text, limits),
            Speaker::FastCgi(_) => head.parse_cgi(text, limits),
            Speaker::Cgi => head.parse_application(text, limits),
        }
    }

    /// Also whether the connection may be reused.
    pub(super) fn accept(
        &mut self,
        method: Method,
        head: &ResponseHead,
        fields: Fields<'_>,
    ) -> Result<(Framing, bool), ExchangeError> {
        match self {
            Speaker::Http1(_) | Speaker::Http2 => http1::accept(method, head, fields),
            Speaker::FastCgi(spoken) => spoken.accept(method, head, fields),
            Speaker::Cgi => cgi::accept(method, head, fields),
        }
    }

    pub(super) fn is_ended(&self) -> Result<bool, ExchangeError> {
        match self {
            Speaker::Http1(_) | Speaker::Cgi | Speaker::Http2 => Ok(false),
            Speaker::FastCgi(spoken) => spoken.is_ended(),
        }
    }

    /// Whether the upstream has sent its last text.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Speaker::FastCgi(spoken) if spoken.is_closed())
    }

    /// Whether the end of the connection can end a body; `keep`: it was to be reused.
    pub(super) fn ends_by_close(&self, keep: bool) -> bool {
        match self {
            Speaker::Http1(_) | Speaker::Cgi | Speaker::Http2 => true,
            // An application that was to keep the connection ends a request by its record.
            Speaker::FastCgi(spoken) => !keep && spoken.is_closed(),
        }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        match self {
            Speaker::Http1(_) | Speaker::Cgi | Speaker::Http2 => true,
            Speaker::FastCgi(spoken) => spoken.is_at_rest(),
        }
    }
}

/// Where the status stands in `HTTP/1.1 200`.
const STATUS: usize = 9;

/// What follows the interim heads; `None` within one.
fn behind_interim(mut bytes: &[u8]) -> Option<&[u8]> {
    while bytes.get(STATUS) == Some(&b'1') {
        bytes = &bytes[end_of_head(bytes)?..];
    }
    Some(bytes)
}

/// Behind the empty line.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find_map(|at| match &bytes[at..] {
        [b'\n', b'\n', ..] => Some(at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_head_is_seen_behind_interim_ones() {
        let speaker = Speaker::http1(false);
        for (bytes, is_final) in [
            ("", false),
            ("HTTP/1.1 ", false),
            ("HTTP/1.1 4", true),
            ("HTTP/1.1 100 Continue\r\n\r\n", false),
            ("HTTP/1.1 103 Hints\r\nLink: a\r\n", false),
            ("HTTP/1.1 103 Hints\r\nLink: a\r\n\r\nHTTP/1.1 1", false),
            ("HTTP/1.1 100 Continue\n\nHTTP/1.1 413 Too Large\r\n", true),
        ] {
            assert_eq!(speaker.says_final(bytes.as_bytes()), is_final, "{bytes:?}");
        }
        for (bytes, is_final) in [("Status: 200\r\n", false), ("Status: 200\r\n\r\nbody", true)] {
            assert_eq!(Speaker::Cgi.says_final(bytes.as_bytes()), is_final, "{bytes:?}");
        }
    }
}
