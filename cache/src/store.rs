//! One cache zone: its memory and disk tiers together, shared by all workers.
//!
//! It outlives a reload when name and path stay. Reading goes through `front`, storing through `permit`; here is what
//! belongs to neither: opening, bounds, purging and tidying. Nothing here waits for a disk on a
//! worker's loop. Next: `permit`, `tier`.

use crate::disk;
use crate::entry::Entry;
use crate::file_format;
use crate::key::{self, Key, most_keys};
use crate::memory::{Memory, Slot, Swept};
use crate::now::Now;
use crate::purges::Verdict;
use crate::tags::Tags;
use crate::variants;
use millstream_conf::model::CacheZone;
use millstream_net::blocking;
use millstream_telemetry::error_log::ErrorLogs;
use rate::{Rate, WaitingSets};
use recent::Recent;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

mod sight;
mod tier;
mod coding;
mod recent;
mod rate;
mod wholes;
mod cluster;
mod purge;

#[cfg(test)]
mod tests;

pub use cluster::{Membership, OtherNodes};
pub use coding::CodingPermit;
pub use purge::Purging;
pub use rate::{Changed, Turn};
pub use sight::{LineSight, Refusal, Sight};
use tier::Tier;
pub(crate) use tier::{Looking, Writing};
pub use wholes::Sliced;
use wholes::Wholes;

/// Larger bodies stay on disk and are read from there piece by piece.
const LARGEST_BESIDE_DISK: u64 = 1024 * 1024;
/// A body takes at most this share of the memory tier.
const SHARE: u64 = 8;
/// Least memory, whatever is configured: lines of waiting requests live in it too.
const LEAST_MEMORY: u64 = 1024 * 1024;
/// Between two rounds of tidying, in milliseconds; slightly less than a worker's chores are apart.
const ROUND: i64 = 900;
/// Files of purged entries that one round of tidying removes; others are removed when they are met.
const PURGED: usize = 32 * 1024;

/// One cache zone.
#[derive(Debug)]
pub struct Store {
    name: String,
    pub(crate) memory: Memory,
    /// `None` in a zone without files.
    tier: Option<Arc<Tier>>,
    recent: Recent,
    unsafe_requests: Recent,
    /// How often they may, and what was promised to those that came sooner.
    turns: Mutex<Rate>,
    /// Which keys have clients whose own change is delayed.
    waiting: WaitingSets,
    wholes: Wholes,
    membership: Membership,
    pub(crate) failures: Recent,
    inactive: AtomicU64,
    largest_in_memory: AtomicU64,
    /// In milliseconds since 1970.
    next_round: AtomicI64,
    tidying: AtomicBool,
}

/// A cache directory that cannot be used.
#[derive(Debug)]
pub struct CacheOpenError {
    pub zone: String,
    pub path: PathBuf,
    pub error: io::Error,
}

impl fmt::Display for CacheOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cache zone \"{}\": the directory \"{}\" cannot be used: {}; it must exist or be creatable, and the user \
             of the workers must be able to write to it",
            self.zone,
            self.path.display(),
            self.error
        )
    }
}

impl std::error::Error for CacheOpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The state of a zone at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Entries, variants and remembered misses in memory.
    pub keys: u64,
    /// Index included.
    pub memory_bytes: u64,
    pub memory_limit: u64,
    /// Bytes of `memory_bytes` that belong to fills.
    pub filling_bytes: u64,
    /// Since the start.
    pub evictions: u64,
    /// Incomplete while `index_loaded` is false.
    pub files: u64,
    /// In whole pages.
    pub disk_bytes: u64,
    /// Since the start.
    pub files_removed: u64,
    /// By other processes since the start.
    pub files_unlinked: u64,
    /// Memory of the index of files, in addition to `memory_bytes`.
    pub index_bytes: u64,
    /// Damaged files found, and removed, since the start.
    pub corrupt: u64,
    /// Failed reads and writes since the start.
    pub disk_errors: u64,
    /// Times that writing an entry was put off because too much waited to be written.
    pub unwritten: u64,
    /// Whether all files that existed at start are known. True for a zone in memory.
    pub index_loaded: bool,
}

impl Store {
    /// Makes its directory if missing, checks that it is writable, and starts to list its files in the
    /// background. `temp` is `proxy_temp_path`, used if `use_temp_path` is on and it is on the same
    /// filesystem. Blocks; call it at start.
    pub fn open(zone: &CacheZone, temp: Option<&Path>, log: ErrorLogs) -> Result<Arc<Store>, CacheOpenError> {
        let failed =
            |path: &Path, error| CacheOpenError { zone: zone.name.clone(), path: path.to_path_buf(), error };
        let memory = Memory::new(zone.memory.max(LEAST_MEMORY), most_keys(zone));
        let open =
            |path: &PathBuf| Tier::open(zone, path, temp, &memory, &log).map_err(|error| failed(path, error));
        let tier = zone.path.as_ref().map(open).transpose()?.map(Arc::new);
        let has_files = tier.is_some();
        let store = Store {
            name: zone.name.clone(),
            memory,
            tier,
            recent: Recent::default(),
            unsafe_requests: Recent::default(),
            turns: Mutex::default(),
            waiting: WaitingSets::default(),
            wholes: if has_files { Wholes::default() } else { Wholes::surveyed() },
            membership: Membership::default(),
            failures: Recent::default(),
            inactive: AtomicU64::new(0),
            largest_in_memory: AtomicU64::new(0),
            next_round: AtomicI64::new(0),
            tidying: AtomicBool::new(false),
        };
        store.set_bounds(zone);
        let store = Arc::new(store);
        if let Some(tier) = &store.tier {
            tier.keep(Above(Arc::downgrade(&store))).map_err(|error| failed(tier.path(), error))?;
        }
        Ok(store)
    }

    /// Takes over the sizes of a new configuration.
    pub fn reconfigure(&self, zone: &CacheZone, log: ErrorLogs) {
        self.set_bounds(zone);
        if let Some(tier) = &self.tier {
            tier.configure(zone, log);
        }
    }

    fn set_bounds(&self, zone: &CacheZone) {
        let memory = zone.memory.max(LEAST_MEMORY);
        let largest = match self.tier {
            Some(_) => (memory / SHARE).min(LARGEST_BESIDE_DISK),
            None => memory / SHARE,
        };
        self.largest_in_memory.store(largest, Ordering::Relaxed);
        self.inactive.store(zone.inactive.as_secs(), Ordering::Relaxed);
        self.memory.shards.set_bounds(memory, most_keys(zone));
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    pub fn path(&self) -> Option<&Path> {
        self.tier.as_ref().map(|tier| tier.path())
    }

    /// Different in every process.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.memory.hash(key)
    }

    /// In bytes, in memory or on disk.
    pub fn largest_body(&self) -> u64 {
        match &self.tier {
            Some(tier) => tier.largest_body(),
            None => self.largest_in_memory(),
        }
    }

    /// In bytes.
    pub(crate) fn largest_in_memory(&self) -> u64 {
        self.largest_in_memory.load(Ordering::Relaxed)
    }

    pub fn stats(&self) -> StoreStats {
        let (memory_bytes, memory_limit) = self.memory.shards.bytes();
        let stats = StoreStats {
            keys: self.memory.shards.cells(),
            memory_bytes,
            memory_limit,
            filling_bytes: self.memory.shards.filling(),
            evictions: self.memory.shards.evictions(),
            index_loaded: true,
            ..StoreStats::default()
        };
        match &self.tier {
            Some(tier) => tier.counted(stats),
            None => stats,
        }
    }

    /// [`Store::maintain`], unless it was called less than a second ago. Every worker calls it about once a
    /// second, so that it continues if one ends.
    pub fn maintain_when_due(self: &Arc<Self>, now: Now) {
        if self.is_round_due(now) {
            self.keep_promises(now);
            self.maintain(now);
        }
    }

    /// Evicts what was not used for `inactive` from memory; the disk has a thread for that. Bounded, and done
    /// off the event loop.
    pub fn maintain(self: &Arc<Self>, now: Now) {
        let inactive = Duration::from_secs(self.inactive.load(Ordering::Relaxed));
        if self.tidying.swap(true, Ordering::AcqRel) {
            return;
        }
        let round = Tidying(self.clone());
        detach(move || {
            let store = &round.0;
            let (mut purged, mut unwritten) = (Vec::new(), Vec::new());
            let mut room = store.tier.as_ref().map_or(0, |tier| tier.room());
            store.memory.sweep(now, inactive, |slot, cell, what| {
                let values = cell.values.as_deref();
                match &store.tier {
                    Some(tier) if what == Swept::Used => {
                        tier.touch(&slot.file_name(values), now);
                        if slot.has_file_beside(values) {
                            // It counts only beside the key's own file.
                            tier.touch(&variants::own(slot.key()), now);
                        }
                    }
                    Some(_) if what == Swept::Unwritten => {
                        let Some(entry) = &cell.entry else { return };
                        if let Some(left) = room.checked_sub(entry.cost()) {
                            room = left;
                            unwritten.push(entry.clone());
                        }
                    }
                    // The file under the key's own name stays beside files of variants: they count only with it.
                    Some(_)
                        if purged.len() < PURGED && (values.is_none() || slot.has_file_beside(values)) =>
                    {
                        let order = cell.entry.as_ref().map_or(0, |entry| entry.order);
                        purged.push((slot.file_name(values), order.saturating_add(1)));
                    }
                    _ => {}
                }
            });
            if let Some(tier) = &store.tier {
                tier.tidy(&purged);
            }
            for entry in unwritten {
                entry.marks.set_unwritten(false);
                store.save(&entry, entry.order, now);
            }
        });
    }

    /// True for one caller only.
    pub(crate) fn is_round_due(&self, now: Now) -> bool {
        let due = self.next_round.load(Ordering::Relaxed);
        // A clock that was set back must not put it off.
        let is_due = now.unix_milliseconds >= due || now.unix_milliseconds + 2 * ROUND < due;
        let next = now.unix_milliseconds + ROUND;
        is_due && self.next_round.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Finishes pending writes and removals on this thread, when the workers have ended; after `within` it
    /// begins nothing more. Returns whether all are done.
    pub fn flush(&self, within: Duration) -> bool {
        self.keep_promises_at_end();
        self.tier.as_ref().is_none_or(|tier| tier.finish(within))
    }

    /// Removes an entry whose file is gone or damaged, so that the next request asks again.
    pub fn forget(&self, entry: &Arc<Entry>) {
        self.memory.forget(entry);
    }

    /// Removes an entry after a piece of its file could not be read as written, and the file, if it is still
    /// the entry's. A response already begun from it must be cut.
    pub fn damaged(self: &Arc<Self>, entry: &Arc<Entry>) {
        self.memory.forget(entry);
        if let (Some(tier), Some(body)) = (self.tier.clone(), entry.body_in_file()) {
            let key = Key::new(entry.key(), self.hash(entry.key()));
            let (name, id) = (tier.place(self, &key, values_of(entry)).name, body.id);
            detach(move || tier.discard(&name, id));
        }
    }

    pub(crate) fn note_piece(&self, tags: &Tags) {
        self.wholes.note(tags);
    }

    /// Has existing files searched for slices, unless it was done.
    fn seek_pieces(&self) {
        if self.wholes.seek()
            && let Some(tier) = &self.tier
        {
            tier.disk.wake();
        }
    }

    /// As far as can be told without looking.
    pub(crate) fn may_be_on_disk(&self, slot: &Slot, values: Option<&[u8]>) -> bool {
        self.tier.as_ref().is_some_and(|tier| tier.may_have(&slot.file_name(values)))
    }
}

/// One round of tidying at a time; over once it is dropped, done or not.
struct Tidying(Arc<Store>);

impl Drop for Tidying {
    fn drop(&mut self) {
        self.0.tidying.store(false, Ordering::Release);
    }
}

/// The zone as seen by the thread of its files.
struct Above(Weak<Store>);

impl disk::Zone for Above {
    fn unlinked(&self, name: &disk::Name, key: u64) {
        if let Some(store) = self.0.upgrade() {
            store.memory.unlinked(key, name);
        }
    }

    fn purges(&self) -> u64 {
        self.0.upgrade().map_or(0, |store| store.memory.purges.generation())
    }

    fn is_purged(&self, file: &file_format::FileHead, born: u64) -> bool {
        let Some(store) = self.0.upgrade() else { return false };
        store.memory.purges.verdict(born, &file.head.tags, key::text(&file.key)) == Verdict::Hard
    }

    fn is_seeking(&self) -> bool {
        self.0.upgrade().is_some_and(|store| store.wholes.is_sought())
    }

    fn meets(&self, file: &file_format::FileHead) {
        if let Some(store) = self.0.upgrade() {
            store.wholes.note(&file.head.tags);
        }
    }

    fn has_met_all(&self) {
        if let Some(store) = self.0.upgrade() {
            store.wholes.know_all();
        }
    }
}

/// Runs blocking work off the event loop without waiting. Outside of a runtime it runs at once.
fn detach(work: impl FnOnce() + Send + 'static) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => _ = runtime.spawn(blocking::run(work)),
        Err(_) => work(),
    }
}

/// What the entry's request had in the fields that the key varies by.
fn values_of(entry: &Entry) -> Option<&[u8]> {
    entry.variant.as_ref().map(|variant| &*variant.values)
}
