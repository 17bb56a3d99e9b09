//! The rules of a zone on disk: a file for each cause in the cache directory, appended to, so that no restart forgets a purge.
//!
//! A purge is promised once its record is on the disk itself (`fdatasync`); purges that come at the same time share one
//! such write. A rule that comes of a change outlasts this process once it is written, as files do that are removed. A record that was
//! cut is ignored, for it was never promised; damage before the end purges the whole zone, or all pieces in it. The file is written anew (temporary name, then rename) when most of it is outdated, when it is gone, and after a
//! write that failed. Everything here blocks. Next: `store/purge`, which calls it off the loop.

use super::rule::{self, Cause, MAGIC, Rule};
use super::{How, Purges};
use millstream_net::records;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In bytes. A longer file is not ours: ours are rewritten long before.
const LONGEST: u64 = 64 * 1024 * 1024;
/// Outdated records tolerated before the file is rewritten.
const SLACK: usize = 1024;

#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    cause: Cause,
    queue: Mutex<Records>,
    state: Mutex<InFile>,
}

#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
    records: usize,
    tickets: u64,
}

#[derive(Debug)]
struct InFile {
    file: Option<File>,
    /// Records in the file, as far as this process knows.
    records: usize,
    /// Everything up to this ticket is on disk.
    written: u64,
}

impl Cause {
    fn name(self) -> &'static str {
        match self {
            Cause::Purge => ".millstream-purges",
            Cause::Change => ".millstream-pieces",
        }
    }

    /// Makes a write survive a power failure, if that was promised.
    fn sync(self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self == Cause::Purge { sync() } else { Ok(()) }
    }
}

impl Journal {
    /// Reads the journal of a directory into `purges`. `now` is in milliseconds since 1970. An error means
    /// that what could not be read was replaced by a purge of everything it may apply to.
    pub(crate) fn open(
        directory: &Path,
        cause: Cause,
        purges: &Purges,
        now: i64,
    ) -> (Journal, io::Result<()>) {
        let mut state = InFile { file: None, records: 0, written: 0 };
        let path = directory.join(cause.name());
        let read = records::read(&path, LONGEST).and_then(|read| {
            let Some(bytes) = read else { return Ok(false) };
            let decoded = rule::decode(&bytes);
            purges.restore(&decoded.rules);
            state.records = decoded.rules.len();
            match decoded.end.damaged {
                true => Err(io::Error::new(io::ErrorKind::InvalidData, "the purge journal is damaged")),
                false => Ok(!decoded.end.torn),
            }
        });
        let whole = match read {
            // Without a file to go on with, the first purge writes all rules anew.
            Ok(whole) => {
                if whole {
                    state.file = OpenOptions::new().append(true).open(path).ok();
                }
                Ok(())
            }
            Err(error) => {
                purges.declare(cause.widest(), How::Hard, now);
                // Where this fails too, the next start purges everything once more.
                let kept = state.rewrite(directory, cause, purges);
                Err(kept.err().unwrap_or(error))
            }
        };
        let (directory, queue) = (directory.to_path_buf(), Mutex::default());
        let journal = Journal { directory, cause, queue, state: Mutex::new(state) };
        (journal, whole)
    }

    /// Writes a rule of its cause that is in force already; when this returns, it survives a restart.
    pub(crate) fn append(&self, rule: &Rule, purges: &Purges) -> io::Result<()> {
        let ticket = {
            let mut queue = lock(&self.queue);
            rule.encode(&mut queue.bytes);
            queue.records += 1;
            queue.tickets += 1;
            queue.tickets
        };
        let mut state = lock(&self.state);
        if state.written >= ticket {
            // Whoever wrote before has taken this record along.
            return Ok(());
        }
        let Records { bytes, records, tickets } = {
            let mut queue = lock(&self.queue);
            let tickets = queue.tickets;
            std::mem::replace(&mut *queue, Records { tickets, ..Records::default() })
        };
        let written = match state.file_in_place(&self.directory, self.cause) {
            Some(file) if state.records <= 2 * purges.rules().len(self.cause) + SLACK => {
                let mut file = file;
                file.write_all(&bytes).and_then(|()| self.cause.sync(|| file.sync_data()))
            }
            _ => state.rewrite(&self.directory, self.cause, purges),
        };
        match written {
            Ok(()) => {
                state.records += records;
                state.written = tickets;
            }
            // What stands in the file now is not known: the next write begins anew, with these rules too.
            Err(_) => state.file = None,
        }
        written
    }
}

impl InFile {
    /// The file, if it still has its name: the directory may have been removed, or another process (the next
    /// one, at an upgrade) may have written a new journal.
    fn file_in_place(&self, directory: &Path, cause: Cause) -> Option<&File> {
        let file = self.file.as_ref()?;
        let (held, named) = (file.metadata().ok()?, fs::metadata(directory.join(cause.name())).ok()?);
        ((held.dev(), held.ino()) == (named.dev(), named.ino())).then_some(file)
    }

    /// Writes all rules, including those of a file that another process has put there.
    fn rewrite(&mut self, directory: &Path, cause: Cause, purges: &Purges) -> io::Result<()> {
        self.file = None;
        let path = directory.join(cause.name());
        if let Ok(Some(bytes)) = records::read(&path, LONGEST) {
            purges.restore(&rule::decode(&bytes).rules);
        }
        let rules = purges.rules().list(cause);
        let mut bytes = MAGIC.to_vec();
        rules.iter().for_each(|rule| rule.encode(&mut bytes));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // With the process in it, as temporary files of the cache have it: left behind, it is removed like them.
        let kind = cause.name().trim_start_matches(".millstream-");
        let temporary = directory.join(format!(".millstream-{}-{kind}", std::process::id()));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&temporary)?;
        file.set_len(0)?;
        file.write_all(&bytes)?;
        cause.sync(|| file.sync_all())?;
        fs::rename(&temporary, path)?;
        // The name has to be on the disk before the file is relied on.
        cause.sync(|| File::open(directory)?.sync_all())?;
        (self.file, self.records) = (Some(file), rules.len());
        Ok(())
    }
}

/// What these locks guard is consistent between any two statements that could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
