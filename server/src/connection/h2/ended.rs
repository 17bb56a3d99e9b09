//! The streams that ended last: what still comes on them was sent before their client knew (RFC 9113 §5.1, "closed").
//!
//! Only so many are remembered; a frame for an older one is as one for a stream that never was. Before: `frames`.

/// Streams that are remembered.
const KEPT: usize = 32;

/// The streams that ended last.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Twice the number of each, and one where we gave it up: numbers have 31 bits.
    streams: Vec<u32>,
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
        let coded = stream << 1 | u32::from(given_up);
        if self.streams.len() < KEPT {
            self.streams.push(coded);
            return;
        }
        self.streams[self.next] = coded;
        self.next = (self.next + 1) % KEPT;
    }

    /// What is known of a stream.
    pub(super) fn past(&self, stream: u32) -> Past {
        match self.streams.iter().find(|coded| **coded >> 1 == stream) {
            None => Past::Unknown,
            Some(coded) if coded & 1 == 0 => Past::Closed,
            Some(_) => Past::GivenUp,
        }
    }
}
