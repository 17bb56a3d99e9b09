//! One stream: a request's body in, an answer out (RFC 9113 §5.1).
//!
//! Both sides hold it: the connection, which tells it what came, and the client's side of the request, which reads and writes. Only one
//! task waits on it. Before: `client/end`; next: `carrier`, into which it frames.

use super::carrier::{Carrier, Writer};
use super::incoming::{BadBody, Incoming};
use crate::outlet::Inlet;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::window::{BadWindow, Window};
use millstream_wire::h2::write;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

#[derive(Debug)]
pub struct Http2Stream {
    id: u32,
    carrier: Rc<Carrier>,
    state: RefCell<Http2StreamState>,
}

#[derive(Debug)]
struct Http2StreamState {
    window: Window,
    incoming: Incoming,
    priority: Priority,
    /// Most octets of one frame of the response.
    chunk: u32,
    has_answered: bool,
    /// Whether the client reset the stream, or is gone.
    is_left: bool,
    is_given_up: bool,
    refuses_rest: bool,
    /// The connection's progress when this stream last waited.
    seen: u64,
    task: Option<Waker>,
}

#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    /// Octets of its body that may come before it is read.
    pub preread: u32,
    pub announced: Option<u64>,
    pub has_ended: bool,
    pub priority: Priority,
}

impl Http2Stream {
    pub fn new(id: u32, carrier: Rc<Carrier>, beginning: Beginning) -> Rc<Http2Stream> {
        let window = Window::new(carrier.peer().initial_window_size);
        let Beginning { preread, announced, has_ended, priority } = beginning;
        let state = Http2StreamState {
            window,
            incoming: Incoming::new(preread, announced, has_ended),
            priority,
            chunk: u32::MAX,
            has_answered: false,
            is_left: false,
            is_given_up: false,
            refuses_rest: false,
            seen: 0,
            task: None,
        };
        Rc::new(Http2Stream { id, carrier, state: RefCell::new(state) })
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// `is_last`: there is no body. Later frames have at most `chunk` octets.
    pub fn head(&self, block: &[u8], is_last: bool, chunk: u32) {
        let mut state = self.state.borrow_mut();
        if state.is_over() {
            return;
        }
        state.has_answered |= is_last;
        state.chunk = chunk;
        self.carrier.head(self.id, block, is_last);
    }

    /// Unless it is framed already.
    pub fn end(&self, trailers: Option<&[u8]>) {
        let mut state = self.state.borrow_mut();
        if state.is_over() {
            return;
        }
        state.has_answered = true;
        match trailers {
            Some(block) => self.carrier.head(self.id, block, true),
            None => self.carrier.frame(|out| write::data_head(out, self.id, 0, true)),
        }
    }

    /// Unless the client has reset it.
    pub fn reset(&self, code: ErrorCode) {
        let mut state = self.state.borrow_mut();
        if !state.is_left && !std::mem::replace(&mut state.is_given_up, true) {
            state.wake();
            self.carrier.frame(|out| write::reset(out, self.id, code));
        }
    }

    pub fn has_all(&self) -> bool {
        self.state.borrow().incoming.has_ended()
    }

    pub fn is_read(&self) -> bool {
        let state = self.state.borrow();
        state.incoming.has_ended() && state.incoming.unread() == 0 && !state.incoming.is_spoiled()
    }

    /// For more of its body, all of which was read, or for a window.
    pub fn waits_for_client(&self) -> bool {
        let state = self.state.borrow();
        let waits_for_body = !state.incoming.has_ended() && state.incoming.unread() == 0;
        !state.is_over() && (waits_for_body || state.window.available() == 0 || self.carrier.is_spent())
    }

    /// It was reset, or both sides have ended (RFC 9113 §5.1).
    pub fn is_done_with(&self) -> bool {
        let state = self.state.borrow();
        state.is_left || state.has_answered && state.incoming.has_ended()
    }

    pub fn is_left(&self) -> bool {
        self.state.borrow().is_left
    }

    pub fn is_given_up(&self) -> bool {
        self.state.borrow().is_given_up
    }

    pub fn poll_left(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.is_lost() {
            return Poll::Ready(());
        }
        state.waits(context);
        Poll::Pending
    }

    /// 0 is the end of the body.
    pub fn poll_read_into(
        &self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        at_most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state.borrow_mut();
        if state.incoming.is_spoiled() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        if state.incoming.unread() == 0 {
            if state.incoming.has_ended() {
                return Poll::Ready(Ok(0));
            }
            if state.is_lost() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            state.incoming.want();
            self.repay(&mut state);
            state.waits(context);
            return Poll::Pending;
        }
        let count = state.incoming.read_into(buffer, at_most);
        self.carrier.released(count);
        self.repay(&mut state);
        Poll::Ready(Ok(count))
    }

    /// Discards what has come of the body, with windows open: some clients read no response before they have
    /// sent all. Returns how much that was; 0 once all of it has come, the rest was refused, or the stream is
    /// over.
    pub fn poll_skip(&self, context: &mut Context<'_>) -> Poll<usize> {
        let mut state = self.state.borrow_mut();
        let count = state.incoming.skip();
        self.carrier.released(count);
        if state.is_lost() || state.incoming.has_ended() || state.refuses_rest {
            return Poll::Ready(0);
        }
        state.incoming.want();
        self.repay(&mut state);
        state.waits(context);
        if count > 0 { Poll::Ready(count) } else { Poll::Pending }
    }

    /// The rest of the body was waited for in vain, or is too much: no one waits for it any more.
    pub fn refuse_rest(&self) {
        self.state.borrow_mut().refuses_rest = true;
    }

    /// Discards the body; ready as the end of [`Http2Stream::poll_skip`].
    pub fn poll_all(&self, context: &mut Context<'_>) -> Poll<()> {
        while ready!(self.poll_skip(context)) > 0 {}
        Poll::Ready(())
    }

    /// If that is worth a frame and the client still listens.
    fn repay(&self, state: &mut Http2StreamState) {
        if let Some(octets) = state.incoming.repaid().filter(|_| !state.is_lost()) {
            self.carrier.frame(|out| write::window_update(out, self.id, octets));
        }
    }

    /// Whether either side reset it: what still arrives was sent before that was known, and is ignored (RFC
    /// 9113 §5.1).
    pub fn is_lost(&self) -> bool {
        self.state.borrow().is_lost()
    }

    /// `octets` includes padding. A refusal ends the stream; data on a lost one counts for the connection
    /// only. Fails if the connection's window is exceeded.
    pub fn receive(
        &self,
        piece: &[u8],
        octets: u32,
        is_last: bool,
    ) -> Result<Result<(), BadBody>, BadWindow> {
        let mut state = self.state.borrow_mut();
        if state.is_lost() {
            return self.carrier.received(octets, 0).map(Ok);
        }
        let before = state.incoming.unread();
        let outcome = state.incoming.receive(piece, octets, is_last);
        self.carrier.received(octets, state.incoming.unread() - before)?;
        // Padding alone leaves nothing to read, by which its window would be given back.
        if state.incoming.unread() == 0 {
            self.repay(&mut state);
        }
        state.wake();
        Ok(outcome)
    }

    /// RFC 9110 §8.6.
    pub fn announce(&self, length: u64) {
        self.state.borrow_mut().incoming.announce(length);
    }

    /// A trailer section, whose fields are unused (RFC 9110 §6.5); unsound if it does not end the stream.
    pub fn receive_end(&self, is_sound: bool) -> Result<(), BadBody> {
        let mut state = self.state.borrow_mut();
        if state.is_lost() {
            return Ok(());
        }
        state.wake();
        if is_sound { state.incoming.end() } else { state.incoming.spoil() }
    }

    /// RFC 9113 §8.1.1.
    pub fn is_spoiled(&self) -> bool {
        self.state.borrow().incoming.is_spoiled()
    }

    /// Fails if the window would exceed the maximum (RFC 9113 §6.9.1).
    pub fn widen(&self, by: u32) -> Result<(), BadWindow> {
        let mut state = self.state.borrow_mut();
        state.wake();
        state.window.increase(by)
    }

    /// The client's initial window has changed by this much (RFC 9113 §6.9.2).
    pub fn shift(&self, by: i64) -> Result<(), BadWindow> {
        let mut state = self.state.borrow_mut();
        state.wake();
        state.window.shift(by)
    }

    /// RFC 9218 §7.
    pub fn reprioritise(&self, priority: Priority) {
        self.state.borrow_mut().priority = priority;
        self.carrier.reprioritise(self.id, priority);
    }

    pub fn leave(&self) {
        let mut state = self.state.borrow_mut();
        state.is_left = true;
        state.wake();
    }

    /// Registers for [`Http2Stream::wake`].
    pub fn waits(&self, context: &Context<'_>) {
        self.state.borrow_mut().waits(context);
    }

    pub fn wake(&self) {
        self.state.borrow_mut().wake();
    }

    /// Octets that may still be sent within the window.
    pub fn unsaid(&self) -> u32 {
        let state = self.state.borrow();
        if state.has_answered || state.is_over() { 0 } else { state.window.available() }
    }

    pub fn has_said_all(&self) -> bool {
        self.state.borrow().has_answered
    }

    pub fn close(&self) {
        let unread = self.state.borrow_mut().incoming.forget();
        self.carrier.leave(self.id, unread);
    }
}

impl Inlet for Http2Stream {
    fn poll_write(&self, context: &mut Context<'_>, parts: &[IoSlice<'_>], is_last: bool) -> Poll<usize> {
        let mut state = self.state.borrow_mut();
        if state.is_over() {
            return Poll::Ready(0);
        }
        let Some(turn) = state.turn(self.id, context) else { return Poll::Pending };
        let count = self.carrier.data(&turn, parts, is_last, context.waker());
        if count == 0 {
            return Poll::Pending;
        }
        // No more is framed than the window has.
        _ = state.window.consume(count as u32);
        let all: usize = parts.iter().map(|part| part.len()).sum();
        state.has_answered = is_last && count == all;
        Poll::Ready(count)
    }

    /// The turn is kept until something is written.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.is_over() {
            return Poll::Ready(());
        }
        let Some(turn) = state.turn(self.id, context) else { return Poll::Pending };
        if self.carrier.room(&turn, context.waker()) > 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    fn end(&self) {
        Http2Stream::end(self, None);
    }

    /// For a window, for the socket, or for its turn, which comes when others were taken.
    fn waits_for_peer(&self) -> bool {
        true
    }

    /// Progress of others, or of the socket, brings its turn nearer, unless its own window is closed.
    fn has_moved(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let moved = self.carrier.moved();
        let has_moved = std::mem::replace(&mut state.seen, moved) != moved;
        has_moved && state.window.available() > 0
    }
}

impl Http2StreamState {
    fn is_lost(&self) -> bool {
        self.is_left || self.is_given_up
    }

    fn is_over(&self) -> bool {
        self.is_lost() || self.has_answered
    }

    /// `None` if its window is closed; the writer is woken once it opens.
    fn turn(&mut self, stream: u32, context: &Context<'_>) -> Option<Writer> {
        self.waits(context);
        let most = self.window.available() as usize;
        (most > 0).then_some(Writer { stream, priority: self.priority, most, chunk: self.chunk })
    }

    fn waits(&mut self, context: &Context<'_>) {
        match &mut self.task {
            Some(known) if known.will_wake(context.waker()) => {}
            task => *task = Some(context.waker().clone()),
        }
    }

    fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}
