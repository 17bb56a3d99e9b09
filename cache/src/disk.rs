//! The disk tier: one file per entry under nginx's names, and an index of which there are.
//!
//! Everything here blocks and runs on `net::blocking` or on the cache's own thread (`disk/keeper`); only looking into
//! the index is done on a worker's loop. A file appears under its name whole or not at all (temporary name, then
//! rename). Orders (numbers of the memory tier) keep a late write from undoing a purge. What others remove is noticed
//! (`disk/watch`). Next: `disk/write`, `disk/read`, `disk/keeper`.

mod private;
mod place;
mod pace;
mod index;
mod files;
mod bounds;
mod complaints;
mod doomed;
mod watch;
mod read;
mod kept;
mod tidy;
mod write;
mod load;
mod unlinked;
mod walk;
mod survey;
mod keeper;

pub(crate) use doomed::Sentence;
pub(crate) use keeper::Zone;
pub(crate) use place::Name;
pub(crate) use read::Loaded;
pub(crate) use write::Spool;

use crate::now::Now;
use bounds::Bounds;
use doomed::Doomed;
use kept::{Counters, KeptFiles};
use millstream_conf::model::CacheZone;
use millstream_telemetry::error_log::ErrorLogs;
use place::Tree;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prefix of temporary files, so that those left behind by a crash are recognised.
const TEMPORARY: &str = ".millstream-";

#[derive(Debug)]
pub(crate) struct Disk {
    kept: KeptFiles,
    /// The directory, locked together with all others that use it.
    held: Option<fs::File>,
    temporary: PathBuf,
    doomed: Arc<Doomed>,
    wake: Arc<OwnedFd>,
    serial: AtomicU64,
    loaded: AtomicBool,
    failing: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// Of the body: tells apart the files that have this name over time.
    pub(crate) id: u64,
    /// Ties variants to the file under the key's own name.
    pub(crate) epoch: u64,
    /// Where the fill stands among the purges.
    pub(crate) born: u64,
}

fn made(path: &Path) -> io::Result<u64> {
    if let Some(above) = path.parent() {
        // As open as the process makes its directories: whom root gives the last one to has to come through them.
        fs::create_dir_all(above)?;
    }
    private::directory(path)?;
    Ok(fs::metadata(path)?.dev())
}

impl Disk {
    /// Makes sure that the directory exists and is writable. `temp` is used only on the same filesystem,
    /// because a rename cannot leave one. Leftovers of ended processes are removed later, while the index
    /// loads.
    pub(crate) fn open(
        zone: &CacheZone,
        path: &Path,
        temp: Option<&Path>,
        logs: ErrorLogs,
    ) -> io::Result<Disk> {
        let device = match made(path) {
            // Root has made it, and who serves may not enter it: that stores nothing, and is told by whoever proves it.
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && millstream_conf::files::has_opener() =>
            {
                None
            }
            made => Some(made?),
        };
        let tree = Tree { root: path.to_path_buf(), levels: zone.levels.clone() };
        let temporary = temp
            .filter(|_| zone.use_temp_path)
            .filter(|temp| private::directory(temp).is_ok())
            .filter(|temp| fs::metadata(temp).is_ok_and(|found| Some(found.dev()) == device))
            .map_or_else(|| tree.temporary(), Path::to_path_buf);
        let shared = |held: &fs::File| flock(held, FlockOperation::NonBlockingLockShared).is_ok();
        let disk = Disk {
            held: fs::File::open(&tree.root).ok().filter(shared),
            kept: KeptFiles::new(tree, Bounds::of(zone)),
            temporary,
            doomed: Arc::default(),
            wake: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            serial: AtomicU64::new(0),
            loaded: AtomicBool::new(false),
            failing: AtomicBool::new(false),
        };
        disk.configure(zone, logs);
        // The one for files on their way is made by whoever writes the first, because it has to be that user's.
        let elsewhere = Some(&disk.temporary).filter(|path| !path.starts_with(&disk.kept.tree.root));
        for directory in device.map(|_| &disk.kept.tree.root).into_iter().chain(elsewhere) {
            let trial = disk.temporary_name(directory);
            private::file(&trial)?;
            fs::remove_file(&trial)?;
        }
        Ok(disk)
    }

    pub(crate) fn configure(&self, zone: &CacheZone, logs: ErrorLogs) {
        self.kept.bounds.set(zone);
        self.kept.complaints.set_logs(logs);
        self.make_again();
        self.wake();
    }

    /// The directory itself may have been removed, and this process lack the rights to make it: those are a
    /// start's.
    fn make_again(&self) {
        let elsewhere = Some(&self.temporary).filter(|path| !path.starts_with(self.root()));
        for directory in [&self.kept.tree.root].into_iter().chain(elsewhere) {
            if let Err(error) = private::directory(directory) {
                self.kept.fail("cannot create the directory", &error);
                self.failing.store(true, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// For a purge, or changed bounds.
    pub(crate) fn wake(&self) {
        // It only fails where it was told so often that it must be awake.
        _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// Whether no other process uses the directory, such as during an upgrade.
    fn is_alone(&self) -> bool {
        let lock = |operation| self.held.as_ref().is_some_and(|held| flock(held, operation).is_ok());
        let is_alone = lock(FlockOperation::NonBlockingLockExclusive);
        // Where it was not to be had, the shared one is lost too.
        lock(FlockOperation::NonBlockingLockShared) && is_alone
    }

    pub(crate) fn root(&self) -> &Path {
        &self.kept.tree.root
    }

    pub(crate) fn max_size(&self) -> u64 {
        self.kept.bounds.max_size()
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    pub(crate) fn index_cost(&self) -> u64 {
        self.kept.index.cost()
    }

    pub(crate) fn size(&self) -> (u64, u64) {
        (self.kept.index.len(), self.kept.index.bytes())
    }

    /// Always true until the index is loaded.
    pub(crate) fn may_have(&self, name: &Name) -> bool {
        !self.is_loaded() || self.kept.index.contains(name)
    }

    /// Marks the file as used, though the response comes from memory.
    pub(crate) fn touch(&self, name: &Name, now: Now) {
        self.kept.index.touch(name, second(now));
    }

    #[cfg(test)]
    pub(crate) fn unused(&self, now: Now, inactive: u32) -> Vec<Name> {
        self.kept.index.inactive(second(now), inactive, usize::MAX, usize::MAX).0
    }

    /// When the fill of a file was granted, in the order of this process; 0 if it is from before.
    pub(crate) fn order(&self, name: &Name) -> u64 {
        self.kept.index.order(name).unwrap_or(0)
    }

    /// Whether a file exists, or may be about to be named by a fill that does not know of a purge of just
    /// now. Never waits.
    pub(crate) fn may_gain(&self, name: &Name) -> bool {
        // Whoever holds the stripe may have looked before the purge.
        self.kept.is_held(name) || self.may_have(name)
    }

    /// See [`KeptFiles::has_older`]. Blocks.
    pub(crate) fn has_older(&self, name: &Name, before: u64) -> bool {
        self.kept.has_older(name, before)
    }

    /// Unless it is newer than `before`.
    pub(crate) fn unlink(&self, name: &Name, before: u64) {
        self.kept.unlink(name, before);
    }

    /// Removes a damaged file, if it has this identity.
    pub(crate) fn discard_if(&self, name: &Name, id: u64) {
        self.kept.discard_if(name, id);
    }

    pub(crate) fn path(&self, name: &Name) -> PathBuf {
        self.kept.path(name)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.kept.counters
    }

    /// A file of this name is not read until what is returned is dropped.
    pub(crate) fn doom(&self, name: Name) -> Sentence {
        self.doomed.doom(name)
    }

    fn temporary_name(&self, directory: &Path) -> PathBuf {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        directory.join(format!("{TEMPORARY}{}-{serial}-{:p}", std::process::id(), self))
    }
}

fn second(now: Now) -> u32 {
    u32::try_from(now.unix_seconds()).unwrap_or(0)
}

/// What these locks guard is consistent between any two statements that could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For a file's identity.
pub(crate) fn random_id() -> u64 {
    use std::hash::BuildHasher;
    // Seeded by the system for the process and counted on for every value.
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let state = std::collections::hash_map::RandomState::new();
    state.hash_one((COUNTER.fetch_add(1, Ordering::Relaxed), std::process::id()))
}

/// Starts the thread that lists existing files, keeps them within their bounds and notices changes by others.
/// It ends with the last handle to the disk.
pub(crate) fn keep(disk: &Arc<Disk>, zone: impl Zone) -> io::Result<()> {
    keeper::start(disk, zone)
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.wake();
    }
}
