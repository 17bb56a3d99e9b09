//! Bytes on their way from one task to another of the same thread, with a bound: the answer to a subrequest, from whoever gives it to
//! whoever asks.
//!
//! Who writes waits while it is full, who reads while it is empty; each hears when the other has gone. Before: `outlet`, which writes
//! into it.

use crate::outlet::Inlet;
use std::cell::RefCell;
use std::io::IoSlice;
use std::task::{Context, Poll, Waker};

/// Shared by both sides.
#[derive(Debug)]
pub struct Pipe {
    room: usize,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    ended: Option<End>,
    left: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    Cut,
}

impl Pipe {
    pub fn new(room: usize) -> Pipe {
        Pipe { room, state: RefCell::default() }
    }

    /// 0 if the reader has left.
    fn poll_write_bytes(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<usize> {
        let mut state = self.state.borrow_mut();
        if state.left {
            return Poll::Ready(0);
        }
        let count = bytes.len().min(self.room.saturating_sub(state.bytes.len()));
        if count == 0 {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.bytes.extend_from_slice(&bytes[..count]);
        wake(&mut state.reader);
        Poll::Ready(count)
    }

    pub fn poll_left(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.left {
            return Poll::Ready(());
        }
        state.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Only the first call counts.
    pub fn end(&self, end: End) {
        let mut state = self.state.borrow_mut();
        state.ended.get_or_insert(end);
        wake(&mut state.reader);
    }

    /// What was written since the last read, or how it ended.
    pub fn poll_read(&self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, End>> {
        let mut state = self.state.borrow_mut();
        if !state.bytes.is_empty() {
            wake(&mut state.writer);
            return Poll::Ready(Ok(std::mem::take(&mut state.bytes)));
        }
        if let Some(end) = state.ended {
            return Poll::Ready(Err(end));
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.state.borrow_mut().bytes)
    }

    pub fn leave(&self) {
        let mut state = self.state.borrow_mut();
        state.left = true;
        state.bytes = Vec::new();
        wake(&mut state.writer);
    }
}

impl Inlet for Pipe {
    fn poll_write(&self, context: &mut Context<'_>, parts: &[IoSlice<'_>], _: bool) -> Poll<usize> {
        let part = parts.iter().find(|part| !part.is_empty());
        self.poll_write_bytes(context, part.map_or(&[], |part| part))
    }

    /// The reader has its own timeouts.
    fn waits_for_peer(&self) -> bool {
        false
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_holds_no_more_than_its_bound_and_tells_how_it_ended() {
        let mut context = Context::from_waker(Waker::noop());
        let pipe = Pipe::new(4);
        assert!(pipe.poll_read(&mut context).is_pending());
        assert_eq!(pipe.poll_write_bytes(&mut context, b"abcdef"), Poll::Ready(4));
        assert!(pipe.poll_write_bytes(&mut context, b"ef").is_pending());
        assert_eq!(pipe.poll_read(&mut context), Poll::Ready(Ok(b"abcd".to_vec())));
        assert_eq!(pipe.poll_write_bytes(&mut context, b"ef"), Poll::Ready(2));
        pipe.end(End::Whole);
        pipe.end(End::Cut);
        assert_eq!(pipe.poll_read(&mut context), Poll::Ready(Ok(b"ef".to_vec())));
        assert_eq!(pipe.poll_read(&mut context), Poll::Ready(Err(End::Whole)));
    }

    #[test]
    fn who_writes_hears_that_nobody_reads_any_more() {
        let mut context = Context::from_waker(Waker::noop());
        let pipe = Pipe::new(4);
        assert!(pipe.poll_left(&mut context).is_pending());
        pipe.leave();
        assert!(pipe.poll_left(&mut context).is_ready());
        assert_eq!(pipe.poll_write_bytes(&mut context, b"a"), Poll::Ready(0));
    }
}
