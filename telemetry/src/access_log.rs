//! A worker's buffer for one access log, and the escapes of `log_format`.
//!
//! It never formats a line itself (the server does, from the format's template) and never drops one: dropping the
//! buffer sends what it holds. Next: `log_writer`, which takes the blocks.

#[cfg(test)]
mod tests;

use crate::log_writer::{LogSink, Ticket};
use crate::syslog::Header;
use millstream_conf::model::{Escape, LogFile, LogTarget};
use std::time::{Duration, Instant};

/// The buffer of a compressed log without `buffer=`, as in nginx: a member per line would grow the file.
const GZIP_BUFFER: usize = 64 << 10;

/// Room beyond `buffer=` for the line that crosses it.
const LINE_ROOM: usize = 1 << 10;

/// Lines of one worker thread for one file.
#[derive(Debug)]
pub struct AccessBuffer {
    sink: LogSink,
    /// Bytes at which the block is sent; `None` = every line at once.
    limit: Option<usize>,
    flush: Option<Duration>,
    header: Option<Header>,
    bytes: Vec<u8>,
    /// How much of `bytes` is complete lines.
    committed: usize,
    due: Option<Instant>,
}

impl AccessBuffer {
    pub fn new(sink: LogSink, conf: &LogFile) -> Self {
        let limit = conf.buffer.or(conf.gzip.map(|_| GZIP_BUFFER)).filter(|&bytes| bytes > 0);
        let header = match &conf.target {
            LogTarget::Syslog(syslog) => Some(Header::new(syslog)),
            LogTarget::File(_) | LogTarget::Stderr => None,
        };
        AccessBuffer { sink, limit, flush: conf.flush, header, bytes: Vec::new(), committed: 0, due: None }
    }

    /// Append one whole line with its newline, then call [`AccessBuffer::commit`]. Discards an abandoned
    /// line.
    pub fn line(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = self.sink.take_buffer();
            self.bytes.reserve(self.limit.unwrap_or(0) + LINE_ROOM);
        }
        self.bytes.truncate(self.committed);
        if let Some(header) = &self.header {
            header.begin(&mut self.bytes);
        }
        &mut self.bytes
    }

    /// Takes the appended line. Unbuffered, it is sent now and the ticket resolves when it is written;
    /// buffered, the block is sent once it has `buffer=` bytes, and no one need wait for it.
    pub fn commit(&mut self, now: Instant) -> Option<Ticket> {
        let Some(limit) = self.limit else {
            let ticket = self.sink.append(&self.bytes);
            self.bytes.clear();
            return Some(ticket);
        };
        if self.committed == 0 {
            self.due = self.flush.map(|flush| now + flush);
        }
        self.committed = self.bytes.len();
        if self.committed >= limit {
            self.flush();
        }
        None
    }

    /// When [`AccessBuffer::flush`] is due by `flush=`; `None` while nothing waits or no time is set. The
    /// worker must check it, since this file has no timer.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    pub fn flush(&mut self) {
        self.due = None;
        self.bytes.truncate(self.committed);
        self.committed = 0;
        if !self.bytes.is_empty() {
            self.sink.send(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for AccessBuffer {
    fn drop(&mut self) {
        self.flush();
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Bytes that `escape=default` replaces: controls, everything from DEL up, `"` and `\`.
static DEFAULT_ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 32 || byte >= 127 || byte == b'"' as usize || byte == b'\\' as usize;
        byte += 1;
    }
    table
};

/// Bytes that `escape=json` replaces: controls, `"` and `\`. Anything else, even invalid UTF-8, passes as in
/// nginx.
static JSON_ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 32 || byte == b'"' as usize || byte == b'\\' as usize;
        byte += 1;
    }
    table
};

/// The caller must write a missing value as `-` (or as nothing, in JSON).
pub fn escape(out: &mut Vec<u8>, how: Escape, value: &[u8]) {
    match how {
        Escape::Default => escape_default(out, value),
        Escape::Json => escape_json(out, value),
        Escape::None => out.extend_from_slice(value),
    }
}

pub fn is_clean(how: Escape, value: &[u8]) -> bool {
    // Without a branch per byte, so that the compiler can look at many at once.
    match how {
        Escape::Default => none(value, |byte| byte.wrapping_sub(32) > 94 || byte == b'"' || byte == b'\\'),
        Escape::Json => none(value, |byte| byte < 32 || byte == b'"' || byte == b'\\'),
        Escape::None => true,
    }
}

fn none(value: &[u8], dirty: impl Fn(u8) -> bool) -> bool {
    let (pieces, rest) = value.as_chunks::<16>();
    let in_piece = |piece: &[u8]| piece.iter().fold(false, |found, &byte| found | dirty(byte));
    !pieces.iter().fold(false, |found, piece| found | in_piece(piece)) && !in_piece(rest)
}

/// Controls, bytes above 126, `"` and `\` become `\xXX`, upper case.
pub fn escape_default(out: &mut Vec<u8>, value: &[u8]) {
    escape_by(out, value, &DEFAULT_ESCAPED, |out, byte| {
        out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    });
}

pub fn escape_json(out: &mut Vec<u8>, value: &[u8]) {
    escape_by(out, value, &JSON_ESCAPED, |out, byte| match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    });
}

/// Copies runs of clean bytes whole, which is nearly always the whole value.
fn escape_by(out: &mut Vec<u8>, value: &[u8], table: &[bool; 256], replace: impl Fn(&mut Vec<u8>, u8)) {
    let mut rest = value;
    while let Some(position) = rest.iter().position(|&byte| table[usize::from(byte)]) {
        out.extend_from_slice(&rest[..position]);
        replace(out, rest[position]);
        rest = &rest[position + 1..];
    }
    out.extend_from_slice(rest);
}
