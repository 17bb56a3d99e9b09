//! Where an answer's body ends and which bytes of the buffer are its data. Pure: it sees bytes, never a socket.
//!
//! How it is framed was decided by `millstream-wire`'s `framing`. Next: `connection`, which reads the bytes.

use crate::error::ExchangeError;
use millstream_wire::h1::chunked::{Decoder, Event};
use millstream_wire::h1::framing::Framing;
use millstream_wire::{Fields, Headers};

const MAX_TRAILERS: usize = 8192;
/// Bytes of data from which a part is not joined with the chunk behind it.
const JOINED: usize = 4096;

#[derive(Debug)]
pub(super) enum Body {
    Pending,
    Length(u64),
    /// The flag says whether the last chunk and the trailers came.
    Chunked(Box<Decoder>, bool),
    /// Until the connection closes, or the protocol's end of stream; the flag says whether it has.
    Close(bool),
    /// Until its stream ends, which checks the length; `left` is the rest of the announced length.
    Stream {
        left: Option<u64>,
        ended: bool,
        trailers: Headers,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `input[from..to]` is data, at least one byte; `used` bytes, framing included, can be dropped.
    Data { from: usize, to: usize, used: usize },
    /// More input is needed; `used` bytes of framing can be dropped.
    More { used: usize },
    /// The end, after `used` bytes of framing.
    End { used: usize },
}

impl Body {
    pub(super) fn pending() -> Self {
        Self::Pending
    }

    pub(super) fn ended() -> Self {
        Self::Length(0)
    }

    pub(super) fn of(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Box::new(Decoder::new(MAX_TRAILERS)), false),
            Framing::Close => Self::Close(false),
        }
    }

    pub(super) fn of_stream(length: Option<u64>) -> Self {
        Self::Stream { left: length, ended: false, trailers: Headers::new() }
    }

    pub(super) fn end_stream(&mut self, behind: Option<Headers>) {
        if let Self::Stream { ended, trailers, .. } = self {
            *ended = true;
            *trailers = behind.unwrap_or_default();
        }
    }

    /// The caller drops `used` bytes from the input, in which data may have been moved.
    pub(super) fn step(&mut self, input: &mut [u8]) -> Result<Step, ExchangeError> {
        match self {
            Self::Pending => Ok(Step::More { used: 0 }),
            Self::Stream { left, ended, .. } => {
                if input.is_empty() {
                    return Ok(if *ended { Step::End { used: 0 } } else { Step::More { used: 0 } });
                }
                if let Some(left) = left {
                    *left = left.saturating_sub(input.len() as u64);
                }
                Ok(Step::Data { from: 0, to: input.len(), used: input.len() })
            }
            Self::Length(0) | Self::Close(true) | Self::Chunked(_, true) => Ok(Step::End { used: 0 }),
            Self::Length(_) | Self::Close(false) if input.is_empty() => Ok(Step::More { used: 0 }),
            Self::Length(left) => {
                let length = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= length as u64;
                Ok(Step::Data { from: 0, to: length, used: length })
            }
            Self::Close(false) => Ok(Step::Data { from: 0, to: input.len(), used: input.len() }),
            Self::Chunked(decoder, ended) => chunks(decoder, ended, input),
        }
    }

    pub(super) fn ended_with_stream(&mut self) -> bool {
        if let Self::Close(ended) = self {
            *ended = true;
        }
        matches!(self, Self::Close(_) | Self::Stream { ended: true, .. })
    }

    pub(super) fn ends_with_stream(&self) -> bool {
        matches!(self, Self::Close(_) | Self::Stream { .. })
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(
            self,
            Self::Length(0) | Self::Close(true) | Self::Chunked(_, true) | Self::Stream { ended: true, .. }
        )
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Stream { left, .. } => *left,
            Self::Pending | Self::Chunked(..) | Self::Close(_) => None,
        }
    }

    pub(super) fn trailers(&self) -> Option<Fields<'_>> {
        match self {
            Self::Chunked(decoder, true) => Some(decoder.trailers()),
            Self::Stream { ended: true, trailers, .. } => Some(trailers.view()),
            _ => None,
        }
    }
}

/// Small chunks that have come together are one part: their data is moved over the framing between them.
fn chunks(decoder: &mut Decoder, ended: &mut bool, input: &mut [u8]) -> Result<Step, ExchangeError> {
    let (mut used, mut from, mut to) = (0, 0, 0);
    loop {
        let (consumed, event) = decoder.decode(&input[used..]).map_err(ExchangeError::BadBody)?;
        let data = match event {
            Event::Data(data) => {
                let start = data.as_ptr() as usize - input.as_ptr() as usize;
                Some(start..start + data.len())
            }
            Event::More => None,
            Event::End => {
                *ended = true;
                None
            }
        };
        used += consumed;
        match data {
            Some(data) if from == to => (from, to) = (data.start, data.end),
            Some(data) => {
                let length = data.len();
                input.copy_within(data, to);
                to += length;
            }
            None if from < to => return Ok(Step::Data { from, to, used }),
            None if *ended => return Ok(Step::End { used }),
            None => return Ok(Step::More { used }),
        }
        if to - from >= JOINED {
            return Ok(Step::Data { from, to, used });
        }
    }
}
