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
mod doomed;
mod watch;
mod read;
mod write;
mod load;
mod unlinked;
mod tidy;
mod walk;
mod purger;
mod survey;
mod keeper;

pub(crate) use doomed::Sentence;
pub(crate) use keeper::Zone;
pub(crate) use place::Name;
pub(crate) use read::Loaded;
pub(crate) use write::Spool;

use crate::now::Now;
use files::Files;
use millstream_conf::model::{CacheZone, Level, Pace};
use millstream_telemetry::error_log::ErrorLogs;
use place::{Directory, Tree};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FlockOperation, flock};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use watch::Watch;

/// Files that share a lock between checking the order and renaming or unlinking.
const STRIPES: usize = 64;
/// Prefix of temporary files, so that those left behind by a crash are recognised.
const TEMPORARY: &str = ".millstream-";
const QUIET: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Disk {
    tree: Tree,
    /// The directory, locked together with all others that use it.
    held: Option<fs::File>,
    temporary: PathBuf,
    files: Files,
    doomed: doomed::Doomed,
    watch: Watch,
    wake: Arc<OwnedFd>,
    stripes: [Mutex<()>; STRIPES],
    serial: AtomicU64,
    max_size: AtomicU64,
    min_free: AtomicU64,
    most_files: AtomicU64,
    /// Seconds.
    inactive: AtomicU64,
    paces: Mutex<Paces>,
    loaded: AtomicBool,
    failing: AtomicBool,
    pub(crate) counters: Counters,
    log: Mutex<Quiet>,
}

#[derive(Debug, Clone, Copy)]
struct Paces {
    loader: Pace,
    manager: Pace,
    /// `None` with `purger=off`.
    purger: Option<Pace>,
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

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) corrupt: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) removed: AtomicU64,
    pub(crate) unlinked: AtomicU64,
}

#[derive(Debug)]
struct Quiet {
    logs: ErrorLogs,
    until: Option<Instant>,
    unsaid: u64,
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
            tree,
            temporary,
            files: Files::new(),
            doomed: doomed::Doomed::default(),
            watch: Watch::new(),
            wake: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            stripes: [const { Mutex::new(()) }; STRIPES],
            serial: AtomicU64::new(0),
            max_size: AtomicU64::new(0),
            min_free: AtomicU64::new(0),
            most_files: AtomicU64::new(0),
            inactive: AtomicU64::new(0),
            paces: Mutex::new(paces_of(zone)),
            loaded: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            counters: Counters::default(),
            log: Mutex::new(Quiet { logs: ErrorLogs::default(), until: None, unsaid: 0 }),
        };
        disk.configure(zone, logs);
        // The one for files on their way is made by whoever writes the first, because it has to be that user's.
        let elsewhere = Some(&disk.temporary).filter(|path| !path.starts_with(&disk.tree.root));
        for directory in device.map(|_| &disk.tree.root).into_iter().chain(elsewhere) {
            let trial = disk.temporary_name(directory);
            private::file(&trial)?;
            fs::remove_file(&trial)?;
        }
        Ok(disk)
    }

    pub(crate) fn configure(&self, zone: &CacheZone, logs: ErrorLogs) {
        self.max_size.store(zone.max_size.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.min_free.store(zone.min_free, Ordering::Relaxed);
        self.most_files.store(crate::key::most_keys(zone), Ordering::Relaxed);
        self.inactive.store(zone.inactive.as_secs(), Ordering::Relaxed);
        *lock(&self.paces) = paces_of(zone);
        lock(&self.log).logs = logs;
        self.make_again();
        self.wake();
    }

    /// The directory itself may have been removed, and this process lack the rights to make it: those are a
    /// start's.
    fn make_again(&self) {
        let elsewhere = Some(&self.temporary).filter(|path| !path.starts_with(&self.tree.root));
        for directory in [&self.tree.root].into_iter().chain(elsewhere) {
            if let Err(error) = private::directory(directory) {
                self.fail("cannot create the directory", &error);
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
        &self.tree.root
    }

    pub(crate) fn max_size(&self) -> u64 {
        self.max_size.load(Ordering::Relaxed)
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    pub(crate) fn index_cost(&self) -> u64 {
        self.files.cost()
    }

    pub(crate) fn size(&self) -> (u64, u64) {
        (self.files.len(), self.files.bytes())
    }

    /// Always true until the index is loaded.
    pub(crate) fn may_have(&self, name: &Name) -> bool {
        !self.is_loaded() || self.files.contains(name)
    }

    /// Marks the file as used, though the response comes from memory.
    pub(crate) fn touch(&self, name: &Name, now: Now) {
        self.files.touch(name, second(now));
    }

    #[cfg(test)]
    pub(crate) fn unused(&self, now: Now, inactive: u32) -> Vec<Name> {
        self.files.inactive(second(now), inactive, usize::MAX, usize::MAX).0
    }

    /// When the fill of a file was granted, in the order of this process; 0 if it is from before.
    pub(crate) fn order(&self, name: &Name) -> u64 {
        self.files.order(name).unwrap_or(0)
    }

    /// Whether a file exists, or may be about to be named by a fill that does not know of a purge of just
    /// now. Never waits.
    pub(crate) fn may_gain(&self, name: &Name) -> bool {
        // Whoever holds the stripe may have looked before the purge.
        self.stripe(name).try_lock().is_err() || self.may_have(name)
    }

    /// Whether a file exists that is not newer than `before`. Blocks.
    pub(crate) fn has_older(&self, name: &Name, before: u64) -> bool {
        let _stripe = lock(self.stripe(name));
        let is_newer = self.files.order(name).is_some_and(|order| order >= before);
        !is_newer && self.path(name).exists()
    }

    /// Unless it is newer than `before`.
    pub(crate) fn unlink(&self, name: &Name, before: u64) {
        let _stripe = lock(self.stripe(name));
        if self.files.order(name).is_some_and(|order| order >= before) {
            return;
        }
        self.remove(name);
    }

    /// The caller holds its stripe.
    fn remove(&self, name: &Name) {
        self.files.remove(name);
        match fs::remove_file(self.path(name)) {
            Ok(()) => _ = self.counters.removed.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.report(format_args!("cannot remove a file: {error}")),
        }
    }

    pub(crate) fn path(&self, name: &Name) -> PathBuf {
        self.tree.path(name)
    }

    /// Call it before the file is opened or created, so that changes by others are noticed.
    fn watch(&self, name: &Name) {
        self.watch_directory(self.tree.directory(name));
    }

    fn watch_directory(&self, directory: Directory) {
        self.watched(self.watch.ensure(&self.tree, directory));
    }

    /// As [`Disk::watch`], after the directory had to be made.
    fn watch_anew(&self, name: &Name) {
        self.watched(self.watch.ensure_anew(&self.tree, self.tree.directory(name)));
    }

    fn watched(&self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.report(format_args!(
                "cannot watch all directories: {error} (see fs.inotify.max_user_watches); files removed by other \
                 programs are noticed by a check every 30 seconds"
            ));
        }
    }

    fn is_there(&self, directory: Directory) -> bool {
        fs::symlink_metadata(self.tree.path_of(directory)).is_ok_and(|found| found.is_dir())
    }

    fn temporary_name(&self, directory: &Path) -> PathBuf {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        directory.join(format!("{TEMPORARY}{}-{serial}-{:p}", std::process::id(), self))
    }

    fn stripe(&self, name: &Name) -> &Mutex<()> {
        &self.stripes[usize::from(name[0]) % STRIPES]
    }

    /// Counts a failure and logs it, at most once a minute.
    fn fail(&self, what: &str, error: &io::Error) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.report(format_args!(
            "{what}: {error}; requests are still served, but responses are not stored on disk"
        ));
    }

    /// Logs something that is no failure.
    fn tell(&self, message: fmt::Arguments<'_>) {
        let logs = lock(&self.log).logs.clone();
        logs.write(Level::Notice, format_args!("cache \"{}\": {message}", self.tree.root.display()));
    }

    fn report(&self, message: fmt::Arguments<'_>) {
        let now = millstream_net::clock::now();
        let mut quiet = lock(&self.log);
        if quiet.until.is_some_and(|until| now < until) {
            quiet.unsaid += 1;
            return;
        }
        quiet.until = now.checked_add(QUIET);
        let (logs, unsaid) = (quiet.logs.clone(), std::mem::take(&mut quiet.unsaid));
        drop(quiet);
        let before = match unsaid {
            0 => String::new(),
            count => format!(" ({count} similar messages before)"),
        };
        logs.write(Level::Crit, format_args!("cache \"{}\": {message}{before}", self.tree.root.display()));
    }
}

fn second(now: Now) -> u32 {
    u32::try_from(now.unix_seconds()).unwrap_or(0)
}

fn paces_of(zone: &CacheZone) -> Paces {
    let purger = zone.purger.then_some(zone.purger_pace);
    Paces { loader: zone.loader_pace, manager: zone.manager_pace, purger }
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
