//! A body while it arrives: what has come so far, and everybody who reads along.
//!
//! ```text
//!   0 … base        base … total
//!   in the file     in memory        → End::Whole | End::Aborted
//! ```
//! The filling side appends; followers read at their own pace, woken by each piece and never by a timer. A body that
//! is being kept is kept whole, in memory or in a file; one that is only passed on keeps a window, and the filling
//! side waits for its slowest reader, but not for one that stands still while another waits. Next: `line`, which hands
//! followers to waiters; `permit`, the filling side.

use crate::body::Body;
use crate::budget::Room;
use crate::entry::{Entry, Variant};
use crate::file_format::BLOCK;
use crate::head::StoredHead;
use crate::sync::{Mutex, MutexGuard};
use bytes::Bytes;
use millstream_net::timer::Deadline;
use millstream_net::{blocking, clock};
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// What a piece costs beside its bytes, so that a body in tiny pieces is not kept for free.
const PIECE_COST: u64 = 64;

/// The answer broke off: what was read is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted;

impl fmt::Display for Aborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream's answer broke off")
    }
}

impl std::error::Error for Aborted {}

/// One body on its way.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) head: Arc<StoredHead>,
    pub(crate) variant: Option<Variant>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Pieces and where each begins; the first begins at `base`.
    pieces: VecDeque<(u64, Bytes)>,
    base: u64,
    total: u64,
    /// What the pieces are counted by, while they are kept in memory.
    room: Option<Room>,
    /// The file that holds everything before `base`, and where the body begins in it.
    spool: Option<(Arc<File>, u64)>,
    end: Option<End>,
    places: Vec<Option<Place>>,
    followers: usize,
    filler: Option<Waker>,
}

#[derive(Debug, Clone)]
enum End {
    Whole(Option<Arc<Entry>>),
    Aborted,
}

#[derive(Debug)]
struct Place {
    position: u64,
    waker: Option<Waker>,
    /// It held the others up for too long: for it the answer has broken off.
    left_behind: bool,
}

enum Step {
    Piece(Bytes),
    Spool(Arc<File>, u64, usize),
    End,
    Aborted,
    Wait,
}

impl Progress {
    pub(crate) fn new(head: Arc<StoredHead>, variant: Option<Variant>) -> Arc<Progress> {
        Arc::new(Progress { head, variant, state: Mutex::default() })
    }

    /// A new reader, at the beginning; `None` where the beginning is already forgotten.
    pub(crate) fn follow(self: &Arc<Self>) -> Option<Follower> {
        let mut state = self.lock();
        if state.base > 0 && state.spool.is_none() {
            return None;
        }
        let place = Some(Place { position: 0, waker: None, left_behind: false });
        let free = state.places.iter().position(Option::is_none);
        let index = free.unwrap_or(state.places.len());
        match free {
            Some(index) => state.places[index] = place,
            None => state.places.push(place),
        }
        state.followers += 1;
        Some(Follower { progress: self.clone(), place: index, begun: false })
    }

    /// Whether anybody reads.
    pub(crate) fn has_followers(&self) -> bool {
        self.lock().followers > 0
    }

    /// Bytes that have come.
    pub(crate) fn total(&self) -> u64 {
        self.lock().total
    }

    /// Appends a piece and gives what is held in memory now, in bytes.
    pub(crate) fn push(&self, bytes: Bytes) -> u64 {
        let mut state = self.lock();
        let start = state.total;
        state.total += bytes.len() as u64;
        if !bytes.is_empty() {
            state.pieces.push_back((start, bytes));
        }
        let held = state.held();
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        held
    }

    /// Takes room that was made for what has come.
    pub(crate) fn hold(&self, more: Room) {
        match &mut self.lock().room {
            Some(room) => room.join(more),
            none => *none = Some(more),
        }
    }

    /// Gives all room back: what has come is counted as an entry from here on, or only passes through.
    pub(crate) fn release_room(&self) {
        let room = self.lock().room.take();
        drop(room);
    }

    /// What is in memory and not yet in the file, for the filling side to write.
    pub(crate) fn unwritten(&self) -> Vec<Bytes> {
        self.lock().pieces.iter().map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Everything before `upto` is now in the file.
    pub(crate) fn spooled(&self, file: &Arc<File>, body_offset: u64, upto: u64) {
        let mut state = self.lock();
        state.spool.get_or_insert_with(|| (file.clone(), body_offset));
        state.forget(upto);
    }

    /// Waits until no more than `window` bytes are held, having forgotten what all readers have read. For a body that
    /// is not kept. A single reader sets the pace; where others have read everything and wait for more, those that hold
    /// them up have `patience` to take something, and then see the answer break off.
    pub(crate) async fn drained(&self, window: u64, patience: Duration) {
        let mut deadline = Deadline::new();
        poll_fn(|context| {
            let mut state = self.lock();
            state.forget_read();
            if state.held() <= window {
                return Poll::Ready(());
            }
            if !state.somebody_waits() {
                deadline.clear();
            } else if deadline.at().is_none()
                && let Some(at) = clock::now().checked_add(patience)
            {
                deadline.set(at);
            }
            state.filler = Some(context.waker().clone());
            drop(state);
            if deadline.poll(context).is_pending() {
                return Poll::Pending;
            }
            let mut state = self.lock();
            let mut wakers = Vec::new();
            while state.held() > window && state.somebody_waits() {
                state.leave_slowest_behind(&mut wakers);
                state.forget_read();
            }
            let is_drained = state.held() <= window;
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            if is_drained {
                return Poll::Ready(());
            }
            // Who waited has left meanwhile: whoever is left sets the pace, and wakes this when it has read or leaves.
            deadline.clear();
            Poll::Pending
        })
        .await;
    }

    /// The whole body, where all of it is in memory.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        let state = self.lock();
        if state.base > 0 {
            return None;
        }
        Some(match state.pieces.len() {
            0 => Bytes::new(),
            1 => state.pieces[0].1.clone(),
            _ => {
                let mut whole = Vec::with_capacity(state.total as usize);
                state.pieces.iter().for_each(|(_, bytes)| whole.extend_from_slice(bytes));
                Bytes::from(whole)
            }
        })
    }

    /// The body has ended. Readers go on from the entry's own bytes, so that the body is not held twice.
    pub(crate) fn end(&self, entry: Option<Arc<Entry>>) {
        let mut state = self.lock();
        if let Some(Body::Memory(bytes)) = entry.as_ref().map(Entry::body)
            && state.base == 0
            && !bytes.is_empty()
        {
            state.pieces = VecDeque::from([(0, bytes)]);
        }
        self.close(state, End::Whole(entry));
    }

    /// The body broke off. Who reads along gets what has come, and then sees it.
    pub(crate) fn abort(&self) {
        self.close(self.lock(), End::Aborted);
    }

    fn close(&self, mut state: MutexGuard<'_, State>, end: End) {
        state.end.get_or_insert(end);
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Nothing in here panics while it holds the lock, so a poisoned one guards a whole state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn held(&self) -> u64 {
        self.total - self.base + self.pieces.len() as u64 * PIECE_COST
    }

    fn take_wakers(&mut self) -> Vec<Waker> {
        self.places.iter_mut().flatten().filter_map(|place| place.waker.take()).collect()
    }

    fn forget(&mut self, upto: u64) {
        while let Some((start, bytes)) = self.pieces.front()
            && start + bytes.len() as u64 <= upto
        {
            self.base = start + bytes.len() as u64;
            self.pieces.pop_front();
        }
    }

    /// Who sets the pace: the reader that has read least.
    fn slowest(&self) -> Option<u64> {
        self.places.iter().flatten().filter(|place| !place.left_behind).map(|place| place.position).min()
    }

    /// Forgets what everybody has read.
    fn forget_read(&mut self) {
        let upto = self.slowest().unwrap_or(self.total);
        self.forget(upto);
    }

    /// Whether a reader has read all there is.
    fn somebody_waits(&self) -> bool {
        self.places.iter().flatten().any(|place| !place.left_behind && place.position == self.total)
    }

    fn leave_slowest_behind(&mut self, wakers: &mut Vec<Waker>) {
        let slowest = self.slowest();
        for place in self.places.iter_mut().flatten() {
            if !place.left_behind && Some(place.position) == slowest {
                place.left_behind = true;
                wakers.extend(place.waker.take());
            }
        }
    }

    fn step(&self, position: u64) -> Step {
        if position < self.base {
            return match &self.spool {
                Some((file, offset)) => {
                    let length = (self.base - position).min(BLOCK as u64) as usize;
                    Step::Spool(file.clone(), offset + position, length)
                }
                None => Step::Aborted,
            };
        }
        if position < self.total {
            let index = self.pieces.partition_point(|(start, _)| *start <= position).saturating_sub(1);
            return match self.pieces.get(index) {
                Some((start, bytes)) => Step::Piece(bytes.slice((position - start) as usize..)),
                None => Step::Aborted,
            };
        }
        match self.end {
            Some(End::Whole(_)) => Step::End,
            Some(End::Aborted) => Step::Aborted,
            None => Step::Wait,
        }
    }
}

/// Reads a body while it arrives. Dropping it leaves the fill alone.
#[derive(Debug)]
pub struct Follower {
    progress: Arc<Progress>,
    place: usize,
    begun: bool,
}

impl Follower {
    /// The answer's head.
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.progress.head
    }

    /// Which variant it is.
    pub(crate) fn variant(&self) -> Option<&Variant> {
        self.progress.variant.as_ref()
    }

    /// The next piece; `None` after the last. After an error there is nothing more, and what was read is not whole.
    /// May be dropped while it waits without losing a piece.
    pub async fn next(&mut self) -> Option<Result<Bytes, Aborted>> {
        match poll_fn(|context| self.poll_step(context)).await {
            Step::Piece(bytes) => {
                self.advance(bytes.len());
                Some(Ok(bytes))
            }
            Step::Spool(file, offset, length) => {
                let read = blocking::run(move || {
                    let mut bytes = vec![0; length];
                    file.read_exact_at(&mut bytes, offset).map(|()| Bytes::from(bytes))
                });
                let bytes = read.await.map_err(|_| Aborted);
                if bytes.is_ok() {
                    self.advance(length);
                }
                Some(bytes)
            }
            Step::End => None,
            Step::Aborted | Step::Wait => Some(Err(Aborted)),
        }
    }

    /// Whether nothing has been read yet, so that another answer may still be given.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The entry, once the body has ended and was stored.
    pub fn entry(&self) -> Option<Arc<Entry>> {
        match &self.progress.lock().end {
            Some(End::Whole(entry)) => entry.clone(),
            _ => None,
        }
    }

    fn poll_step(&self, context: &mut Context<'_>) -> Poll<Step> {
        let mut state = self.progress.lock();
        let place = state.places[self.place].as_ref().filter(|place| !place.left_behind);
        let Some(position) = place.map(|place| place.position) else {
            return Poll::Ready(Step::Aborted);
        };
        match state.step(position) {
            Step::Wait => {
                if let Some(place) = &mut state.places[self.place] {
                    place.waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
            step => Poll::Ready(step),
        }
    }

    fn advance(&mut self, length: usize) {
        self.begun = true;
        let mut state = self.progress.lock();
        if let Some(place) = &mut state.places[self.place] {
            place.position += length as u64;
        }
        let filler = state.filler.take();
        drop(state);
        if let Some(filler) = filler {
            filler.wake();
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.progress.lock();
        state.places[self.place] = None;
        state.followers -= 1;
        let filler = state.filler.take();
        drop(state);
        if let Some(filler) = filler {
            filler.wake();
        }
    }
}
