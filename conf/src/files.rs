//! How the files that a configuration names are opened: by this process, or, where it has not the right, by an opener that has.
//!
//! The opener is a process of its own which reads the configuration too. It opens only what a configuration that it read names, so both note
//! what is named while they read ([`Named`]). Nothing here waits: not for the writer of a pipe, not for a device. Next: `include`, which reads
//! with it; `millstream`'s `opener`.

use rustix::fs::OFlags;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// Created with these permissions if it is missing.
    Append(u32),
}

pub trait Opener: Send + Sync {
    /// Errors: those of opening it; the configuration does not name it.
    fn open(&self, path: &Path, access: Access) -> io::Result<File>;

    /// Errors: the configuration has no such pattern; the opener is gone.
    fn matches(&self, pattern: &str) -> io::Result<Vec<PathBuf>>;
}

#[derive(Debug, Clone, Default)]
pub struct Named {
    read: HashSet<PathBuf>,
    append: HashSet<PathBuf>,
    patterns: HashSet<String>,
}

impl Named {
    pub fn has(&self, path: &Path, access: Access) -> bool {
        match access {
            Access::Read => self.read.contains(path),
            Access::Append(_) => self.append.contains(path),
        }
    }

    /// Whether an `include` has this pattern.
    pub fn has_pattern(&self, pattern: &str) -> bool {
        self.patterns.contains(pattern)
    }
}

static OPENER: OnceLock<Box<dyn Opener>> = OnceLock::new();
static NAMED: Mutex<Option<Named>> = Mutex::new(None);

/// From now on this opener opens what this process may not. Only the first call counts.
pub fn open_through(opener: Box<dyn Opener>) {
    _ = OPENER.set(opener);
}

pub fn has_opener() -> bool {
    OPENER.get().is_some()
}

pub fn note_names() {
    *NAMED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Named::default());
}

/// What was named since the last call.
pub fn named() -> Named {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.as_mut().map(std::mem::take).unwrap_or_default()
}

fn note(note: impl FnOnce(&mut Named)) {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(note);
}

pub fn name(path: &Path, access: Access) {
    note(|named| {
        let list = match access {
            Access::Read => &mut named.read,
            Access::Append(_) => &mut named.append,
        };
        list.insert(path.to_path_buf());
    });
}

/// Errors: those of opening it, and if it is a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    open_for(path, Access::Read)
}

pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    open_for(path, Access::Append(mode))
}

fn open_for(path: &Path, access: Access) -> io::Result<File> {
    name(path, access);
    match (open_here(path, access), OPENER.get()) {
        // What this process may do itself needs nobody's rights.
        (Err(error), Some(opener)) if error.kind() == io::ErrorKind::PermissionDenied => {
            opener.open(path, access)
        }
        (opened, _) => opened,
    }
}

pub fn open_here(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // The bits of open(2) fit an `int`.
    let at_once = OFlags::NONBLOCK.bits() as i32;
    match access {
        // What the system itself has there is read as it comes: /dev/stdin, the pipe of a shell's <(…).
        Access::Read if is_of_system(path) => options.read(true).open(path),
        Access::Read => {
            let file = options.read(true).custom_flags(at_once).open(path)?;
            let found = file.metadata()?;
            // Reading a directory is an error that the system tells.
            if found.is_file() || found.is_dir() {
                return Ok(file);
            }
            Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
        }
        Access::Append(mode) => {
            options.append(true).create(true).mode(mode).custom_flags(at_once);
            match options.open(path) {
                // A pipe without a reader is opened for both, so that its first lines are there when one comes.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                    options.read(true).open(path)
                }
                opened => opened,
            }
        }
    }
}

fn is_of_system(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

/// `find` looks for them with the rights of this process.
pub(crate) fn matches(pattern: &str, find: impl FnOnce() -> Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
    note(|named| _ = named.patterns.insert(pattern.to_owned()));
    let mut found = find();
    if let Some(opener) = OPENER.get() {
        // A directory that this process may not read looks empty to it; a link that it may follow may be none that the opener follows.
        found.extend(opener.matches(pattern)?);
        found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        found.dedup();
    }
    Ok(found)
}
