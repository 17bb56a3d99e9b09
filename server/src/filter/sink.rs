//! Where the head of an answer goes: a status, fields, the place of the date, and what becomes of the connection.
//!
//! What a head says is `head`'s to know; how that stands on the wire is said here alone, in the text of HTTP/1, which is the
//! only protocol so far. Framing and the fields of the connection are HTTP/1's own (RFC 9112 §6, §9), and nobody else's.

use crate::time_text::with_now;
use millstream_wire::h1::encode;
use std::time::Duration;

/// What becomes of the connection behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    /// It speaks another protocol (101).
    Upgrade,
    /// Another request may follow, within this time where it is told.
    Keep(Option<Duration>),
    /// It ends.
    Close,
}

/// A head on its way into a buffer.
pub(super) struct Sink<'o> {
    out: &'o mut Vec<u8>,
    /// Where the head begins.
    start: usize,
}

impl<'o> Sink<'o> {
    /// A head that begins at the buffer's end.
    #[inline]
    pub(super) fn new(out: &'o mut Vec<u8>) -> Sink<'o> {
        let start = out.len();
        Sink { out, start }
    }

    /// Begins with a status.
    #[inline]
    pub(super) fn status(&mut self, status: u16) {
        encode::status_line(self.out, status);
    }

    /// Begins with what was prepared: a status and fields, with the present date where it has its place.
    #[inline]
    pub(super) fn prepared(&mut self, bytes: &[u8], date_at: Option<usize>) {
        self.out.extend_from_slice(bytes);
        if let Some(at) = date_at {
            let at = self.start + at;
            with_now(|now| self.out[at..at + now.http.len()].copy_from_slice(&now.http));
        }
    }

    /// A field whose value has no line ends.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        encode::field(self.out, name, value);
    }

    /// A field that is a number.
    #[inline]
    pub(super) fn number(&mut self, name: &[u8], value: u64) {
        encode::number_field(self.out, name, value);
    }

    /// A field whose value is made where it will stand. An empty one is none, and line ends of variables cannot start a
    /// field of their own.
    pub(super) fn made(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b": ");
        let value_at = self.out.len();
        write(self.out);
        if self.out.len() == value_at {
            self.out.truncate(start);
            return;
        }
        for byte in &mut self.out[value_at..] {
            if matches!(byte, b'\r' | b'\n' | 0) {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// The present date; gives its place, for [`Sink::prepared`].
    pub(super) fn date(&mut self) -> usize {
        let place = self.out.len() - self.start + b"Date: ".len();
        with_now(|now| self.field(b"Date", &now.http));
        place
    }

    /// How the body's end is shown, where not by the connection's.
    pub(super) fn framing(&mut self, chunked: bool, length: Option<u64>) {
        match length {
            _ if chunked => self.field(b"Transfer-Encoding", b"chunked"),
            Some(length) => self.number(b"Content-Length", length),
            None => {}
        }
    }

    /// Ends the head.
    #[inline]
    pub(super) fn end(&mut self, onward: Onward) {
        let out = &mut *self.out;
        match onward {
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

    /// What the head says so far, as text.
    pub(super) fn said(&self) -> &[u8] {
        &self.out[self.start..]
    }
}
