//! Large bodies in memory, lent to readers: counted as long as they are there, and moved to a file under a slow reader.
//!
//! ```text
//!   stored ──────────▶ no longer stored, still read ─────────▶ read to the end, or its readers left
//!   (an entry's cost)  (held) ── too much is held ──▶ in a file without a name, its memory free
//! ```
//! An entry and a worker's handles hold the bytes themselves, so that a hit costs nothing shared; whoever cannot be sent all
//! at once holds a [`Loan`], through which the bytes are looked up anew each time. So a reader that takes an hour
//! costs memory no more than its own buffer, whatever is evicted meanwhile. Next: `entry`, which has such bodies;
//! `memory`, which says when one is stored and when no longer.

use crate::footprint::allocated;
use bytes::Bytes;
use millstream_net::{blocking, temporary};
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

#[cfg(test)]
mod tests;

/// Bodies up to this length are not lent: a reader may have a copy.
pub(crate) const SMALL_BODY: usize = 16 * 1024;
/// Most bytes held beyond the bound of the memory tier; at that point nothing in use is evicted.
const MOST_HELD: u64 = 8 * 1024 * 1024;
/// From here on bodies of slow readers are moved to files.
const MOVE_FROM: u64 = 2 * 1024 * 1024;
/// Bytes read from a file at a time.
const PIECE: u64 = 32 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Loans {
    /// Bytes of bodies that exist and are in no stored entry.
    held: AtomicU64,
    folder: OnceLock<PathBuf>,
    /// Bodies no longer stored that were being read when they left.
    leaving: Mutex<Vec<Weak<Lent>>>,
}

impl Loans {
    /// Sets the directory of files; only the first call counts.
    pub(crate) fn move_to(&self, folder: &Path) {
        self.folder.get_or_init(|| folder.to_path_buf());
    }

    /// Counts the body from here on, if it is large.
    pub(crate) fn hold(self: &Arc<Self>, bytes: Bytes) -> Held {
        if bytes.len() <= SMALL_BODY {
            return Held::from(bytes);
        }
        let cost = allocated(bytes.len());
        let account = Arc::new(Account { loans: self.clone(), cost, entries: AtomicUsize::new(0) });
        self.held.fetch_add(cost, Ordering::SeqCst);
        let bytes = Bytes::from_owner(Counted { bytes, account: account.clone() });
        let (place, readers) = (Mutex::new(Place::Memory(bytes.clone())), AtomicUsize::new(0));
        let length = bytes.len() as u64;
        Held { bytes, lent: Some(Arc::new(Lent { place, length, readers, account })) }
    }

    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether so much is held that nothing in use may be evicted.
    pub(crate) fn is_full(&self) -> bool {
        self.held() > MOST_HELD
    }

    /// Whether it is worth looking for handles to what is no longer stored.
    pub(crate) fn is_pressed(&self) -> bool {
        self.held() > MOVE_FROM
    }

    /// Only readers hold the body. Freed bodies are forgotten before the list grows.
    fn note_leaving(&self, lent: &Arc<Lent>) {
        let mut leaving = lock(&self.leaving);
        if leaving.len() == leaving.capacity() {
            leaving.retain(|lent| lent.strong_count() > 0);
        }
        leaving.push(Arc::downgrade(lent));
    }

    /// Moves bodies of slow readers out of memory, once they are many. Off the event loop; waits for nothing.
    /// Never call it under a lock.
    pub(crate) fn relieve(&self) {
        if self.held() <= MOVE_FROM {
            return;
        }
        let leaving = std::mem::take(&mut *lock(&self.leaving));
        let (false, Some(folder)) = (leaving.is_empty(), self.folder.get().cloned()) else { return };
        let work = move || {
            for lent in leaving.iter().filter_map(Weak::upgrade) {
                // What cannot be moved stays where it is, and is counted.
                _ = lent.leave_memory(&folder);
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => _ = runtime.spawn(blocking::run(work)),
            Err(_) => work(),
        }
    }
}

/// A body in memory, as an entry has it.
#[derive(Debug, Clone)]
pub struct Held {
    bytes: Bytes,
    lent: Option<Arc<Lent>>,
}

impl Held {
    /// What a slow reader holds in place of the bytes; `None` for a small body.
    pub fn lend(&self) -> Option<Loan> {
        self.lent.as_ref().map(Loan::new)
    }

    /// Call it when an entry with it is stored.
    pub(crate) fn enter(&self) {
        if let Some(lent) = &self.lent {
            lent.enter();
        }
    }

    /// Call it when an entry with it is no longer stored.
    pub(crate) fn leave(&self) {
        if let Some(lent) = &self.lent {
            Lent::leave(lent);
        }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.lent.as_ref().is_some_and(|lent| lent.readers.load(Ordering::Relaxed) > 0)
    }

    pub(crate) fn is_large(&self) -> bool {
        self.lent.is_some()
    }
}

impl Deref for Held {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

impl From<Bytes> for Held {
    fn from(bytes: Bytes) -> Held {
        Held { bytes, lent: None }
    }
}

/// Counts bytes as long as they exist.
#[derive(Debug)]
struct Account {
    loans: Arc<Loans>,
    cost: u64,
    /// Stored entries with the body, which pay for it.
    entries: AtomicUsize,
}

/// The bytes and their count, dropped together by the last holder.
struct Counted {
    bytes: Bytes,
    account: Arc<Account>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Where an entry paid for them to the end, its zone is gone as well.
        if self.account.entries.load(Ordering::SeqCst) == 0 {
            self.account.loans.held.fetch_sub(self.account.cost, Ordering::SeqCst);
        }
    }
}

#[derive(Debug)]
struct Lent {
    place: Mutex<Place>,
    length: u64,
    readers: AtomicUsize,
    account: Arc<Account>,
}

#[derive(Debug, Clone)]
enum Place {
    Memory(Bytes),
    File(Arc<File>),
}

impl Lent {
    fn enter(&self) {
        if self.account.entries.fetch_add(1, Ordering::SeqCst) == 0 {
            self.account.loans.held.fetch_sub(self.account.cost, Ordering::SeqCst);
        }
    }

    fn leave(self: &Arc<Self>) {
        if self.account.entries.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.account.loans.held.fetch_add(self.account.cost, Ordering::SeqCst);
            // Either this sees a reader that comes now, or the reader sees that the body is no longer stored.
            if self.readers.load(Ordering::SeqCst) > 0 {
                self.account.loans.note_leaving(self);
            }
        }
    }

    fn leave_memory(&self, folder: &Path) -> io::Result<()> {
        let (Place::Memory(bytes), true) = (lock(&self.place).clone(), self.is_only_read()) else {
            return Ok(());
        };
        let file = temporary::file_in(folder)?;
        file.write_all_at(&bytes, 0)?;
        drop(bytes);
        // The last bytes go after the lock.
        let moved = std::mem::replace(&mut *lock(&self.place), Place::File(Arc::new(file)));
        drop(moved);
        Ok(())
    }

    fn is_only_read(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0 && self.account.entries.load(Ordering::SeqCst) == 0
    }
}

#[derive(Debug)]
pub struct Loan(Arc<Lent>);

#[derive(Debug)]
pub enum Whereabouts {
    /// To be dropped before the reader waits.
    Memory(Bytes),
    File(Arc<File>, Range<u64>),
}

impl Loan {
    fn new(lent: &Arc<Lent>) -> Loan {
        lent.readers.fetch_add(1, Ordering::SeqCst);
        let account = &lent.account;
        if account.entries.load(Ordering::SeqCst) == 0 {
            account.loans.note_leaving(lent);
            account.loans.relieve();
        }
        Loan(lent.clone())
    }

    pub fn length(&self) -> u64 {
        self.0.length
    }

    /// Limited to the body.
    pub fn part(&self, range: Range<u64>) -> Whereabouts {
        let end = range.end.min(self.0.length);
        let range = range.start.min(end)..end;
        match &*lock(&self.0.place) {
            Place::Memory(bytes) => {
                Whereabouts::Memory(bytes.slice(range.start as usize..range.end as usize))
            }
            Place::File(file) => Whereabouts::File(file.clone(), range),
        }
    }

    /// The first bytes of a part, at most a piece, read off the event loop if they are in a file.
    pub async fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        match self.part(range.start..range.end.min(range.start + PIECE)) {
            Whereabouts::Memory(bytes) => Ok(bytes),
            Whereabouts::File(file, range) => read_at(file, range).await,
        }
    }
}

impl Clone for Loan {
    fn clone(&self) -> Loan {
        Loan::new(&self.0)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Off the event loop.
pub(crate) async fn read_at(file: Arc<File>, range: Range<u64>) -> io::Result<Bytes> {
    blocking::run(move || {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut bytes, range.start).map(|()| Bytes::from(bytes))
    })
    .await
}

/// Nothing panics while it holds a lock, so a poisoned one guards a consistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
