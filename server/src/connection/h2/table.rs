//! The streams of a connection: those that are open, the ones that ended last, and what was said of some that have yet to come
//! (RFC 9113 §5.1).
//!
//! It decides whether a frame may be about a stream, and how many there may be: `frames` asks.

use super::Fate;
use millstream_net::streams::{Beginning, Carrier, Http2Stream};
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::settings::{self, DEFAULT_WINDOW};
use millstream_wire::h2::window::BadWindow;
use std::rc::Rc;

pub(super) struct StreamTable {
    /// By number.
    open: Vec<Rc<Http2Stream>>,
    last: u32,
    ended: Ended,
    early: EarlyPriorities,
    granted: Granted,
}

/// What our SETTINGS allow.
struct Granted {
    streams: u32,
    window: u32,
    is_known: bool,
}

impl StreamTable {
    /// `window`: bytes of a body before anyone reads it.
    pub(super) fn new(streams: u32, window: u32) -> StreamTable {
        let granted = Granted { streams, window, is_known: false };
        StreamTable {
            open: Vec::new(),
            last: 0,
            ended: Ended::default(),
            early: EarlyPriorities::default(),
            granted,
        }
    }

    /// What the client is told of it.
    pub(super) fn settings(&self) -> [(u16, u32); 2] {
        [
            (settings::MAX_CONCURRENT_STREAMS, self.granted.streams),
            (settings::INITIAL_WINDOW_SIZE, self.granted.window),
        ]
    }

    pub(super) fn settings_are_known(&mut self) {
        self.granted.is_known = true;
    }

    /// The highest number of a request so far, 0 before the first.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Rc<Http2Stream>> {
        Some(&self.open[self.find(id)?])
    }

    fn find(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id()).ok()
    }

    /// A request comes on this stream. Returns the priority that came ahead of it.
    pub(super) fn begin(&mut self, id: u32) -> Option<Priority> {
        self.last = id;
        self.early.take(id)
    }

    /// `announced`: the length of its body, if it is known.
    pub(super) fn open(
        &mut self,
        id: u32,
        carrier: Rc<Carrier>,
        announced: Option<u64>,
        has_ended: bool,
        priority: Priority,
    ) -> Rc<Http2Stream> {
        // What the client does not know yet does not bind it.
        let preread = match self.granted.is_known {
            true => self.granted.window,
            false => self.granted.window.max(DEFAULT_WINDOW),
        };
        let stream = Http2Stream::new(id, carrier, Beginning { preread, announced, has_ended, priority });
        self.open.push(stream.clone());
        stream
    }

    /// False if it was not open any more.
    pub(super) fn remove(&mut self, stream: &Http2Stream) -> bool {
        let at = self.find(stream.id());
        if let Some(at) = at {
            self.open.remove(at);
        }
        if stream.is_given_up() {
            self.give_up(stream.id());
        } else {
            self.close(stream.id());
        }
        at.is_some()
    }

    /// Remembers one that ended on both sides.
    pub(super) fn close(&mut self, id: u32) {
        self.ended.close(id);
    }

    /// Remembers one that was reset.
    pub(super) fn give_up(&mut self, id: u32) {
        self.ended.give_up(id, self.granted.streams);
    }

    pub(super) fn is_given_up(&self, id: u32) -> bool {
        self.ended.past(id) == Past::GivenUp
    }

    /// Whether no more streams may be opened. Streams the client has ended do not count (RFC 9113 §5.1.2),
    /// even if cleanup remains; there are never more of those than of the others. Those we reset count until
    /// then.
    pub(super) fn is_full(&self) -> bool {
        let most = self.granted.streams as usize;
        self.open.len() >= most
            && (self.open.len() >= 2 * most
                || self.open.iter().filter(|stream| !stream.is_done_with()).count() >= most)
    }

    pub(super) fn check_opening(&self, id: u32) -> Result<(), Fate> {
        if id.is_multiple_of(2) {
            return Err(Fate::Broken(ErrorCode::ProtocolError, "a request on a server-initiated stream"));
        }
        if id > self.last {
            return Ok(());
        }
        match self.get(id) {
            Some(open) if open.has_all() && !open.is_spoiled() || open.is_left() => {
                Err(Fate::Broken(ErrorCode::StreamClosed, "a HEADERS frame on a half-closed stream"))
            }
            Some(_) => Ok(()),
            None => match self.ended.past(id) {
                Past::GivenUp => Ok(()),
                Past::Closed => {
                    Err(Fate::Broken(ErrorCode::StreamClosed, "a HEADERS frame on a closed stream"))
                }
                Past::Unknown => {
                    Err(Fate::Broken(ErrorCode::ProtocolError, "a stream with a lower number than the last"))
                }
            },
        }
    }

    /// An error for a stream that was never opened (RFC 9113 §5.1, "idle").
    pub(super) fn check_is_no_idle(&self, id: u32) -> Result<(), Fate> {
        match id > self.last || id.is_multiple_of(2) {
            true => Err(Fate::Broken(ErrorCode::ProtocolError, "a frame on a stream that is not open")),
            false => Ok(()),
        }
    }

    /// Also for a stream that is not open yet (RFC 9218 §7.1).
    pub(super) fn prioritise(&mut self, id: u32, priority: Priority) -> Result<(), Fate> {
        if id.is_multiple_of(2) {
            return Err(Fate::Broken(ErrorCode::ProtocolError, "a priority for a server-initiated stream"));
        }
        if let Some(open) = self.get(id) {
            open.reprioritise(priority);
        } else if id > self.last {
            self.early.add(id, priority, self.granted.streams as usize);
        }
        Ok(())
    }

    /// The client changed the first window of its streams.
    pub(super) fn shift(&self, by: i64) -> Result<(), BadWindow> {
        self.open.iter().try_for_each(|stream| stream.shift(by))
    }

    /// Whether each waits for its client.
    pub(super) fn all_wait_for_client(&self) -> bool {
        self.open.iter().all(|stream| stream.waits_for_client())
    }

    /// They have no client any more.
    pub(super) fn leave(&self) {
        self.open.iter().for_each(|stream| stream.leave());
    }
}

/// Remembered streams that ended on both sides.
const KEPT: usize = 32;

/// The streams that ended last: what still comes on them was sent before their client knew (RFC 9113 §5.1, "closed"). A frame for an
/// older one is as one for a stream that never was.
#[derive(Debug, Default)]
struct Ended {
    closed: Option<Box<Ring>>,
    given_up: Option<Box<Ring>>,
}

#[derive(Debug, Default)]
struct Ring {
    streams: Vec<u32>,
    next: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    Unknown,
    Closed,
    /// We reset it; its client may not know yet.
    GivenUp,
}

impl Ended {
    fn close(&mut self, stream: u32) {
        self.closed.get_or_insert_default().add(stream, KEPT);
    }

    /// `most`: streams that the client may have open, each of which may have more on its way.
    fn give_up(&mut self, stream: u32, most: u32) {
        self.given_up.get_or_insert_default().add(stream, most.max(1) as usize);
    }

    fn past(&self, stream: u32) -> Past {
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

/// Priorities of requests that have yet to come: a PRIORITY_UPDATE frame may be ahead of its request (RFC 9218 §7.1).
#[derive(Debug, Default)]
struct EarlyPriorities {
    said: Vec<(u32, Priority)>,
}

impl EarlyPriorities {
    /// Keeps the latest of each stream, for at most `most` streams.
    fn add(&mut self, stream: u32, priority: Priority, most: usize) {
        if let Some((_, said)) = self.said.iter_mut().find(|(known, _)| *known == stream) {
            *said = priority;
        } else if self.said.len() < most {
            self.said.push((stream, priority));
        }
    }

    /// Also drops lower streams, which will never open (RFC 9113 §5.1.1).
    fn take(&mut self, stream: u32) -> Option<Priority> {
        let said = self.said.iter().find(|(known, _)| *known == stream).map(|(_, priority)| *priority);
        self.said.retain(|(known, _)| *known > stream);
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_no_more_than_a_bound_is_kept() {
        let of = |urgency| Priority { urgency, incremental: false };
        let mut early = EarlyPriorities::default();
        for (stream, urgency) in [(5, 1), (3, 2), (5, 6), (9, 0)] {
            early.add(stream, of(urgency), 2);
        }
        assert_eq!(
            [1, 3, 3, 5, 9].map(|stream| early.take(stream)),
            [None, Some(of(2)), None, Some(of(6)), None]
        );
        early.add(3, of(2), 2);
        early.add(5, of(2), 2);
        assert_eq!(early.take(7), None);
        assert!(early.said.is_empty());
    }
}
