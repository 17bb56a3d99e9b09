//! Records undone: what an application sends becomes one contiguous text, in the buffer it was read into.
//!
//! A record may be cut anywhere, its header too, so all that is not text is remembered here and never in the buffer. What
//! the application complains of on STDERR is kept apart and bounded. After an error nothing more is taken for text.
//!
//! ```text
//! header ─ content ─ padding ─ header … STDOUT(0) ─ END_REQUEST
//! ```

use super::{HEADER, Kind, REQUEST, VERSION};

/// Bytes of STDERR kept until they are taken; more is dropped.
const MOST_COMPLAINTS: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    Version(u8),
    /// A kind that no application may send.
    Kind(u8),
    /// A request that was never begun.
    Request(u16),
}

impl RecordError {
    /// Follows "upstream sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            RecordError::Version(_) => "unsupported FastCGI protocol version",
            RecordError::Kind(_) => "invalid FastCGI record type",
            RecordError::Request(_) => "unexpected FastCGI request id",
        }
    }

    pub fn number(self) -> u16 {
        match self {
            RecordError::Version(number) | RecordError::Kind(number) => number.into(),
            RecordError::Request(number) => number,
        }
    }
}

#[derive(Debug, Default)]
pub struct Records {
    header: [u8; HEADER],
    filled: u8,
    content: u16,
    padding: u8,
    stdout: Stdout,
    /// END_REQUEST has begun.
    ended: bool,
    /// More came after the end of the text or the last record: dropped, and nothing that follows can be trusted.
    excess: bool,
    failed: Option<RecordError>,
    complaints: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stdout {
    #[default]
    Open,
    Closed,
}

impl Records {
    /// Takes the records out of `buffer[from..]`, leaving their text.
    pub fn undo(&mut self, buffer: &mut Vec<u8>, from: usize) {
        let (mut read, mut text) = (from.min(buffer.len()), from.min(buffer.len()));
        while read < buffer.len() && self.failed.is_none() {
            if self.has_come_whole() {
                self.excess = true;
                break;
            }
            let rest = buffer.len() - read;
            if self.content > 0 {
                let size = rest.min(usize::from(self.content));
                match self.header[1] {
                    kind if kind == Kind::Stdout as u8 && self.stdout == Stdout::Open => {
                        buffer.copy_within(read..read + size, text);
                        text += size;
                    }
                    kind if kind == Kind::Stderr as u8 => self.complain(&buffer[read..read + size]),
                    _ => {}
                }
                self.content -= size as u16;
                read += size;
            } else if self.padding > 0 {
                let size = rest.min(usize::from(self.padding));
                self.padding -= size as u8;
                read += size;
            } else {
                let filled = usize::from(self.filled);
                let size = rest.min(HEADER - filled);
                self.header[filled..filled + size].copy_from_slice(&buffer[read..read + size]);
                self.filled += size as u8;
                read += size;
                if usize::from(self.filled) == HEADER {
                    self.filled = 0;
                    self.failed = self.begin().err();
                }
            }
        }
        buffer.truncate(text);
    }

    fn begin(&mut self) -> Result<(), RecordError> {
        let [version, kind, id_high, id_low, high, low, padding, _] = self.header;
        let request = u16::from_be_bytes([id_high, id_low]);
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        if request != REQUEST {
            return Err(RecordError::Request(request));
        }
        (self.content, self.padding) = (u16::from_be_bytes([high, low]), padding);
        match kind {
            kind if kind == Kind::Stdout as u8 => match self.stdout {
                Stdout::Open if self.content == 0 => self.stdout = Stdout::Closed,
                Stdout::Open => {}
                Stdout::Closed => self.excess = true,
            },
            kind if kind == Kind::Stderr as u8 => {}
            kind if kind == Kind::EndRequest as u8 => self.ended = true,
            kind => return Err(RecordError::Kind(kind)),
        }
        Ok(())
    }

    fn complain(&mut self, text: &[u8]) {
        let room = MOST_COMPLAINTS - self.complaints.len();
        self.complaints.extend_from_slice(&text[..text.len().min(room)]);
    }

    fn has_come_whole(&self) -> bool {
        self.ended && self.content == 0 && self.padding == 0
    }

    /// Whether the last record has come whole. Errors: what was found after the last text.
    pub fn is_ended(&self) -> Result<bool, RecordError> {
        self.failed.map_or_else(|| Ok(self.has_come_whole()), Err)
    }

    /// Whether no more text comes, though the last record may.
    pub fn is_closed(&self) -> bool {
        self.stdout == Stdout::Closed
    }

    /// Whether the last record has come and nothing after it, so that another request may follow.
    pub fn is_at_rest(&self) -> bool {
        self.is_ended() == Ok(true) && !self.excess
    }

    /// What the application wrote to STDERR so far.
    pub fn complaints(&self) -> &[u8] {
        &self.complaints
    }

    /// Taken so that it is logged once.
    pub fn take_complaints(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.complaints)
    }
}
