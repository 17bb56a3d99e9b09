//! What a zone has behind its memory: files today. The narrow door to them, through which everything else of the crate
//! looks (`look`), stores (`write`) and purges (`removal`); nobody outside of this folder knows that there is a disk.
//!
//! A tier that nodes share would stand here too, beside or behind the files, with the same three verbs. It must not compare
//! the orders of fills and the numbers of purges with its own: they are this process's. Next: `disk`, the files.

use super::StoreStats;
use crate::disk::{self, Disk};
use crate::memory::Memory;
use crate::now::Now;
use crate::purges::{Cause, Journal};
use crate::variants::FileName;
use behind::Behind;
use millstream_conf::model::{CacheZone, Level};
use millstream_net::clock;
use millstream_telemetry::error_log::ErrorLogs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

mod behind;
mod look;
mod removal;
mod write;

pub(crate) use look::Looking;
pub(super) use removal::Removed;
pub(crate) use write::Writing;

/// Bytes that may wait to be written; more is written once there is room.
pub(super) const PENDING: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Tier {
    pub(super) disk: Arc<Disk>,
    journal: Journal,
    changes: Journal,
    behind: Arc<Behind>,
    /// Purges whose requester waits until they survive a power failure.
    pub(super) purging: Arc<Behind>,
    pub(super) pending: AtomicU64,
    /// Times that writing an entry was put off.
    put_off: AtomicU64,
}

impl Tier {
    /// Opens the directory of a zone, and restores earlier purges. Blocks.
    pub(super) fn open(
        zone: &CacheZone,
        path: &Path,
        temp: Option<&Path>,
        memory: &Memory,
        log: &ErrorLogs,
    ) -> io::Result<Tier> {
        Ok(Tier {
            disk: Arc::new(Disk::open(zone, path, temp, log.clone())?),
            journal: open_journal(zone, path, Cause::Purge, memory, log),
            changes: open_journal(zone, path, Cause::Change, memory, log),
            behind: Arc::default(),
            purging: Arc::default(),
            pending: AtomicU64::new(0),
            put_off: AtomicU64::new(0),
        })
    }

    /// Starts the thread for the files; `zone` is told of changes by others.
    pub(super) fn keep(&self, zone: impl disk::Zone) -> io::Result<()> {
        disk::keep(&self.disk, zone)
    }

    /// Takes over the sizes of a new configuration.
    pub(super) fn configure(&self, zone: &CacheZone, log: ErrorLogs) {
        self.disk.configure(zone, log);
    }

    pub(super) fn path(&self) -> &Path {
        self.disk.root()
    }

    /// In bytes.
    pub(super) fn largest_body(&self) -> u64 {
        self.disk.max_size()
    }

    /// Whether the last write failed, so that the next may be expected to.
    pub(super) fn is_failing(&self) -> bool {
        self.disk.is_failing()
    }

    /// As far as can be told without looking.
    pub(super) fn may_have(&self, name: &FileName) -> bool {
        self.disk.may_have(name)
    }

    /// Marks the file as used, though the response comes from memory.
    pub(super) fn touch(&self, name: &FileName, now: Now) {
        self.disk.touch(name, now);
    }

    /// Removes purged files, each unless it is newer than the number beside it. Blocks.
    pub(super) fn tidy(&self, purged: &[(FileName, u64)]) {
        purged.iter().for_each(|(name, order)| self.disk.unlink(name, *order));
    }

    /// Only if the file has this identity. Blocks.
    pub(super) fn discard(&self, name: &FileName, id: u64) {
        self.disk.discard_if(name, id);
    }

    /// Bytes for which there is room among pending writes.
    pub(super) fn room(&self) -> u64 {
        PENDING.saturating_sub(self.pending.load(Ordering::Relaxed))
    }

    pub(super) fn counted(&self, stats: StoreStats) -> StoreStats {
        let (files, disk_bytes) = self.disk.size();
        let counters = self.disk.counters();
        StoreStats {
            files,
            disk_bytes,
            files_removed: counters.removed.load(Ordering::Relaxed),
            files_unlinked: counters.unlinked.load(Ordering::Relaxed),
            index_bytes: self.disk.index_cost(),
            corrupt: counters.corrupt.load(Ordering::Relaxed),
            disk_errors: counters.errors.load(Ordering::Relaxed),
            unwritten: self.put_off.load(Ordering::Relaxed),
            index_loaded: self.disk.is_loaded(),
            ..stats
        }
    }

    /// Finishes pending writes and removals on this thread; after `within` it begins nothing more. Returns
    /// whether all are done.
    pub(super) fn finish(&self, within: Duration) -> bool {
        let end = clock::now().checked_add(within);
        let purged = self.purging.finish(within);
        let left = end.map_or(within, |end| end.saturating_duration_since(clock::now()));
        self.behind.finish(left) && purged
    }
}

fn open_journal(zone: &CacheZone, path: &Path, cause: Cause, memory: &Memory, log: &ErrorLogs) -> Journal {
    let (journal, read) = Journal::open(path, cause, &memory.purges, Now::read().unix_milliseconds);
    if let Err(error) = read {
        let what = match cause {
            Cause::Purge => "everything",
            Cause::Change => "all slices",
        };
        log.write(
            Level::Crit,
            format_args!(
                "cache zone \"{}\": cannot read the purges before the start: {error}; treating {what} in \"{}\" as \
                 purged",
                zone.name,
                path.display()
            ),
        );
    }
    journal
}
