//! What came of a request's body and waits to be read, with the window that its client was told of (RFC 9113 §6.9).
//!
//! The window follows the reader: it is given back as octets are read, and grows for a reader that keeps up. A body that nobody reads is
//! held up to the window that the client was told of, and not beyond. Before: `stream`.

use millstream_wire::h2::settings::DEFAULT_WINDOW;

/// A window doubles up to this when as much as it holds was read and nothing waits, so that a distant client
/// can send fast.
const LARGEST_WINDOW: u32 = 256 * 1024;

/// RFC 9113 §5.1, §6.9, §8.1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadBody {
    Ended,
    Flow,
    Length,
}

#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    read: usize,
    window: u32,
    size: u32,
    /// Octets to give back to the client.
    owed: u32,
    /// Octets read since the window grew.
    kept_up: u32,
    announced: Option<u64>,
    ended: bool,
    spoiled: bool,
}

impl Incoming {
    /// `window` octets may come before they are read; `ended`: there is no body.
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

    pub(super) fn announce(&mut self, length: u64) {
        self.announced = Some(length);
    }

    /// `octets` includes padding.
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

    pub(super) fn end(&mut self) -> Result<(), BadBody> {
        if self.ended {
            return Err(self.behind_end());
        }
        self.ended = true;
        if self.announced.is_some_and(|left| left > 0) { self.spoil() } else { Ok(()) }
    }

    /// Its length is wrong, or it has no proper end. Always an error.
    pub(super) fn spoil(&mut self) -> Result<(), BadBody> {
        (self.spoiled, self.ended) = (true, true);
        Err(BadBody::Length)
    }

    /// The error for data after the end: after a malformed body it may have been sent before its client knew.
    fn behind_end(&self) -> BadBody {
        if self.spoiled { BadBody::Length } else { BadBody::Ended }
    }

    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    pub(super) fn read_into(&mut self, buffer: &mut Vec<u8>, at_most: usize) -> usize {
        let unread = &self.bytes[self.read..];
        let count = unread.len().min(at_most);
        buffer.extend_from_slice(&unread[..count]);
        self.taken(count);
        count
    }

    fn taken(&mut self, count: usize) {
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
    }

    /// The reader waits: the window is at least HTTP/2's initial one, whatever the limit before that.
    pub(super) fn want(&mut self) {
        let more = DEFAULT_WINDOW.saturating_sub(self.size);
        self.size += more;
        self.owed += more;
    }

    /// What to give back to the client now, if that is worth a frame.
    pub(super) fn repaid(&mut self) -> Option<u32> {
        if self.ended || self.owed < (self.size / 2).max(1) {
            return None;
        }
        let owed = std::mem::take(&mut self.owed);
        self.window += owed;
        Some(owed)
    }

    pub(super) fn unread(&self) -> usize {
        self.bytes.len() - self.read
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Drops what waits as if it had been read; returns how much that was.
    pub(super) fn skip(&mut self) -> usize {
        let count = self.unread();
        self.taken(count);
        count
    }

    pub(super) fn forget(&mut self) -> usize {
        let unread = self.unread();
        (self.bytes, self.read) = (Vec::new(), 0);
        unread
    }
}
