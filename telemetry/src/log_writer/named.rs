//! Log files whose names requests give (`access_log /var/log/$host.log`), as the writer thread sees them.
//!
//! A file is opened for the lines of one batch, and stays open only as `open_log_file_cache` has it. Nothing waits here: what a file does
//! not take at once is lost, counted, and complained of at most once a minute for the whole group, since strangers may choose the
//! names. Before: `output`, for files that the configuration names; next: `queue`.

use super::output::{Outcome, Output, open_with};
use crate::about::About;
use crate::error_line::{SystemError, Telling};
use crate::local_time;
use millstream_conf::model::{KeptLogs, Level};
use std::collections::HashMap;
use std::fmt::Arguments;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const COMPLAINT_SECONDS: i64 = 60;

#[derive(Default)]
pub(super) struct NamedFiles {
    /// `open_log_file_cache`; `None` keeps nothing open.
    kept: Option<KeptLogs>,
    known: HashMap<PathBuf, Known>,
    swept: i64,
    /// Last complaint. All times are wall seconds.
    complained: Option<i64>,
    /// Counts uses, to order files by their last use.
    uses: u64,
}

struct Known {
    /// Open once it was used often enough.
    file: Option<File>,
    /// Device and inode of the open file, to detect a replacement.
    identity: (u64, u64),
    uses: u64,
    last: u64,
    used_at: i64,
    checked_at: i64,
}

pub(super) struct Named {
    pub(super) path: PathBuf,
    pub(super) root: PathBuf,
    pub(super) follows_links: bool,
    pub(super) lines: Vec<u8>,
    /// Bytes that they count for.
    pub(super) charge: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct NamedLine<'a> {
    pub path: &'a Path,
    /// The request's document root: without it no log is made, as in nginx.
    pub root: &'a Path,
    pub follows_links: bool,
    pub line: &'a [u8],
}

pub(super) enum Open {
    File(Output),
    Group(NamedFiles),
}

impl Open {
    pub(super) fn file(&self) -> Option<&Output> {
        match self {
            Open::File(output) => Some(output),
            Open::Group(_) => None,
        }
    }
}

struct Failure<'a> {
    doing: &'static str,
    path: &'a Path,
    error: io::Error,
}

impl NamedFiles {
    pub(super) fn new(kept: Option<KeptLogs>) -> NamedFiles {
        NamedFiles { kept, ..NamedFiles::default() }
    }

    /// Returns their bytes, which need no more room.
    pub(super) fn write(&mut self, slot: usize, named: Vec<Named>, outcome: &mut Outcome) -> usize {
        let now = local_time::now().seconds;
        let mut released = 0;
        for named in named {
            released += named.charge;
            match self.write_one(&named, now) {
                Ok(()) => outcome.bytes_written += named.lines.len() as u64,
                Err(failure) => {
                    outcome.bytes_dropped += named.lines.len() as u64;
                    outcome.errors += 1;
                    let (path, doing) = (failure.path.display(), failure.doing);
                    let message = format_args!("{doing} \"{path}\" failed {}", SystemError(&failure.error));
                    self.complain(slot, now, message, outcome);
                }
            }
        }
        released
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    fn write_one<'a>(&mut self, named: &'a Named, now: i64) -> Result<(), Failure<'a>> {
        let testing = |error| Failure { doing: "testing", path: &named.root, error };
        let opening = |error| Failure { doing: "open()", path: &named.path, error };
        let writing = |error| Failure { doing: "write() to", path: &named.path, error };
        let is_directory = std::fs::metadata(&named.root).map(|found| found.is_dir());
        if !is_directory.map_err(testing)? {
            return Err(testing(io::ErrorKind::NotADirectory.into()));
        }
        let Some(kept) = self.kept else {
            return named.open().map_err(opening)?.write_all(&named.lines).map_err(writing);
        };
        self.sweep(&kept, now);
        self.uses += 1;
        let last = self.uses;
        if let Some(known) = self.known.get_mut(&named.path) {
            (known.uses, known.last, known.used_at) = (known.uses + 1, last, now);
            if known.file.is_some() && is_past(known.checked_at, now, kept.valid.as_secs()) {
                known.check(&named.path, now);
            }
            if let Some(file) = &mut known.file {
                return file.write_all(&named.lines).map_err(writing);
            }
        }
        let mut file = named.open().map_err(|error| {
            self.known.remove(&named.path);
            opening(error)
        })?;
        let written = file.write_all(&named.lines).map_err(writing);
        let identity = file.metadata().map(|found| identity(&found)).unwrap_or_default();
        self.make_room(kept.max, &named.path);
        let known = self.known.entry(named.path.clone()).or_insert(Known {
            file: None,
            identity,
            uses: 1,
            last,
            used_at: now,
            checked_at: now,
        });
        (known.identity, known.checked_at) = (identity, now);
        known.file = Some(file).filter(|_| known.uses >= kept.min_uses);
        written
    }

    /// Closes files unused beyond their time; at most once a second.
    fn sweep(&mut self, kept: &KeptLogs, now: i64) {
        if std::mem::replace(&mut self.swept, now) != now {
            self.known.retain(|_, known| !is_past(known.used_at, now, kept.inactive.as_secs()));
        }
    }

    /// Closes the least recently used one if another would be one too many.
    fn make_room(&mut self, max: usize, path: &Path) {
        if self.known.len() < max || self.known.contains_key(path) {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, known)| known.last).map(|(path, _)| path.clone());
        oldest.map(|path| self.known.remove(&path));
    }

    fn complain(&mut self, slot: usize, now: i64, message: Arguments<'_>, outcome: &mut Outcome) {
        if self.complained.is_some_and(|then| (now - then).abs() < COMPLAINT_SECONDS) {
            return;
        }
        self.complained = Some(now);
        outcome.complaints.push((slot, Telling::new(Level::Crit, message, About::default())));
    }
}

impl Known {
    /// Whether the open file still has its name; else it is closed.
    fn check(&mut self, path: &Path, now: i64) {
        self.checked_at = now;
        let found = std::fs::metadata(path).map(|found| identity(&found));
        if found.ok() != Some(self.identity) {
            self.file = None;
        }
    }
}

impl Named {
    fn open(&self) -> io::Result<File> {
        open_with(&self.path, self.follows_links)
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// A clock that was set back makes everything old.
fn is_past(then: i64, now: i64, seconds: u64) -> bool {
    now < then || (now - then).unsigned_abs() >= seconds
}
