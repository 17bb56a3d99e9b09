//! The streams that ended last: what still comes on them was sent before their client knew (RFC 9113 §5.1, "closed").
//!
//! Only so many are remembered; a frame for an older one is as one for a stream that never was. Before: `frames`.

/// Streams that are remembered.
const KEPT: usize = 32;

/// The streams that ended last.
#[derive(Debug, Default)]
pub(super) struct Ended {
    streams: Vec<(u32, bool)>,
    next: usize,
}

/// What is known of a stream that is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing.
    Unknown,
    /// Both sides had said all.
    Closed,
    /// We gave it up: its client may not know yet.
    GivenUp,
}

impl Ended {
    /// A stream has ended; `given_up`: by us, before its client had said all.
    pub(super) fn add(&mut self, stream: u32, given_up: bool) {
        if self.streams.len() < KEPT {
            self.streams.push((stream, given_up));
            return;
        }
        self.streams[self.next] = (stream, given_up);
        self.next = (self.next + 1) % KEPT;
    }

    /// What is known of a stream.
    pub(super) fn past(&self, stream: u32) -> Past {
        match self.streams.iter().find(|(id, _)| *id == stream) {
            None => Past::Unknown,
            Some((_, false)) => Past::Closed,
            Some((_, true)) => Past::GivenUp,
        }
    }
}
