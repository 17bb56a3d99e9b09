//! Takes chunked content apart (RFC 9112 §7.1) as it arrives, cut at any byte.
//!
//! ```text
//!  Size ──digits──▶ Size ──SP HTAB──▶ Space ──;──▶ Extension ◀──"──▶ Quoted ◀──\──▶ Escaped
//!   │ CR              └────────;──────────────────────▲ │ CR
//!   └──────────────▶ SizeEnd ◀──────────────────────────┘
//!       LF, size > 0 │   │ LF, size = 0
//!  Data ◀────────────┘   └────▶ Trailers ──empty line──▶ End
//!   └─all read─▶ DataCr ─▶ DataLf ─▶ Size
//! ```
//!
//! Every line ends with CR LF: RFC 9112 §2.2 lets heads end lines with LF alone, but within a body readers differ
//! about it, and that difference has smuggled requests. The decoder never buffers content and never allocates but
//! for trailers.

use crate::field::Field;
use crate::fields::Fields;
use crate::h1::field_line::{FieldError, FieldScan};
use crate::h1::limits::{HeadLimits, Progress};

/// Most hexadecimal digits of a size, leading zeros included.
const SIZE_DIGITS: u8 = 16;

/// Bytes of extensions a body may have beyond what its content allows.
const EXTENSION_ALLOWANCE: u32 = 16 * 1024;

/// Bytes of extensions allowed per chunk, in addition to twice its size.
const EXTENSION_PER_CHUNK: u64 = 16;

/// Most trailer field lines; their bytes are bounded by the decoder's creator.
const TRAILER_FIELDS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Never empty.
    Data(&'a [u8]),
    /// All input is consumed and the body goes on.
    More,
    /// The body has ended, trailers included; the rest of the input belongs to the next message.
    End,
}

/// The connection must be closed: where the body ends is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkedError {
    /// A size is missing or has a byte that is no hexadecimal digit.
    BadSize,
    /// More than sixteen digits, or above 2^63-1.
    SizeTooLarge,
    /// A control byte or an open quote.
    BadExtension,
    /// More bytes of extensions than a body of this size justifies.
    ExtensionsTooLarge,
    /// Something other than CR LF ends a line or follows a chunk's data.
    BadLineEnd,
    BadTrailer,
    TrailersTooLarge,
}

impl ChunkedError {
    /// For a request with such a body; an upstream's response is cut, or becomes 502.
    pub fn status(self) -> u16 {
        400
    }

    /// Follows "client sent " or "upstream sent " in the error log.
    pub fn what(self) -> &'static str {
        match self {
            ChunkedError::BadSize => "invalid chunk size",
            ChunkedError::SizeTooLarge => "too large chunk size",
            ChunkedError::BadExtension => "invalid chunk extension",
            ChunkedError::ExtensionsTooLarge => "too large chunk extensions",
            ChunkedError::BadLineEnd => "invalid line end in chunked body",
            ChunkedError::BadTrailer => "invalid trailer",
            ChunkedError::TrailersTooLarge => "too large trailers",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Space,
    Extension,
    Quoted,
    Escaped,
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    Trailers,
    End,
}

#[derive(Debug, Clone)]
pub struct Decoder {
    state: State,
    digits: u8,
    /// The size that is being read; then what is left of the chunk's data.
    size: u64,
    extension_bytes: u32,
    max_trailer_bytes: u32,
    trailer_scan: FieldScan,
    trailer_bytes: Vec<u8>,
    trailer_fields: Vec<Field>,
}

impl Decoder {
    /// `max_trailer_bytes` bounds the trailer section, empty line included.
    pub fn new(max_trailer_bytes: usize) -> Decoder {
        Decoder {
            state: State::Size,
            digits: 0,
            size: 0,
            extension_bytes: 0,
            max_trailer_bytes: u32::try_from(max_trailer_bytes).unwrap_or(u32::MAX),
            trailer_scan: FieldScan::default(),
            trailer_bytes: Vec::new(),
            trailer_fields: Vec::new(),
        }
    }

    /// Returns how many bytes of `input` are consumed, and what they are. Call again with the rest until
    /// `More` or `End`; after `End` every call consumes nothing and returns `End`. After an error the decoder
    /// is unusable.
    #[inline]
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Event<'a>), ChunkedError> {
        let mut at = 0;
        while at < input.len() {
            match self.state {
                State::Data => {
                    let available = input.len() - at;
                    let length = usize::try_from(self.size).map_or(available, |size| size.min(available));
                    self.size -= length as u64;
                    let data = &input[at..at + length];
                    at += length;
                    if self.size == 0 {
                        self.state = State::DataCr;
                        if input[at..].starts_with(b"\r\n") {
                            at += 2;
                            self.next_chunk();
                        }
                    }
                    return Ok((at, Event::Data(data)));
                }
                State::Trailers => return self.trailer(input, at),
                State::End => return Ok((at, Event::End)),
                _ => {
                    self.line_byte(input[at])?;
                    at += 1;
                }
            }
        }
        Ok((at, if self.state == State::End { Event::End } else { Event::More }))
    }

    /// One byte of the framing around the data.
    #[inline]
    fn line_byte(&mut self, byte: u8) -> Result<(), ChunkedError> {
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9') => self.digit(byte - b'0')?,
            (State::Size, b'a'..=b'f' | b'A'..=b'F') => self.digit((byte | 0x20) - b'a' + 10)?,
            (State::Size, _) if self.digits == 0 => return Err(ChunkedError::BadSize),
            (State::Size | State::Space | State::Extension, b'\r') => State::SizeEnd,
            // White space behind the size is bad grammar without an extension, yet every reader skips it.
            (State::Size | State::Space, b' ' | b'\t') => self.extension(State::Space)?,
            (State::Size | State::Space, b';') => self.extension(State::Extension)?,
            (State::Size, b'\n') => return Err(ChunkedError::BadLineEnd),
            (State::Size | State::Space, _) => return Err(ChunkedError::BadSize),
            (State::Extension, b'"') => self.extension(State::Quoted)?,
            (State::Quoted, b'"') => self.extension(State::Extension)?,
            (State::Quoted, b'\\') => self.extension(State::Escaped)?,
            (State::Escaped, b'\t' | b' '..=0x7e | 0x80..) => self.extension(State::Quoted)?,
            (State::Extension | State::Quoted, b'\t' | b' '..=0x7e | 0x80..) => self.extension(self.state)?,
            (State::Extension | State::Quoted | State::Escaped, _) => return Err(ChunkedError::BadExtension),
            (State::SizeEnd, b'\n') if self.size == 0 => State::Trailers,
            (State::SizeEnd, b'\n') => {
                let paid = self.size.saturating_mul(2).saturating_add(EXTENSION_PER_CHUNK);
                self.extension_bytes =
                    self.extension_bytes.saturating_sub(u32::try_from(paid).unwrap_or(u32::MAX));
                State::Data
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => {
                self.next_chunk();
                State::Size
            }
            _ => return Err(ChunkedError::BadLineEnd),
        };
        Ok(())
    }

    fn next_chunk(&mut self) {
        (self.state, self.digits, self.size) = (State::Size, 0, 0);
    }

    #[inline]
    fn digit(&mut self, digit: u8) -> Result<State, ChunkedError> {
        // A bound on the digits also bounds leading zeros; 2^63 and above are signed traps and no real size.
        if self.digits == SIZE_DIGITS || self.size >= 1 << 59 {
            return Err(ChunkedError::SizeTooLarge);
        }
        self.digits += 1;
        self.size = self.size << 4 | u64::from(digit);
        Ok(State::Size)
    }

    fn extension(&mut self, next: State) -> Result<State, ChunkedError> {
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_ALLOWANCE {
            return Err(ChunkedError::ExtensionsTooLarge);
        }
        Ok(next)
    }

    /// The trailer section, line by line, up to the empty line.
    fn trailer<'a>(&mut self, input: &'a [u8], mut at: usize) -> Result<(usize, Event<'a>), ChunkedError> {
        let limits = HeadLimits { line: usize::MAX, total: usize::MAX, fields: TRAILER_FIELDS };
        while at < input.len() {
            let end = memchr::memchr(b'\n', &input[at..]).map_or(input.len(), |length| at + length + 1);
            let room = (self.max_trailer_bytes as usize).saturating_sub(self.trailer_bytes.len());
            let fitting = end.min(at.saturating_add(room));
            self.trailer_bytes.extend_from_slice(&input[at..fitting]);
            let read = self.trailer_scan.read(&self.trailer_bytes, &mut self.trailer_fields, &limits);
            if fitting < end && read.is_ok() {
                return Err(ChunkedError::TrailersTooLarge);
            }
            at = end;
            let ends_with_lf_alone =
                self.trailer_bytes.ends_with(b"\n") && !self.trailer_bytes.ends_with(b"\r\n");
            match read {
                Ok(_) if ends_with_lf_alone => return Err(ChunkedError::BadLineEnd),
                Ok(Progress::Partial) => {}
                Ok(Progress::Complete) => {
                    self.trailer_fields.retain(|field| field.id.is_allowed_in_trailer());
                    self.state = State::End;
                    return Ok((at, Event::End));
                }
                Err(FieldError::Bad) => return Err(ChunkedError::BadTrailer),
                Err(FieldError::TooLarge | FieldError::TooMany) => {
                    return Err(ChunkedError::TrailersTooLarge);
                }
            }
        }
        Ok((at, Event::More))
    }

    /// The trailers, once the body has ended; without those that are not allowed
    /// ([`crate::FieldId::is_allowed_in_trailer`]).
    pub fn trailers(&self) -> Fields<'_> {
        let fields = if self.is_ended() { &self.trailer_fields[..] } else { &[] };
        Fields::new(&self.trailer_bytes, fields)
    }

    #[inline]
    pub fn is_ended(&self) -> bool {
        self.state == State::End
    }

    /// Bytes of the current chunk still to come: a lower bound of what the body still has.
    #[inline]
    pub fn expected(&self) -> u64 {
        if self.state == State::Data { self.size } else { 0 }
    }
}

#[cfg(test)]
mod tests;
