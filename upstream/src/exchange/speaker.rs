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
