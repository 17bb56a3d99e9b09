//! Where the head of an answer goes: a status, fields, the place of the date, and what becomes of the connection.
//!
//! What a head says is `head`'s to know; how that stands on the wire is said here alone: as the text of HTTP/1, or as a header block of
//! HTTP/2. Transfer codings and the fields of the connection are HTTP/1's own (RFC 9112 §6, §9; RFC 9113 §8.2.2).

use crate::request::Request;
use crate::time_text::with_now;
use millstream_wire::h1::encode as text;
use millstream_wire::h2::hpack::decoder::HpackDecoder;
use millstream_wire::h2::hpack::encoder as block;
use millstream_wire::h2::hpack::line::LineName;
use std::borrow::Cow;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    Upgrade,
    /// With the `Keep-Alive` timeout to announce, if any.
    Keep(Option<Duration>),
    Close,
    /// An interim response has no Connection field.
    Unsaid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Text,
    /// An HPACK block (RFC 7541), the same for every connection.
    Block,
}

pub(super) struct Sink<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    writing: Writing,
}

impl Writing {
    #[inline]
    pub(super) fn of(request: &Request) -> Writing {
        if request.is_on_stream() { Writing::Block } else { Writing::Text }
    }
}

impl<'o> Sink<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut Vec<u8>, writing: Writing) -> Sink<'o> {
        let start = out.len();
        Sink { out, start, writing }
    }

    #[inline]
    pub(super) fn status(&mut self, status: u16) {
        match self.writing {
            Writing::Text => text::status_line(self.out, status),
            Writing::Block => block::status(self.out, status),
        }
    }

    /// A prepared status and fields, with the present date at its offset.
    #[inline]
    pub(super) fn prepared(&mut self, bytes: &[u8], date_at: Option<usize>) {
        self.out.extend_from_slice(bytes);
        if let Some(at) = date_at {
            let at = self.start + at;
            with_now(|now| self.out[at..at + now.http.len()].copy_from_slice(&now.http));
        }
    }

    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        match self.writing {
            Writing::Text => text::field(self.out, name, value),
            Writing::Block => block::field(self.out, name, value),
        }
    }

    #[inline]
    pub(super) fn number(&mut self, name: &[u8], value: u64) {
        match self.writing {
            Writing::Text => text::number_field(self.out, name, value),
            Writing::Block => block::number_field(self.out, name, value),
        }
    }

    /// The value is written in place. An empty one is dropped, and line ends in variables are blanked.
    pub(super) fn made(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        let value = |out: &mut Vec<u8>| {
            let value_at = out.len();
            write(out);
            for byte in &mut out[value_at..] {
                if matches!(byte, b'\r' | b'\n' | 0) {
                    *byte = b' ';
                }
            }
            out.len() == value_at
        };
        let is_empty = match self.writing {
            Writing::Block => block::made_field(self.out, name, value),
            Writing::Text => {
                self.out.extend_from_slice(name);
                self.out.extend_from_slice(b": ");
                let is_empty = value(self.out);
                self.out.extend_from_slice(b"\r\n");
                is_empty
            }
        };
        if is_empty {
            self.out.truncate(start);
        }
    }

    pub(super) fn date(&mut self) -> usize {
        with_now(|now| match self.writing {
            Writing::Text => {
                text::field(self.out, b"Date", &now.http);
                self.out.len() - now.http.len() - b"\r\n".len()
            }
            Writing::Block => block::raw_field(self.out, b"date", &now.http).start,
        }) - self.start
    }

    pub(super) fn framing(&mut self, chunked: bool, length: Option<u64>) {
        match length {
            _ if chunked && self.writing == Writing::Text => self.field(b"Transfer-Encoding", b"chunked"),
            Some(length) => self.number(b"Content-Length", length),
            None => {}
        }
    }

    #[inline]
    pub(super) fn end(&mut self, onward: Onward) {
        if self.writing == Writing::Block {
            return;
        }
        let out = &mut *self.out;
        match onward {
            Onward::Unsaid => {}
            Onward::Upgrade => out.extend_from_slice(b"Connection: upgrade\r\n"),
            Onward::Close => out.extend_from_slice(b"Connection: close\r\n"),
            Onward::Keep(told) => {
                out.extend_from_slice(b"Connection: keep-alive\r\n");
                if let Some(timeout) = told {
                    out.extend_from_slice(b"Keep-Alive: timeout=");
                    out.extend_from_slice(itoa::Buffer::new().format(timeout.as_secs()).as_bytes());
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    pub(super) fn said(&self) -> Cow<'_, [u8]> {
        let said = &self.out[self.start..];
        match self.writing {
            Writing::Text => Cow::Borrowed(said),
            Writing::Block => Cow::Owned(block_as_text(said)),
        }
    }
}

/// Decodes a header block made here, behind a line for the status.
fn block_as_text(block: &[u8]) -> Vec<u8> {
    let mut text = b"\n".to_vec();
    let lines = HpackDecoder::default().decode(block, usize::MAX, |line| {
        if let LineName::Field(_) = line.called {
            text.extend_from_slice(line.text());
        }
    });
    debug_assert!(lines.is_ok(), "what we encoded cannot be decoded");
    text
}
