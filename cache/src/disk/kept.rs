//! The files that a zone keeps, under the names of their keys, with the index of which there are.
//!
//! What looks at a file and then names or removes it holds the name's stripe, so that nothing comes in between. Before: `disk`; next: `files`,
//! the index; `tidy`, which keeps them within their bounds.

use super::bounds::Bounds;
use super::complaints::Complaints;
use super::files::Files;
use super::lock;
use super::place::{Directory, Name, Tree};
use super::read::{self, read_header};
use super::watch::Watch;
use crate::file_format::FileHead;
use crate::key;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Files that share a lock between checking the order and renaming or unlinking.
const STRIPES: usize = 64;

#[derive(Debug)]
pub(super) struct KeptFiles {
    pub(super) tree: Tree,
    pub(super) index: Files,
    pub(super) watch: Watch,
    pub(super) bounds: Bounds,
    pub(super) counters: Counters,
    pub(super) complaints: Complaints,
    stripes: [Mutex<()>; STRIPES],
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) corrupt: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) removed: AtomicU64,
    pub(crate) unlinked: AtomicU64,
}

impl KeptFiles {
    pub(super) fn new(tree: Tree, bounds: Bounds) -> KeptFiles {
        KeptFiles {
            tree,
            index: Files::new(),
            watch: Watch::new(),
            bounds,
            counters: Counters::default(),
            complaints: Complaints::default(),
            stripes: [const { Mutex::new(()) }; STRIPES],
        }
    }

    pub(super) fn path(&self, name: &Name) -> PathBuf {
        self.tree.path(name)
    }

    /// Held between looking at a file of this name and naming or removing it.
    pub(super) fn hold(&self, name: &Name) -> MutexGuard<'_, ()> {
        lock(self.stripe(name))
    }

    fn stripe(&self, name: &Name) -> &Mutex<()> {
        &self.stripes[usize::from(name[0]) % STRIPES]
    }

    /// Whether someone names or removes a file of this name, or one with its stripe, just now.
    pub(super) fn is_held(&self, name: &Name) -> bool {
        self.stripe(name).try_lock().is_err()
    }

    /// Whether a file exists that is not newer than `before`. Blocks.
    pub(super) fn has_older(&self, name: &Name, before: u64) -> bool {
        let _stripe = self.hold(name);
        let is_newer = self.index.order(name).is_some_and(|order| order >= before);
        !is_newer && self.path(name).exists()
    }

    /// Unless it is newer than `before`.
    pub(super) fn unlink(&self, name: &Name, before: u64) {
        let _stripe = self.hold(name);
        if self.index.order(name).is_some_and(|order| order >= before) {
            return;
        }
        self.remove(name);
    }

    /// The caller holds its stripe.
    pub(super) fn remove(&self, name: &Name) {
        self.index.remove(name);
        match fs::remove_file(self.path(name)) {
            Ok(()) => _ = self.counters.removed.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.report(format_args!("cannot remove a file: {error}")),
        }
    }

    /// Removes a file that no longer exists from the index. Returns the hash of its key, 0 if nothing of it
    /// was in memory; `None` if it exists or was not known.
    pub(super) fn unlinked(&self, name: &Name) -> Option<u64> {
        let _stripe = self.hold(name);
        let known = self.index.contains(name);
        if !known || !is_gone(&self.path(name)) {
            return None;
        }
        self.counters.unlinked.fetch_add(1, Ordering::Relaxed);
        self.index.remove(name)
    }

    pub(super) fn discard(&self, name: &Name) {
        let _stripe = self.hold(name);
        self.remove_damaged(name);
    }

    /// The caller holds the name's stripe.
    fn remove_damaged(&self, name: &Name) {
        self.counters.corrupt.fetch_add(1, Ordering::Relaxed);
        self.report(format_args!("a damaged file was removed: {}", self.path(name).display()));
        self.remove(name);
    }

    /// Only if the file has this identity.
    pub(super) fn discard_if(&self, name: &Name, id: u64) {
        let same = |file: File| read_header(&file).is_ok_and(|header| header.id == id);
        let _stripe = self.hold(name);
        if File::open(self.path(name)).is_ok_and(same) {
            self.remove_damaged(name);
        }
    }

    /// Removes the file if a purge applies to it. `is_purged` gets the file's head and where its fill stands
    /// among the purges.
    pub(super) fn remove_where(&self, name: &Name, is_purged: impl Fn(&FileHead, u64) -> bool) {
        // Under the stripe, so that what is removed is what was read. Damage is for those who want to answer from it. A
        // key's own file stays where there may be others of its variants: they count only beside it.
        let _stripe = self.hold(name);
        if let Ok((head, born)) = self.read_head(name)
            && !(head.vary.is_some() && key::md5(&head.key) == *name)
            && is_purged(&head, born)
        {
            self.remove(name);
        }
    }

    /// The head, and where its fill stands among the purges. Blocks.
    pub(super) fn read_head(&self, name: &Name) -> io::Result<(FileHead, u64)> {
        let file = File::open(self.path(name))?;
        let header = read_header(&file)?;
        Ok((read::head_of(&file, &header)?, header.born))
    }

    /// Call it before the file is opened or created, so that changes by others are noticed.
    pub(super) fn watch(&self, name: &Name) {
        self.watch_directory(self.tree.directory(name));
    }

    pub(super) fn watch_directory(&self, directory: Directory) {
        self.watched(self.watch.ensure(&self.tree, directory));
    }

    /// As [`KeptFiles::watch`], after the directory had to be made.
    pub(super) fn watch_anew(&self, name: &Name) {
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

    pub(super) fn is_there(&self, directory: Directory) -> bool {
        fs::symlink_metadata(self.tree.path_of(directory)).is_ok_and(|found| found.is_dir())
    }

    /// Counts a failure and logs it, at most once a minute.
    pub(super) fn fail(&self, what: &str, error: &io::Error) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.report(format_args!(
            "{what}: {error}; requests are still served, but responses are not stored on disk"
        ));
    }

    /// Logs something that is no failure.
    pub(super) fn tell(&self, message: fmt::Arguments<'_>) {
        self.complaints.tell(&self.tree.root, message);
    }

    pub(super) fn report(&self, message: fmt::Arguments<'_>) {
        self.complaints.report(&self.tree.root, message);
    }
}

fn is_gone(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    found.is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}
