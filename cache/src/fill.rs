//! An answer that is being received: stored when it has ended, and read along while it comes.
//!
//! ```text
//!   kept in memory ──┬ too large, or no room ─▶ its file in the zone's directory ──▶ stored
//!                    │                          └ too large, or it cannot be written ┐
//!                    └ no directory, or arriving for too long ──────────────────────┴▶ passed on, not stored
//! ```
//! Pieces are counted for as long as they are held. What is only passed on waits in a file without a name for readers that
//! are slower than the upstream. Dropping a fill aborts it; `finish` alone stores. Next: `permit`, which begins one;
//! `progress`, what its readers see.

use crate::body::Body;
use crate::entry::Entry;
use crate::head::StoredHead;
use crate::memory::Grant;
use crate::now::Now;
use crate::policy::Reason;
use crate::progress::{Follower, Progress};
use crate::store::{Store, Writing};
use bytes::Bytes;
use millstream_net::timer::Deadline;
use millstream_net::{blocking, clock, temporary};
use millstream_wire::Fields;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Bytes gathered before a piece is written to the zone's directory.
const GATHERED: u64 = 64 * 1024;
/// Bytes held in memory for readers of a body that is not stored.
const READ_ALONG: u64 = 32 * 1024;
/// Step in bytes by which room for a body in memory grows.
const ROOM_STEP: u64 = 1024;
/// Up to this length a body is joined on the worker, within a few tenths of a millisecond: after reading the
/// last piece a client finds it stored.
const JOIN_INLINE: u64 = 1024 * 1024;

/// Limits of a fill.
#[derive(Debug, Clone, Default)]
pub struct FillBounds {
    /// `proxy_cache_unread_timeout`: how long it continues without readers.
    pub unread: Option<Duration>,
    /// `proxy_cache_fill_timeout`: how long after its head the body is kept.
    pub arriving: Option<Duration>,
    pub folder: PathBuf,
    /// Bytes of a body that is not stored which may lie there; 0 = none.
    pub in_file: u64,
}

/// A response that is being received.
#[derive(Debug)]
pub struct Fill {
    /// Where and by what right it is stored; `None` if it is only passed on.
    right: Option<(Arc<Store>, Grant)>,
    progress: Arc<Progress>,
    mode: Mode,
    held: u64,
    counted: u64,
    crowded: bool,
    expected: Option<u64>,
    began: Now,
    bounds: FillBounds,
    /// When it is given up without readers.
    unread: Deadline,
    late: Deadline,
    aside: Option<Aside>,
    file_error: Option<io::Error>,
}

#[derive(Debug)]
enum Mode {
    Memory,
    /// Too large for memory: going to its file.
    File(Box<Writing>),
    /// Passed on to followers, not stored.
    Passing,
}

/// Bytes of a body that is not stored, in an unnamed file.
#[derive(Debug)]
struct Aside {
    file: Arc<File>,
    from: u64,
    upto: u64,
}

impl Aside {
    /// Appends pieces that start at `from` of the body, to a new file if there is none. Blocks.
    fn append(aside: Option<Aside>, folder: &Path, from: u64, pieces: &[Bytes]) -> io::Result<Aside> {
        let mut aside = match aside {
            Some(aside) => aside,
            None => Aside { file: Arc::new(temporary::file_in(folder)?), from, upto: from },
        };
        let mut at = from;
        for piece in pieces {
            aside.file.write_all_at(piece, at - aside.from)?;
            at += piece.len() as u64;
        }
        aside.upto = at;
        Ok(aside)
    }
}

impl Fill {
    pub(crate) fn new(
        right: Option<(Arc<Store>, Grant)>,
        progress: Arc<Progress>,
        is_kept: bool,
        expected: Option<u64>,
        began: Now,
    ) -> Fill {
        Fill {
            right,
            progress,
            mode: if is_kept { Mode::Memory } else { Mode::Passing },
            held: 0,
            counted: 0,
            crowded: false,
            expected,
            began,
            bounds: FillBounds::default(),
            unread: Deadline::new(),
            late: Deadline::new(),
            aside: None,
            file_error: None,
        }
    }

    /// A response that is passed to followers and not stored.
    pub fn along(status: u16, answer: Fields<'_>, length: Option<u64>, now: Now) -> Fill {
        let head = Arc::new(StoredHead::passing(status, answer, length, now));
        Fill::new(None, Progress::new(head, None), false, length, now)
    }

    /// Without bounds it is read to its end and nothing lies in files for slow readers.
    pub fn hold_to(&mut self, bounds: FillBounds) {
        if let Some((store, _)) = self.right.as_ref().filter(|_| bounds.in_file > 0) {
            store.memory.shards.loans.move_to(&bounds.folder);
        }
        match bounds.arriving.filter(|_| self.is_storing()) {
            Some(arriving) => self.late.set(self.began.after(arriving).instant),
            None => self.late.clear(),
        }
        self.bounds = bounds;
    }

    /// A reader from the beginning. Take it before the first piece is pushed; later the beginning may be
    /// gone, and it breaks off at once.
    pub fn follow(&self) -> Option<Follower> {
        self.progress.follow()
    }

    pub fn head(&self) -> &Arc<StoredHead> {
        &self.progress.head
    }

    /// Await [`Fill::ready`] before the next.
    pub fn push(&mut self, bytes: Bytes) {
        self.held = self.progress.push(bytes);
        if matches!(self.mode, Mode::Memory)
            && self.held > self.counted
            && let Some((store, grant)) = &self.right
        {
            let more = (self.held - self.counted).next_multiple_of(ROOM_STEP);
            match store.memory.shards.room(more, grant.key.hash()) {
                Some(room) => {
                    self.counted += more;
                    self.progress.hold(room);
                }
                None => self.crowded = true,
            }
        }
    }

    /// Ready for the next piece: at once for a body that fits in memory, after writing for one that goes to a
    /// file, and without a file, for one that is not stored, when its slowest reader has come close. Must not
    /// be dropped while it waits, unless the fill is given up.
    pub async fn ready(&mut self) {
        if matches!(self.mode, Mode::Memory) && (self.crowded || self.is_too_large()) {
            self.leave_memory().await;
        }
        match self.mode {
            Mode::Memory => {}
            Mode::File(_) if self.held >= GATHERED => self.write().await,
            Mode::File(_) => {}
            Mode::Passing => self.pass_on().await,
        }
    }

    /// Ready when the fill must be given up: all readers have left, and it is not kept, or the timeout has
    /// passed since. From `proxy_cache_fill_timeout` on it is no longer kept. Otherwise the task is woken
    /// when either happens.
    pub fn poll_unwanted(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_storing() && self.late.poll(context).is_ready() {
            self.late.release();
            self.stop_storing(Some(Reason::StillArriving));
        }
        if self.progress.poll_left(context).is_pending() {
            self.unread.clear();
            // Without a reader from the start it is wanted for the cache alone.
            return match self.is_storing() || self.progress.has_followers() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            };
        }
        if !self.is_storing() {
            return Poll::Ready(());
        }
        let Some(bound) = self.bounds.unread else { return Poll::Pending };
        if self.unread.at().is_none() {
            self.unread.set(clock::now() + bound);
        }
        self.unread.poll(context)
    }

    /// As far as is known by now.
    pub fn is_storing(&self) -> bool {
        !matches!(self.mode, Mode::Passing)
    }

    /// Why no file could be made or written for its readers, returned once.
    pub fn take_file_error(&mut self) -> Option<io::Error> {
        self.bounds.in_file = if self.file_error.is_some() { 0 } else { self.bounds.in_file };
        self.file_error.take()
    }

    /// The body has ended by its framing. `None` if it was not stored: its length differs from the announced
    /// one, it was too large, the key was purged meanwhile, or there was no room.
    pub async fn finish(mut self) -> Option<Arc<Entry>> {
        let total = self.progress.total();
        if self.expected.is_some_and(|expected| expected != total) {
            return None;
        }
        if matches!(self.mode, Mode::Memory) && self.is_too_large() {
            self.leave_memory().await;
        }
        let entry = match self.mode {
            Mode::Memory => self.store_in_memory().await,
            Mode::File(_) => self.store_in_file().await,
            Mode::Passing => None,
        };
        if let Some((store, grant)) = self.right.take().filter(|_| entry.is_none()) {
            grant.end(&store.memory);
        }
        self.progress.end(entry.as_ref());
        entry
    }

    async fn store_in_memory(&mut self) -> Option<Arc<Entry>> {
        let whole = self.whole().await?;
        let (store, grant) = self.right.as_ref()?;
        let entry = self.entry(grant, Body::Memory(store.memory.shards.loans.hold(whole)));
        let stored = store.memory.store(grant, &entry, self.began);
        if stored {
            store.save(&entry, grant.order, self.began);
        }
        stored.then_some(entry)
    }

    /// In one piece. For a moment a large one exists twice, which is counted.
    async fn whole(&self) -> Option<Bytes> {
        let pieces = self.progress.whole()?;
        let length = self.progress.total();
        let join = move || match pieces.as_slice() {
            [] => Bytes::new(),
            [only] => only.clone(),
            pieces => Bytes::from(pieces.concat()),
        };
        if length <= JOIN_INLINE {
            return Some(join());
        }
        let (store, grant) = self.right.as_ref()?;
        if !store.memory.shards.reserve(length, 0, grant.key.hash()) {
            return None;
        }
        let whole = blocking::run(join).await;
        store.memory.shards.release(length, 0);
        Some(whole)
    }

    async fn store_in_file(&mut self) -> Option<Arc<Entry>> {
        self.write().await;
        let Mode::File(writing) = std::mem::replace(&mut self.mode, Mode::Passing) else { return None };
        let (store, grant) = self.right.as_ref()?;
        let body = writing.finish(grant, &self.progress, self.began).await?;
        let entry = self.entry(grant, Body::File(body));
        store.memory.store(grant, &entry, self.began).then_some(entry)
    }

    fn entry(&self, grant: &Grant, body: Body) -> Arc<Entry> {
        let variant = self.progress.variant.clone().map(Arc::new);
        let orders = (grant.order, grant.born);
        Arc::new(Entry::new(grant.key.bytes(), variant, orders, self.progress.head.view(), body))
    }

    fn is_too_large(&self) -> bool {
        // What its pieces take in addition is counted in `room` and gone once they are one.
        self.right.as_ref().is_some_and(|(store, _)| self.progress.total() > store.largest_in_memory())
    }

    /// The body has become too large for memory: on to disk, or only to followers.
    async fn leave_memory(&mut self) {
        let Some((store, grant)) = &self.right else { return };
        let expected = self.expected.unwrap_or(self.held);
        if let Some(writing) = store.begin(grant, &self.progress, expected).await {
            // What is in memory stays counted until it is written.
            self.mode = Mode::File(writing);
            return;
        }
        self.stop_storing(if store.is_failing() {
            Some(Reason::DiskError)
        } else {
            // Where it is not too large there is no room now, of which the next answer may find more.
            self.is_too_large().then_some(Reason::TooLarge)
        });
    }

    async fn write(&mut self) {
        let Mode::File(writing) = std::mem::replace(&mut self.mode, Mode::Passing) else { return };
        let (_, pieces) = self.progress.unwritten();
        let Some(writing) = writing.append(pieces).await else {
            self.stop_storing(Some(Reason::DiskError));
            return;
        };
        let spool = &writing.spool;
        self.progress.written(&spool.file, spool.body_offset(), (0, spool.length()));
        self.held = 0;
        if self.right.as_ref().is_some_and(|(store, _)| spool.length() > store.largest_body()) {
            self.stop_storing(Some(Reason::TooLarge));
            return;
        }
        self.mode = Mode::File(writing);
    }

    /// Forgets what all have read. What a reader lags behind goes to a file, so that neither the upstream nor
    /// another reader waits for it; one file after the other, each when all of the last was read.
    async fn pass_on(&mut self) {
        let held = self.progress.trim();
        if held <= READ_ALONG {
            return;
        }
        if self.bounds.in_file == 0 || self.file_error.is_some() {
            return self.progress.drained(READ_ALONG).await;
        }
        let is_full =
            self.aside.as_ref().is_some_and(|aside| aside.upto - aside.from + held > self.bounds.in_file);
        if is_full {
            self.progress.drained(0).await;
            self.aside = None;
            return;
        }
        let (from, pieces) = self.progress.unwritten();
        let (aside, folder) = (self.aside.take(), self.bounds.folder.clone());
        match blocking::run(move || Aside::append(aside, &folder, from, &pieces)).await {
            Ok(aside) => {
                self.progress.written(&aside.file, from - aside.from, (from, aside.upto));
                self.aside = Some(aside);
            }
            Err(error) => self.file_error = Some(error),
        }
    }

    /// From here on the response is only passed on, and no one new joins.
    fn stop_storing(&mut self, reason: Option<Reason>) {
        self.mode = Mode::Passing;
        if let Some((store, grant)) = &mut self.right {
            grant.uncacheable(&store.memory, reason, self.began);
            grant.right = None;
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if let Some((store, grant)) = self.right.take() {
            grant.end(&store.memory);
        }
        // Has no effect on one that has ended.
        self.progress.abort();
    }
}
