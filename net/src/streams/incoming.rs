//! What came of a request's body and waits to be read, with the window that its client was told of (RFC 9113 §6.9).
//!
//! The window follows the reader: it is given back as octets are read, and grows for a reader that keeps up. A body that nobody reads is
//! held up to the window that the client was told of, and not beyond. Before: `stream`.

use millstream_wire::h2::settings::DEFAULT_WINDOW;

/// A window doubles up to this when as much as it holds was read and nothing waits, so that a distant client can send fast.
const LARGEST_WINDOW: u32 = 256 * 1024;

/// Why what came of a body is refused (RFC 9113 §5.1, §6.9, §8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadBody {
    /// It has ended already.
    Ended,
    /// More came than the window has.
    Flow,
    /// It is not as long as its Content-Length says.
    Length,
}

/// A body on its way in.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// Octets of `bytes` that were read.
    read: usize,
    /// What the client may still send.
    window: u32,
    /// The whole window as it is now.
    size: u32,
    /// Octets to be given back to the client.
    owed: u32,
    /// Octets that were read since the window grew.
    kept_up: u32,
    /// What is still to come, where that was said.
    announced: Option<u64>,
    ended: bool,
    spoiled: bool,
}

impl Incoming {
    /// A body that may come up to `window` before anybody reads it; `ended`: there is none.
    pub(super) fn new(window: u32, announced: Option<u64>, ended: bool) -> Incoming {
        let bytes = Vec::new();
        Incoming {
            bytes,
            read: 0,
            window,
            size: window,
            owed: 0,
            kept_up: 0,
            announced,
            ended,
            spoiled: false,
        }
    }

    /// So much is to come; nothing has yet.
    pub(super) fn announce(&mut self, length: u64) {
        self.announced = Some(length);
    }

    /// Takes a piece, which counts `octets` with its padding.
    pub(super) fn receive(&mut self, piece: &[u8], octets: u32, is_last: bool) -> Result<(), BadBody> {
        if self.spoiled {
            // Its request is being told so, whatever else comes.
            return Ok(());
        }
        if self.ended {
            return Err(self.behind_end());
        }
        self.window = self.window.checked_sub(octets).ok_or(BadBody::Flow)?;
        // Padding is read by nobody.
        self.owed += octets - piece.len() as u32;
        match self.announced.map(|left| left.checked_sub(piece.len() as u64)) {
            None => {}
            Some(Some(left)) => self.announced = Some(left),
            Some(None) => return self.spoil(),
        }
        self.bytes.extend_from_slice(piece);
        if is_last { self.end() } else { Ok(()) }
    }

    /// The body has ended.
    pub(super) fn end(&mut self) -> Result<(), BadBody> {
        if self.ended {
            return Err(self.behind_end());
        }
        self.ended = true;
        if self.announced.is_some_and(|left| left > 0) { self.spoil() } else { Ok(()) }
    }

    /// The body is not as long as it was said to be, or has no proper end. Always an error.
    pub(super) fn spoil(&mut self) -> Result<(), BadBody> {
        (self.spoiled, self.ended) = (true, true);
        Err(BadBody::Length)
    }

    /// What something behind the end is: what follows a body that is wrong already was sent before its client was told.
    fn behind_end(&self) -> BadBody {
        if self.spoiled { BadBody::Length } else { BadBody::Ended }
    }

    /// Whether it is not as it was said to be.
    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    /// Moves up to `at_most` octets into a buffer.
    pub(super) fn read_into(&mut self, buffer: &mut Vec<u8>, at_most: usize) -> usize {
        let unread = &self.bytes[self.read..];
        let count = unread.len().min(at_most);
        buffer.extend_from_slice(&unread[..count]);
        self.read += count;
        self.owed += count as u32;
        self.kept_up += count as u32;
        if self.read == self.bytes.len() {
            // A stream that waits holds nothing.
            (self.bytes, self.read) = (Vec::new(), 0);
            if self.kept_up >= self.size && self.size < LARGEST_WINDOW {
                self.owed += self.size;
                self.size *= 2;
                self.kept_up = 0;
            }
        }
        count
    }

    /// Somebody waits for more of it, and is given HTTP/2's own first window at the least, however little may come before that.
    pub(super) fn want(&mut self) {
        let more = DEFAULT_WINDOW.saturating_sub(self.size);
        self.size += more;
        self.owed += more;
    }

    /// What the client is to be given back now, where that is worth a frame.
    pub(super) fn repaid(&mut self) -> Option<u32> {
        if self.ended || self.owed < (self.size / 2).max(1) {
            return None;
        }
        let owed = std::mem::take(&mut self.owed);
        self.window += owed;
        Some(owed)
    }

    /// Octets that wait.
    pub(super) fn unread(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Whether nothing more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Drops what waits, as if somebody had read it, and says how much that was.
    pub(super) fn skip(&mut self) -> usize {
        let count = self.unread();
        self.owed += count as u32;
        (self.bytes, self.read) = (Vec::new(), 0);
        count
    }

    /// Nobody reads it any more.
    pub(super) fn forget(&mut self) -> usize {
        let unread = self.unread();
        (self.bytes, self.read) = (Vec::new(), 0);
        unread
    }
}
