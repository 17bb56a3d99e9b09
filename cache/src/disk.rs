//! The disk tier: one file per entry under nginx's names, and an index of which there are.
//!
//! Everything here blocks and runs on `net::blocking` or, at start, on a thread of its own; only looking into the index
//! is done on a worker's loop. A file appears under its name whole or not at all (temporary name, then rename). Orders
//! (numbers of the memory tier) keep a late write from undoing a purge. Next: `disk/write`, `disk/read`, `disk/load`.

mod private;
pub(crate) mod index;
mod load;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use read::Loaded;
pub(crate) use write::Spool;

use crate::now::Now;
use index::{Index, Name};
use millstream_conf::model::{CacheZone, Level};
use millstream_telemetry::error_log::ErrorLogs;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Names that share a lock between looking at the order and renaming or unlinking.
const STRIPES: usize = 64;
/// Temporary files begin with this, so that those left behind by a crash are known.
const TEMPORARY: &str = ".millstream-";
/// Log lines about the disk come at most this often.
const QUIET: Duration = Duration::from_secs(60);
/// Files that one round of tidying removes at most.
const ROUND: usize = 1000;

/// The disk tier of one zone.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    levels: Vec<u8>,
    temporary: PathBuf,
    index: Mutex<Index>,
    stripes: [Mutex<()>; STRIPES],
    serial: AtomicU64,
    max_size: AtomicU64,
    min_free: AtomicU64,
    most_files: AtomicU64,
    loaded: AtomicBool,
    pub(crate) counters: Counters,
    log: Mutex<Quiet>,
}

/// What a new file says of itself beside its head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    /// Of the body: tells this file from any other that had its name before or after.
    pub(crate) id: u64,
    /// Ties variants to the file under the key's own name.
    pub(crate) epoch: u64,
    /// Where the fill stands among the purges.
    pub(crate) born: u64,
}

/// What happened on the disk since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) corrupt: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) removed: AtomicU64,
}

#[derive(Debug)]
struct Quiet {
    logs: ErrorLogs,
    until: Option<Instant>,
    unsaid: u64,
}

impl Disk {
    /// Makes sure that the directory is there and can be written. `temp` is used only on the same filesystem, because
    /// a rename does not leave one. Leftovers of processes that are gone are removed later, while the index loads.
    pub(crate) fn open(
        zone: &CacheZone,
        path: &Path,
        temp: Option<&Path>,
        logs: ErrorLogs,
    ) -> io::Result<Disk> {
        private::directory(path)?;
        let device = fs::metadata(path)?.dev();
        let temporary = temp
            .filter(|_| zone.use_temp_path)
            .filter(|temp| private::directory(temp).is_ok())
            .filter(|temp| fs::metadata(temp).is_ok_and(|found| found.dev() == device))
            .unwrap_or(path);
        let disk = Disk {
            root: path.to_path_buf(),
            levels: zone.levels.clone(),
            temporary: temporary.to_path_buf(),
            index: Mutex::new(Index::new()),
            stripes: [const { Mutex::new(()) }; STRIPES],
            serial: AtomicU64::new(0),
            max_size: AtomicU64::new(0),
            min_free: AtomicU64::new(0),
            most_files: AtomicU64::new(0),
            loaded: AtomicBool::new(false),
            counters: Counters::default(),
            log: Mutex::new(Quiet { logs: ErrorLogs::default(), until: None, unsaid: 0 }),
        };
        disk.configure(zone, logs);
        for directory in [&disk.root, &disk.temporary] {
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
        lock(&self.log).logs = logs;
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn max_size(&self) -> u64 {
        self.max_size.load(Ordering::Relaxed)
    }

    /// Whether every file that was there at start is in the index.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    /// Files and bytes.
    pub(crate) fn size(&self) -> (u64, u64) {
        let index = lock(&self.index);
        (index.len() as u64, index.bytes())
    }

    /// Whether a file may be there; always true until the index is whole.
    pub(crate) fn may_have(&self, name: &Name) -> bool {
        !self.is_loaded() || lock(&self.index).contains(name)
    }

    /// The entry in a file is used, though it is answered from memory.
    pub(crate) fn touch(&self, name: &Name, now: Now) {
        lock(&self.index).touch(name, second(now));
    }

    /// Removes a file unless it is newer than `before`.
    pub(crate) fn unlink(&self, name: &Name, before: u64) {
        let _stripe = lock(self.stripe(name));
        if lock(&self.index).order(name).is_some_and(|order| order >= before) {
            return;
        }
        self.remove(name);
    }

    /// Removes what was not used for `inactive`, and what is too much for `max_size`, `min_free` or the number of keys,
    /// a bounded number of files at a time.
    pub(crate) fn tidy(&self, inactive: Duration, now: Now) {
        let inactive = u32::try_from(inactive.as_secs()).unwrap_or(u32::MAX);
        let unused = lock(&self.index).inactive(second(now), inactive, 20 * ROUND);
        for name in unused.iter().take(ROUND) {
            self.unlink(name, u64::MAX);
        }
        let mut round = 0;
        while round < ROUND && (self.is_over(0) || self.is_short_of_space()) && self.remove_least_used() {
            round += 1;
        }
    }

    /// Makes room for a file; false where it cannot be had.
    fn make_room(&self, bytes: u64) -> bool {
        if bytes > self.max_size() {
            return false;
        }
        let mut round = 0;
        while self.is_over(bytes) {
            if round == ROUND || !self.remove_least_used() {
                return false;
            }
            round += 1;
        }
        true
    }

    fn is_over(&self, bytes: u64) -> bool {
        let (files, held) = self.size();
        held.saturating_add(bytes) > self.max_size() || files > self.most_files.load(Ordering::Relaxed)
    }

    fn is_short_of_space(&self) -> bool {
        let least = self.min_free.load(Ordering::Relaxed);
        least > 0
            && rustix::fs::statvfs(&self.root)
                .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < least)
    }

    fn remove_least_used(&self) -> bool {
        let Some(name) = lock(&self.index).least_used() else { return false };
        let _stripe = lock(self.stripe(&name));
        self.remove(&name);
        true
    }

    /// Removes a file; the caller holds its stripe.
    fn remove(&self, name: &Name) {
        lock(&self.index).remove(name);
        match fs::remove_file(self.path(name)) {
            Ok(()) => _ = self.counters.removed.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.report(format_args!("cannot remove a file of it: {error}")),
        }
    }

    /// Where the file of a name is, as nginx has it: the levels are the last digits of the name.
    pub(crate) fn path(&self, name: &Name) -> PathBuf {
        let text = hex(name);
        let mut path = self.root.clone();
        let mut end = text.len();
        for &width in &self.levels {
            let start = end.saturating_sub(usize::from(width));
            path.push(&text[start..end]);
            end = start;
        }
        path.push(text);
        path
    }

    fn temporary_name(&self, directory: &Path) -> PathBuf {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        directory.join(format!("{TEMPORARY}{}-{serial}-{:p}", std::process::id(), self))
    }

    fn stripe(&self, name: &Name) -> &Mutex<()> {
        &self.stripes[usize::from(name[0]) % STRIPES]
    }

    /// Counts a failure and says so, at most once a minute.
    fn fail(&self, what: &str, error: &io::Error) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.report(format_args!("{what}: {error}; answers go on, they are not stored on disk"));
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
            count => format!(" ({count} more like it before)"),
        };
        logs.write(Level::Crit, format_args!("cache \"{}\": {message}{before}", self.root.display()));
    }
}

fn second(now: Now) -> u32 {
    u32::try_from(now.unix_seconds()).unwrap_or(0)
}

fn hex(name: &Name) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    name.iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

/// Reads a name as [`hex`] writes it.
fn name_of(text: &[u8]) -> Option<Name> {
    let mut name = [0; 16];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != 16 || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in name.iter_mut().zip(pairs) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
        *byte = (digit(high)? << 4 | digit(low)?) as u8;
    }
    Some(name)
}

/// What these locks guard is whole between any two statements that could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A random number for a file's identity.
pub(crate) fn random_id() -> u64 {
    use std::hash::BuildHasher;
    // Seeded by the system for the process and counted on for every value.
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let state = std::collections::hash_map::RandomState::new();
    state.hash_one((COUNTER.fetch_add(1, Ordering::Relaxed), std::process::id()))
}

/// Starts to list the files that are there, on a thread of its own.
pub(crate) fn load_in_background(disk: &Arc<Disk>) -> io::Result<()> {
    load::start(disk)
}
