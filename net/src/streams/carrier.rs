//! What carries the streams of a connection: frames on their way out, the connection's windows, and whose turn it is.
//!
//! Its bounds are those of memory: streams wait once [`ROOM`] is framed, and a client waits once it has sent [`MOST_HELD`] that nobody has
//! read. It serves either side of a connection: where its comments say client, a server may stand. Before: `stream`, which frames through it; next: `turns`.

use super::turns::Turns;
use crate::buffers;
use millstream_wire::h2::frame::HEAD_LENGTH;
use millstream_wire::h2::hpack::encoder;
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::settings::{DEFAULT_WINDOW, PeerSettings};
use millstream_wire::h2::window::{BadWindow, Window};
use millstream_wire::h2::write;
use std::cell::RefCell;
use std::io::IoSlice;
use std::task::{Context, Poll, Waker};

/// Octets framed ahead of the socket before streams wait for their turn.
pub const ROOM: usize = 64 * 1024;
/// Octets that a stream frames in one turn while others that share wait.
const SHARE: usize = 16 * 1024;
/// Octets of unread bodies before the client's windows stay closed.
const MOST_HELD: usize = 2 * 1024 * 1024;
/// What the peer may send on a connection beyond what is held: two streams' first window.
pub const CONNECTION_WINDOW: u32 = 256 * 1024;

pub(super) struct Writer {
    pub(super) stream: u32,
    pub(super) priority: Priority,
    /// Its window, more than 0.
    pub(super) most: usize,
    /// Most octets of one frame.
    pub(super) chunk: u32,
}

#[derive(Debug)]
pub struct Carrier {
    state: RefCell<CarrierState>,
}

#[derive(Debug)]
struct CarrierState {
    frames: Vec<u8>,
    /// For sending on the connection.
    window: Window,
    /// For receiving on it.
    coming: Window,
    peer: PeerSettings,
    /// Whether the next header block announces that no table is used (RFC 7541 §4.2).
    owes_table_size: bool,
    turns: Turns,
    /// Octets of bodies that were framed, plus those that were written.
    moved: u64,
    /// Octets of framed bodies not yet written, assuming that what is written is theirs first.
    unwritten: usize,
    /// Pieces of bodies framed whole since the last call of `take_pieces`.
    pieces: u32,
    /// Octets of unread bodies.
    held: usize,
    most_held: usize,
    /// Octets consumed of the client's connection window, to be given back.
    owed: u32,
    /// The task that writes what is framed, if another frames.
    writer: Option<Waker>,
}

impl Carrier {
    /// `peer` is what the client is assumed to be until its SETTINGS.
    pub fn new(peer: PeerSettings) -> Carrier {
        Self::holding(peer, MOST_HELD)
    }

    /// To a server: its streams have independent readers, and a slow one stops no other, so only the windows
    /// of the streams bound what is held.
    pub fn to_server(peer: PeerSettings) -> Carrier {
        Self::holding(peer, usize::MAX)
    }

    fn holding(peer: PeerSettings, most_held: usize) -> Carrier {
        let state = CarrierState {
            frames: Vec::new(),
            window: Window::new(DEFAULT_WINDOW),
            coming: Window::new(CONNECTION_WINDOW),
            peer,
            owes_table_size: false,
            turns: Turns::default(),
            moved: 0,
            unwritten: 0,
            pieces: 0,
            held: 0,
            most_held,
            owed: 0,
            writer: None,
        };
        Carrier { state: RefCell::new(state) }
    }

    pub fn frame(&self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.state.borrow_mut().frames());
    }

    pub fn head(&self, stream: u32, block: &[u8], is_last: bool) {
        let state = &mut *self.state.borrow_mut();
        let most = state.peer.max_frame_size;
        if !std::mem::take(&mut state.owes_table_size) {
            return write::headers(state.frames(), stream, block, is_last, most);
        }
        let mut whole = Vec::with_capacity(block.len() + 1);
        encoder::size_update(&mut whole, 0);
        whole.extend_from_slice(block);
        write::headers(state.frames(), stream, &whole, is_last, most);
    }

    /// Frames head and body of a response in one step, if there is room for all of it, no one waits, and
    /// nothing was written on its stream yet. `most`: octets of one frame.
    pub fn whole(&self, stream: u32, block: &[u8], body: &[u8], most: u32) -> bool {
        if !self.takes_whole(body) {
            return false;
        }
        self.head(stream, block, body.is_empty());
        if !body.is_empty() {
            self.state.borrow_mut().frame_data((stream, most), &[IoSlice::new(body)], body.len(), true);
        }
        true
    }

    /// As [`Carrier::whole`], for a body too large to copy: `send` gets all that is framed, this response
    /// included, and returns how much the socket took. Only the rest is copied. All that was taken of what is
    /// framed must have been written.
    pub fn whole_through(
        &self,
        stream: u32,
        block: &[u8],
        body: &[u8],
        most: u32,
        send: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) -> bool {
        if !self.takes_whole(body) {
            return false;
        }
        self.head(stream, block, false);
        self.state.borrow_mut().send_data((stream, most), body, send);
        true
    }

    fn takes_whole(&self, body: &[u8]) -> bool {
        let state = self.state.borrow();
        let window = state.peer.initial_window_size as usize;
        state.turns.is_empty() && body.len() <= state.room().min(window)
    }

    /// 0 if the stream must wait for its turn.
    pub(super) fn room(&self, writer: &Writer, waker: &Waker) -> usize {
        self.state.borrow_mut().room_for(writer, waker)
    }

    /// Frames as much as may be now; 0 if the stream must wait for its turn.
    pub(super) fn data(&self, writer: &Writer, parts: &[IoSlice<'_>], is_last: bool, waker: &Waker) -> usize {
        let state = &mut *self.state.borrow_mut();
        let &Writer { stream, priority, chunk, .. } = writer;
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let mut count = all.min(state.room_for(writer, waker));
        if count == 0 {
            return 0;
        }
        if priority.incremental && !state.turns.is_empty() {
            count = count.min(SHARE);
        }
        state.turns.done(stream);
        state.frame_data((stream, chunk), parts, count, is_last && count == all);
        state.pieces = state.pieces.saturating_add(u32::from(count == all));
        count
    }

    /// Since the last call: a client that opens its window by octets gets none.
    pub fn take_pieces(&self) -> u32 {
        std::mem::take(&mut self.state.borrow_mut().pieces)
    }

    /// Grows with all that the client accepts.
    pub(super) fn moved(&self) -> u64 {
        self.state.borrow().moved
    }

    /// What the socket takes besides bodies, such as a PING's reply, gives no body a turn.
    pub fn wrote(&self, octets: usize) {
        self.state.borrow_mut().wrote(octets);
    }

    /// False if there is nothing to give.
    pub fn grant(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.room() > 0 && state.turns.grant()
    }

    pub(super) fn reprioritise(&self, stream: u32, priority: Priority) {
        self.state.borrow_mut().turns.reprioritise(stream, priority);
    }

    pub(super) fn leave(&self, stream: u32, unread: usize) {
        self.state.borrow_mut().turns.leave(stream);
        self.released(unread);
    }

    /// Octets of bodies that the peer accepts now, whatever its windows of streams.
    pub fn available(&self) -> u32 {
        self.state.borrow().window.available()
    }

    pub fn is_spent(&self) -> bool {
        self.available() == 0
    }

    pub fn queued(&self) -> usize {
        self.state.borrow().frames.len()
    }

    pub fn poll_framed(&self, context: &Context<'_>) -> Poll<()> {
        let state = &mut *self.state.borrow_mut();
        if !state.frames.is_empty() {
            return Poll::Ready(());
        }
        if !state.writer.as_ref().is_some_and(|writer| writer.will_wake(context.waker())) {
            state.writer = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// An empty buffer is exchanged for it.
    pub fn take(&self, into: &mut Vec<u8>) {
        std::mem::swap(&mut self.state.borrow_mut().frames, into);
    }

    /// Holds no buffer while there is nothing to write.
    pub fn rest(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.frames.is_empty() && state.frames.capacity() > 0 {
            buffers::give(std::mem::take(&mut state.frames));
        }
    }

    pub fn peer(&self) -> PeerSettings {
        self.state.borrow().peer
    }

    /// A smaller table is acknowledged by using none, as always.
    pub fn set_peer(&self, peer: PeerSettings) {
        let state = &mut *self.state.borrow_mut();
        state.owes_table_size |= peer.header_table_size < state.peer.header_table_size;
        state.peer = peer;
    }

    /// For the connection. Fails if its window would exceed the maximum (RFC 9113 §6.9.1).
    pub fn widen(&self, by: u32) -> Result<(), BadWindow> {
        self.state.borrow_mut().window.increase(by)
    }

    /// `octets` includes padding; `held` of them wait to be read. Fails if they exceed the client's window.
    pub fn received(&self, octets: u32, held: usize) -> Result<(), BadWindow> {
        let state = &mut *self.state.borrow_mut();
        // It is held however the window is: its stream gives it back.
        state.held += held;
        state.coming.consume(octets)?;
        state.owed += octets;
        state.repay();
        Ok(())
    }

    /// Octets that waited were read or discarded.
    pub(super) fn released(&self, octets: usize) {
        let state = &mut *self.state.borrow_mut();
        state.held -= octets;
        state.repay();
    }
}

impl CarrierState {
    fn frames(&mut self) -> &mut Vec<u8> {
        if self.frames.capacity() == 0 {
            self.frames = buffers::take();
        }
        if self.frames.is_empty()
            && let Some(writer) = &self.writer
        {
            writer.wake_by_ref();
        }
        &mut self.frames
    }

    fn room(&self) -> usize {
        ROOM.saturating_sub(self.frames.len()).min(self.window.available() as usize)
    }

    fn room_for(&mut self, writer: &Writer, waker: &Waker) -> usize {
        let room = self.room();
        if room > 0 && self.turns.may_write(writer.stream) {
            return room.min(writer.most);
        }
        self.turns.join(writer.stream, writer.priority, waker);
        // Who gives turns may have nothing else to do.
        if let Some(writer) = &self.writer {
            writer.wake_by_ref();
        }
        0
    }

    /// Limited by the peer and by `chunk`.
    fn largest(&self, chunk: u32) -> usize {
        self.peer.max_frame_size.min(chunk) as usize
    }

    fn spend(&mut self, count: usize) {
        // No more is framed than there is room for, which the window bounds.
        _ = self.window.consume(count as u32);
        self.moved += count as u64;
        self.unwritten += count;
    }

    fn wrote(&mut self, octets: usize) {
        let of_bodies = octets.min(self.unwritten);
        self.unwritten -= of_bodies;
        self.moved += of_bodies as u64;
    }

    /// With at most `chunk` octets per frame.
    fn frame_data(
        &mut self,
        (stream, chunk): (u32, u32),
        parts: &[IoSlice<'_>],
        count: usize,
        is_last: bool,
    ) {
        self.spend(count);
        let most = self.largest(chunk);
        let mut left = count;
        let mut parts = parts.iter().map(|part| &**part).filter(|part| !part.is_empty());
        let mut part = parts.next().unwrap_or_default();
        let frames = self.frames();
        while left > 0 {
            let mut length = left.min(most);
            left -= length;
            write::data_head(frames, stream, length as u32, is_last && left == 0);
            while length > 0 {
                let piece = part.len().min(length);
                frames.extend_from_slice(&part[..piece]);
                length -= piece;
                part = &part[piece..];
                if part.is_empty() {
                    part = parts.next().unwrap_or_default();
                }
            }
        }
    }

    /// Passes what is framed and a whole body to `send`, and frames what that leaves.
    fn send_data(
        &mut self,
        (stream, chunk): (u32, u32),
        body: &[u8],
        send: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) {
        self.spend(body.len());
        let pieces = body.chunks(self.largest(chunk));
        let mut frames = std::mem::take(self.frames());
        let framed = frames.len();
        for (number, piece) in pieces.clone().enumerate() {
            write::data_head(&mut frames, stream, piece.len() as u32, number + 1 == pieces.len());
        }
        // The first head goes with what is framed before it.
        let (first, heads) = frames.split_at(framed + HEAD_LENGTH);
        let heads = std::iter::once(first).chain(heads.chunks(HEAD_LENGTH));
        let parts: Vec<IoSlice<'_>> =
            heads.zip(pieces).flat_map(|(head, piece)| [head, piece].map(IoSlice::new)).collect();
        let mut sent = send(&parts);
        self.wrote(sent);
        self.frames = buffers::take();
        for part in &parts {
            let of_part = sent.min(part.len());
            self.frames.extend_from_slice(&part[of_part..]);
            sent -= of_part;
        }
        drop(parts);
        buffers::give(frames);
    }

    /// Reopens the client's window, once that is worth a frame and not too much is held.
    fn repay(&mut self) {
        if self.owed >= CONNECTION_WINDOW / 2 && self.held < self.most_held {
            let owed = std::mem::take(&mut self.owed);
            // It was taken off before.
            _ = self.coming.increase(owed);
            write::window_update(self.frames(), 0, owed);
        }
    }
}
