//! A body while it arrives: what has come so far, and everybody who reads along.
//!
//! ```text
//!   0 … base        base … total
//!   in files        in memory        → End::Whole | End::Aborted
//! ```
//! The filling side appends; followers read at their own pace, woken by each piece and never by a timer. What not all of
//! them have read is in memory and counted there, in a file, or, once the body is stored, the entry's, and lent. Where
//! there is no file, the filling side waits for the slowest reader; nobody who reads is ever cut. Next: `line`, which
//! hands followers to waiters; `fill`, the filling side.

use crate::body::Body;
use crate::budget::Room;
use crate::entry::{Entry, Variant};
use crate::head::StoredHead;
use crate::loan::{Held, Loan, Whereabouts, read_at};
use crate::sync::{Mutex, MutexGuard};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

#[cfg(test)]
mod tests;

/// Cost of a piece in addition to its bytes, so that a body in tiny pieces is not free.
const PIECE_COST: u64 = 64;
/// Most bytes that a reader gets at a time of what is not in pieces of its own.
const PIECE: u64 = 32 * 1024;

/// The response broke off: what was read is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted;

impl fmt::Display for Aborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream response ended prematurely")
    }
}

impl std::error::Error for Aborted {}

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
    /// In order: everything before `base` that some reader has not read.
    sections: Vec<Section>,
    /// The whole body, once it is an entry's.
    loan: Option<Loan>,
    end: Option<End>,
    places: Vec<Option<ReaderPlace>>,
    followers: usize,
    was_read: bool,
    filler: Option<Waker>,
    left: Option<Waker>,
}

#[derive(Debug)]
struct Section {
    from: u64,
    upto: u64,
    file: Arc<File>,
    /// Where in the file `from` is.
    offset: u64,
}

#[derive(Debug, Clone)]
enum End {
    /// Weak: a slow reader must not keep what is evicted.
    Whole(Weak<Entry>),
    Aborted,
}

#[derive(Debug)]
struct ReaderPlace {
    position: u64,
    waker: Option<Waker>,
}

enum Step {
    Piece(Bytes),
    File(Arc<File>, std::ops::Range<u64>),
    End,
    Aborted,
    Wait,
}

impl Progress {
    pub(crate) fn new(head: Arc<StoredHead>, variant: Option<Variant>) -> Arc<Progress> {
        Arc::new(Progress { head, variant, state: Mutex::default() })
    }

    /// At the beginning; `None` if that is already forgotten.
    pub(crate) fn follow(self: &Arc<Self>) -> Option<Follower> {
        let mut state = self.lock();
        if !state.has_beginning() {
            return None;
        }
        let place = Some(ReaderPlace { position: 0, waker: None });
        let free = state.places.iter().position(Option::is_none);
        let index = free.unwrap_or(state.places.len());
        match free {
            Some(index) => state.places[index] = place,
            None => state.places.push(place),
        }
        state.followers += 1;
        state.was_read = true;
        Some(Follower { progress: self.clone(), place: index, begun: false })
    }

    /// Ready if all readers have left; else the filling side is woken then.
    pub(crate) fn poll_left(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.was_read && state.followers == 0 {
            return Poll::Ready(());
        }
        match &mut state.left {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    pub(crate) fn has_followers(&self) -> bool {
        self.lock().followers > 0
    }

    pub(crate) fn total(&self) -> u64 {
        self.lock().total
    }

    /// Returns the bytes now held in memory.
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

    pub(crate) fn hold(&self, more: Room) {
        match &mut self.lock().room {
            Some(room) => room.join(more),
            none => *none = Some(more),
        }
    }

    /// What is in memory and not yet in a file, and where it begins.
    pub(crate) fn unwritten(&self) -> (u64, Vec<Bytes>) {
        let state = self.lock();
        (state.base, state.pieces.iter().map(|(_, bytes)| bytes.clone()).collect())
    }

    /// The bytes from `from` to `upto` are now in a file as well, `from` at this offset.
    pub(crate) fn written(&self, file: &Arc<File>, offset: u64, (from, upto): (u64, u64)) {
        let mut state = self.lock();
        match state.sections.iter_mut().find(|section| Arc::ptr_eq(&section.file, file)) {
            Some(section) => section.upto = upto,
            None => state.sections.push(Section { from, upto, file: file.clone(), offset }),
        }
        state.forget(upto);
    }

    /// Forgets what all readers have read, and returns the bytes still held in memory.
    pub(crate) fn trim(&self) -> u64 {
        let mut state = self.lock();
        state.forget_read();
        state.held()
    }

    /// Waits until at most `window` bytes are held, forgetting what all readers have read. For a body that is
    /// kept nowhere. A reader that takes nothing is ended by `send_timeout`.
    pub(crate) async fn drained(&self, window: u64) {
        poll_fn(|context| {
            let mut state = self.lock();
            state.forget_read();
            if state.held() <= window {
                return Poll::Ready(());
            }
            state.filler = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn whole(&self) -> Option<Vec<Bytes>> {
        let state = self.lock();
        (state.base == 0).then(|| state.pieces.iter().map(|(_, bytes)| bytes.clone()).collect())
    }

    /// If the body is stored, readers continue from the entry's loan, so that the body is not held twice.
    pub(crate) fn end(&self, entry: Option<&Arc<Entry>>) {
        let body = entry.map(Entry::body);
        let held = body.as_ref().and_then(Body::memory);
        let loan = held.and_then(Held::lend);
        let mut state = self.lock();
        let mut gone = None;
        if let Some(held) = held
            && state.base == 0
            && !held.is_empty()
        {
            let pieces = match loan.is_some() {
                true => VecDeque::new(),
                false => VecDeque::from([(0, (**held).clone())]),
            };
            let pieces = std::mem::replace(&mut state.pieces, pieces);
            gone = Some((pieces, state.room.take()));
            state.loan = loan;
        }
        self.close(state, End::Whole(entry.map_or_else(Weak::new, Arc::downgrade)));
        drop(gone);
    }

    /// Readers get what has come, and then the error.
    pub(crate) fn abort(&self) {
        self.close(self.lock(), End::Aborted);
    }

    fn close(&self, mut state: MutexGuard<'_, State>, end: End) {
        state.end.get_or_insert(end);
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Nothing panics while it holds the lock, so a poisoned one guards a consistent state.
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

    fn has_beginning(&self) -> bool {
        self.base == 0 || self.sections.iter().any(|section| section.from == 0)
    }

    fn forget(&mut self, upto: u64) {
        while let Some((start, bytes)) = self.pieces.front()
            && start + bytes.len() as u64 <= upto
        {
            self.base = start + bytes.len() as u64;
            self.pieces.pop_front();
        }
        // What is still there stays counted.
        let held = self.held();
        if let Some(room) = &mut self.room {
            room.shrink_to(held);
        }
    }

    fn forget_read(&mut self) {
        let slowest = self.places.iter().flatten().map(|place| place.position).min();
        let upto = slowest.unwrap_or(self.total);
        self.sections.retain(|section| section.upto > upto);
        self.forget(upto);
    }

    fn step(&self, position: u64) -> Step {
        let upto = position + PIECE;
        if let Some(loan) = self.loan.as_ref().filter(|_| position < self.total) {
            return match loan.part(position..upto) {
                Whereabouts::Memory(bytes) => Step::Piece(bytes),
                Whereabouts::File(file, range) => Step::File(file, range),
            };
        }
        if position < self.base {
            let holds = |section: &&Section| (section.from..section.upto).contains(&position);
            return match self.sections.iter().find(holds) {
                Some(section) => {
                    let from = section.offset + position - section.from;
                    let length = upto.min(section.upto).min(self.base) - position;
                    Step::File(section.file.clone(), from..from + length)
                }
                None => Step::Aborted,
            };
        }
        if position < self.total {
            let index = self.pieces.partition_point(|(start, _)| *start <= position).saturating_sub(1);
            return match self.pieces.get(index) {
                Some((start, bytes)) => {
                    let end = (upto - start).min(bytes.len() as u64);
                    Step::Piece(bytes.slice((position - start) as usize..end as usize))
                }
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
    pub fn head(&self) -> &Arc<StoredHead> {
        &self.progress.head
    }

    pub(crate) fn variant(&self) -> Option<&Variant> {
        self.progress.variant.as_ref()
    }

    /// `None` after the last piece. After an error there is nothing more, and what was read is incomplete.
    /// May be dropped while it waits without losing a piece.
    pub async fn next(&mut self) -> Option<Result<Bytes, Aborted>> {
        match poll_fn(|context| self.poll_step(context)).await {
            Step::Piece(bytes) => {
                self.advance(bytes.len());
                Some(Ok(bytes))
            }
            Step::File(file, range) => {
                let bytes = read_at(file, range).await.map_err(|_| Aborted);
                if let Ok(bytes) = &bytes {
                    self.advance(bytes.len());
                }
                Some(bytes)
            }
            Step::End => None,
            Step::Aborted | Step::Wait => Some(Err(Aborted)),
        }
    }

    /// If not, another response may still be sent.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Once the body has ended and as long as it is stored.
    pub fn entry(&self) -> Option<Arc<Entry>> {
        match &self.progress.lock().end {
            Some(End::Whole(entry)) => entry.upgrade(),
            _ => None,
        }
    }

    fn poll_step(&self, context: &mut Context<'_>) -> Poll<Step> {
        let mut state = self.progress.lock();
        let Some(position) = state.places[self.place].as_ref().map(|place| place.position) else {
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
        let left = if state.followers == 0 { state.left.take() } else { None };
        drop(state);
        filler.into_iter().chain(left).for_each(Waker::wake);
    }
}
