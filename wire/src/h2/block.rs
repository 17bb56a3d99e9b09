//! Header blocks in several frames (RFC 9113 §4.3, §6.10), for who reads a server's: what may come between them, and when
//! there are too many.
//!
//! What a block says is for `response` and `field_rules`.

use super::error_code::ErrorCode;
use super::frame::Frame;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'a> {
    pub stream: u32,
    /// To be decoded by `hpack`.
    pub octets: Cow<'a, [u8]>,
    pub end: bool,
}

/// A connection error with this code; the text follows "the server sent ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadBlock(pub ErrorCode, pub &'static str);

/// Assembles frames of header blocks; holds an incomplete one.
#[derive(Debug, Default)]
pub struct Blocks(Option<Block<'static>>);

impl Blocks {
    /// Takes any frame, and returns the block that it completes, if any. A block is bounded by `most` octets.
    #[inline]
    pub fn take<'a>(&mut self, frame: &Frame<'a>, most: usize) -> Result<Option<Block<'a>>, BadBlock> {
        match *frame {
            Frame::Continuation { stream, fragment, end_headers } => {
                self.go_on(stream, fragment, end_headers, most)
            }
            _ if self.0.is_some() => Err(self.interrupted()),
            Frame::Headers { stream, fragment, end_headers: true, end, .. } => {
                Ok(Some(Block { stream, octets: Cow::Borrowed(fragment), end }))
            }
            Frame::Headers { stream, fragment, end, .. } => {
                self.0 = Some(Block { stream, octets: Cow::Owned(fragment.to_vec()), end });
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Whether only CONTINUATION of its stream may come.
    pub fn has_begun(&self) -> bool {
        self.0.is_some()
    }

    /// The error for any other frame.
    pub fn interrupted(&self) -> BadBlock {
        BadBlock(ErrorCode::ProtocolError, "a frame in the middle of a header block")
    }

    fn go_on(
        &mut self,
        stream: u32,
        fragment: &[u8],
        is_whole: bool,
        most: usize,
    ) -> Result<Option<Block<'static>>, BadBlock> {
        let Some(mut block) = self.0.take() else {
            return Err(BadBlock(ErrorCode::ProtocolError, "a CONTINUATION frame without a header block"));
        };
        if block.stream != stream {
            return Err(self.interrupted());
        }
        block.octets.to_mut().extend_from_slice(fragment);
        if is_whole {
            return Ok(Some(block));
        }
        if block.octets.len() > most || fragment.is_empty() {
            return Err(BadBlock(ErrorCode::EnhanceYourCalm, "an endless header block"));
        }
        self.0 = Some(block);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fragment: &[u8], end_headers: bool) -> Frame<'_> {
        Frame::Headers { stream: 1, fragment, end_headers, end: true, depends_on_itself: false }
    }

    fn more(stream: u32, fragment: &[u8], end_headers: bool) -> Frame<'_> {
        Frame::Continuation { stream, fragment, end_headers }
    }

    #[test]
    fn a_block_in_parts_is_whole_with_its_last_frame() {
        let mut blocks = Blocks::default();
        let whole =
            |octets: &'static [u8]| Ok(Some(Block { stream: 1, octets: Cow::Borrowed(octets), end: true }));
        assert_eq!(blocks.take(&head(b"abc", true), 4), whole(b"abc"));
        assert_eq!(blocks.take(&head(b"ab", false), 4), Ok(None));
        assert_eq!(blocks.take(&more(1, b"cd", false), 4), Ok(None));
        assert_eq!(blocks.take(&more(1, b"ef", true), 4), whole(b"abcdef"));
        assert_eq!(blocks.take(&Frame::Ping { ack: true, payload: [0; 8] }, 4), Ok(None));
    }

    #[test]
    fn what_does_not_belong_to_it_and_what_has_no_end_ends_the_connection() {
        for (frame, words) in [
            (head(b"x", true), "middle of"),
            (Frame::Unknown { kind: 99 }, "middle of"),
            (more(3, b"x", true), "middle of"),
            (more(1, b"", false), "endless"),
            (more(1, b"abcd", false), "endless"),
        ] {
            let mut blocks = Blocks::default();
            assert_eq!(blocks.take(&head(b"a", false), 4), Ok(None));
            assert!(blocks.has_begun());
            assert!(blocks.take(&frame, 4).is_err_and(|bad| bad.1.contains(words)), "{frame:?}");
        }
        let alone = Blocks::default().take(&more(1, b"x", true), 4);
        assert!(alone.is_err_and(|bad| bad.1.contains("without a header block")));
    }
}
