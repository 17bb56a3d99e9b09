//! The body of a message of HTTP/1 as its bytes come, cut anywhere, for whoever reads one: pure, and kept by nobody.

use super::chunked::{ChunkedError, Decoder, Event};
use super::framing::Framing;

/// Most bytes of trailers after a chunked body.
const TRAILERS: usize = 64 * 1024;

#[derive(Debug)]
pub enum Content {
    Length(u64),
    Chunked(Box<Decoder>),
    Close,
}

impl Content {
    /// `None` if there is no body.
    #[inline]
    pub fn of(framing: Framing) -> Option<Content> {
        match framing {
            Framing::None | Framing::Length(0) => None,
            Framing::Length(length) => Some(Content::Length(length)),
            Framing::Chunked => Some(Content::Chunked(Box::new(Decoder::new(TRAILERS)))),
            Framing::Close => Some(Content::Close),
        }
    }

    /// Returns how many bytes are read, those of them that belong to the body, and whether it ends there.
    /// Less than all are read if it ends or the body is not in one piece.
    #[inline]
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, &'a [u8], bool), ChunkedError> {
        match self {
            Content::Length(left) => {
                let length = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= length as u64;
                Ok((length, &bytes[..length], *left == 0))
            }
            Content::Close => Ok((bytes.len(), bytes, false)),
            Content::Chunked(decoder) => Ok(match decoder.decode(bytes)? {
                (consumed, Event::Data(data)) => (consumed, data, false),
                (consumed, Event::More) => (consumed, &bytes[..0], false),
                (consumed, Event::End) => (consumed, &bytes[..0], true),
            }),
        }
    }
}
