//! Whose turn it is to write, while there is not room for all (RFC 9218 §10).
//!
//! The more urgent come first. Of one urgency those that are of use only as a whole come one after the other, in the order of their
//! requests, and those that are of use piece by piece share what is left. Next: `carrier`, which has the room.

use millstream_wire::h2::priority::Priority;
use std::task::Waker;

/// Waiting streams, the next one last.
#[derive(Debug, Default)]
pub(super) struct Turns {
    waiting: Vec<Turn>,
    /// Numbers sharing streams, so that each waits behind the others again.
    joined: u64,
    /// Whose turn it is, until it writes.
    granted: Option<u32>,
}

#[derive(Debug)]
struct Turn {
    /// Urgency, whether it shares, and its number among equals.
    order: (u8, bool, u64),
    stream: u32,
    waker: Waker,
}

impl Turns {
    pub(super) fn may_write(&self, stream: u32) -> bool {
        self.granted == Some(stream) || self.granted.is_none() && self.waiting.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn join(&mut self, stream: u32, priority: Priority, waker: &Waker) {
        if let Some(turn) = self.waiting.iter_mut().find(|turn| turn.stream == stream) {
            turn.waker.clone_from(waker);
            return;
        }
        self.joined += 1;
        let number = if priority.incremental { self.joined } else { u64::from(stream) };
        let order = (priority.urgency, priority.incremental, number);
        let at = self.waiting.partition_point(|turn| turn.order > order);
        self.waiting.insert(at, Turn { order, stream, waker: waker.clone() });
    }

    pub(super) fn done(&mut self, stream: u32) {
        if self.granted == Some(stream) {
            self.granted = None;
        }
    }

    pub(super) fn leave(&mut self, stream: u32) {
        self.done(stream);
        self.waiting.retain(|turn| turn.stream != stream);
    }

    pub(super) fn reprioritise(&mut self, stream: u32, priority: Priority) {
        if let Some(at) = self.waiting.iter().position(|turn| turn.stream == stream) {
            let turn = self.waiting.remove(at);
            self.join(stream, priority, &turn.waker);
        }
    }

    /// False if none waits.
    pub(super) fn grant(&mut self) -> bool {
        let Some(turn) = self.waiting.pop() else {
            self.granted = None;
            return false;
        };
        self.granted = Some(turn.stream);
        turn.waker.wake();
        true
    }
}
