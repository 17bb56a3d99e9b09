//! The streams that ended last: what still comes on them was sent before their client knew (RFC 9113 §5.1, "closed").
//!
//! Only so many are remembered; a frame for an older one is as one for a stream that never was. Before: `frames`.

/// Remembered streams that ended on both sides.
const KEPT: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Ended {
    closed: Option<Box<Ring>>,
    given_up: Option<Box<Ring>>,
}

#[derive(Debug, Default)]
struct Ring {
    streams: Vec<u32>,
    next: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    Unknown,
    Closed,
    /// We reset it; its client may not know yet.
    GivenUp,
}

impl Ended {
    pub(super) fn close(&mut self, stream: u32) {
        self.closed.get_or_insert_default().add(stream, KEPT);
    }

    /// `most`: streams that the client may have open, each of which may have more on its way.
    pub(super) fn give_up(&mut self, stream: u32, most: u32) {
        self.given_up.get_or_insert_default().add(stream, most.max(1) as usize);
    }

    pub(super) fn past(&self, stream: u32) -> Past {
        let is_in =
            |ring: &Option<Box<Ring>>| ring.as_ref().is_some_and(|ring| ring.streams.contains(&stream));
        if is_in(&self.given_up) {
            Past::GivenUp
        } else if is_in(&self.closed) {
            Past::Closed
        } else {
            Past::Unknown
        }
    }
}

impl Ring {
    fn add(&mut self, stream: u32, most: usize) {
        if self.streams.len() < most {
            self.streams.push(stream);
            return;
        }
        self.streams[self.next] = stream;
        self.next = (self.next + 1) % most;
    }
}
