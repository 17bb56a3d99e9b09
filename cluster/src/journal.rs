//! What a node holds of a zone's log, on disk: `.millstream-cluster` in the cache directory.
//!
//! It is appended to after the zone has carried an order out, so that the end of the process at any moment repeats an order and
//! never loses one. It is written anew (temporary name, then rename) when most of it is outdated. One process has it; another one on the same
//! directory (the next one, at an upgrade) begins with a copy under an issuer of its own, and takes the file over
//! when the first has ended. Everything here blocks, for as long as an append takes. Next: `member`.

use crate::held::Held;
use crate::order::{Issuer, Order};
use crate::record::{self, Decoded};
use crate::secret::random;
use millstream_net::records;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const NAME: &str = ".millstream-cluster";
/// Its file is never replaced, so that a lock on it is a lock for all.
const LOCK: &str = ".millstream-cluster-lock";
/// In bytes. A longer file is not ours.
const LONGEST: u64 = 256 * 1024 * 1024;
/// Outdated records tolerated before the file is rewritten, and outdated bytes.
const SLACK: usize = 1024;
const SLACK_BYTES: usize = 4 * 1024 * 1024;

/// Orders of another process that this one carries out again.
const REPEATED: usize = 4096;

/// What was found at the start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No journal: the zone may hold anything.
    Nothing,
    Journal,
    /// That of another process. It has these orders; the latest may have been carried out there after this
    /// process has opened its zone.
    Copy(Vec<Order>),
    /// It cannot be read, so orders that were carried out or given are unknown.
    Damaged,
}

#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) held: Held,
    directory: Option<PathBuf>,
    lock: Option<File>,
    file: Option<File>,
    records: usize,
    /// Of the file, in bytes, as it is and as it was when it was rewritten.
    length: (usize, usize),
    /// Not written yet.
    bytes: Vec<u8>,
    added: usize,
}

impl Journal {
    /// Without a directory it is kept in memory alone.
    ///
    /// # Errors
    /// The directory cannot be written to, or the system gives no random bytes.
    pub(crate) fn open(directory: Option<&Path>) -> io::Result<(Journal, Found)> {
        let issuer = random().map(Issuer).ok_or_else(|| io::Error::other("no random bytes"))?;
        let mut journal = Journal {
            held: Held::new(issuer),
            directory: directory.map(Path::to_path_buf),
            lock: None,
            file: None,
            records: 0,
            length: (0, 0),
            bytes: Vec::new(),
            added: 0,
        };
        let Some(directory) = directory else { return Ok((journal, Found::Nothing)) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        journal.lock = lock(directory)?;
        let Decoded { held, end } = match records::read(&directory.join(NAME), LONGEST) {
            Ok(Some(bytes)) => record::decode(&bytes),
            Ok(None) => Decoded::default(),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Decoded::damaged(),
            Err(error) => return Err(error),
        };
        let found = match (end.damaged, held) {
            (false, Some(held)) => {
                journal.held = held;
                Found::Journal
            }
            (true, _) => Found::Damaged,
            // Cut before its first record was whole.
            (false, None) if end.torn => Found::Damaged,
            (false, None) => Found::Nothing,
        };
        match journal.lock {
            Some(_) => journal.rewrite()?,
            // The other process goes on with its numbers.
            None => {
                let skipped = journal.held.len().saturating_sub(REPEATED);
                let latest = journal.held.orders().skip(skipped).map(|(_, order)| order.clone()).collect();
                journal.held = journal.held.as_another(issuer);
                if found == Found::Journal {
                    return Ok((journal, Found::Copy(latest)));
                }
            }
        }
        Ok((journal, found))
    }

    /// Adds an order that this node gives.
    pub(crate) fn give(&mut self, order: Order) {
        self.note(None, &order);
        self.held.issued = order.number;
        self.held.add(None, order);
    }

    /// Notes an order that was carried out.
    pub(crate) fn carried_out(&mut self, order: Order, place: u64) {
        self.note(Some(place), &order);
        self.held.carried_out(order, place);
    }

    /// Notes that an order is in the log at a place.
    pub(crate) fn place(&mut self, issuer: Issuer, number: u64, place: u64) {
        if let Some(order) = self.held.place(issuer, number, place) {
            let order = order.clone();
            self.note(Some(place), &order);
        }
    }

    fn note(&mut self, place: Option<u64>, order: &Order) {
        if self.directory.is_some() {
            record::order(place, order, &mut self.bytes);
            self.added += 1;
        }
    }

    /// Writes what was noted, and the state.
    ///
    /// # Errors
    /// The file cannot be written: what it lacks is written with the next call that can.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if self.lock.is_none() {
            self.bytes.clear();
            return Ok(());
        }
        let (length, rewritten) = self.length;
        let is_short = self.records <= 2 * self.held.len() + SLACK && length <= 2 * rewritten + SLACK_BYTES;
        let Some(mut file) = self.file.as_ref().filter(|_| is_short) else { return self.rewrite() };
        record::state(&self.held, &mut self.bytes);
        let written = file.write_all(&self.bytes);
        self.records += self.added + 1;
        self.length.0 += self.bytes.len();
        (self.added, self.bytes) = (0, Vec::new());
        if written.is_err() {
            // What stands in the file now is not known.
            self.file = None;
        }
        written
    }

    /// Whether another process has the file.
    pub(crate) fn is_copy(&self) -> bool {
        self.directory.is_some() && self.lock.is_none()
    }

    /// Takes the file over if the process that had it has ended: what it gave and did not publish is
    /// published by this one. Returns whether it was taken.
    pub(crate) fn take_over(&mut self) -> io::Result<bool> {
        let Some(directory) = self.directory.clone().filter(|_| self.is_copy()) else { return Ok(false) };
        self.lock = lock(&directory)?;
        if self.lock.is_none() {
            return Ok(false);
        }
        if let Some(bytes) = records::read(&directory.join(NAME), LONGEST)?
            && let Some(other) = record::decode(&bytes).held
        {
            let missing = other.orders().filter(|(place, _)| place.is_none());
            missing.for_each(|(_, order)| self.held.add(None, order.clone()));
        }
        self.rewrite().map(|()| true)
    }

    /// Of the file as it is now, to be synced elsewhere.
    pub(crate) fn handle(&self) -> Option<File> {
        self.file.as_ref()?.try_clone().ok()
    }

    /// Writes everything anew, as after a change of the epoch.
    pub(crate) fn rewrite(&mut self) -> io::Result<()> {
        self.file = None;
        (self.added, self.bytes) = (0, Vec::new());
        let Some(directory) = self.directory.as_ref().filter(|_| self.lock.is_some()) else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let temporary = directory.join(format!(".millstream-{}-cluster", std::process::id()));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&temporary)?;
        file.set_len(0)?;
        let whole = record::whole(&self.held);
        file.write_all(&whole)?;
        if self.held.has_unplaced() {
            file.sync_all()?;
        }
        fs::rename(&temporary, directory.join(NAME))?;
        (self.file, self.records) = (Some(file), self.held.len() + 1);
        self.length = (whole.len(), whole.len());
        Ok(())
    }
}

/// `None` if another process has it.
fn lock(directory: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(directory.join(LOCK))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::Cursor;
    use crate::order::{How, What};
    use crate::tests::engine::FORKING;
    use std::sync::{PoisonError, RwLockReadGuard};

    fn order(issuer: Issuer, number: u64) -> Order {
        Order { issuer, number, at: 0, how: How::Hard, awaited: false, what: What::All }
    }

    fn open(directory: &Path) -> (Journal, Found) {
        Journal::open(Some(directory)).expect("a directory")
    }

    /// No other process begins meanwhile.
    fn alone() -> RwLockReadGuard<'static, ()> {
        FORKING.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_restart_goes_on_where_the_last_write_was() {
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a directory");
        let (mut journal, found) = open(directory.path());
        assert_eq!(found, Found::Nothing);
        let issuer = journal.held.issuer;
        journal.give(order(issuer, 1));
        journal.held.cursor = Cursor { epoch: 1, sequence: 7 };
        journal.write().expect("written");
        journal.carried_out(order(Issuer([9; 16]), 1), 8);
        journal.write().expect("written");
        let held = journal.held.clone();
        drop(journal);
        let (journal, found) = open(directory.path());
        assert_eq!((found, &journal.held), (Found::Journal, &held));
    }

    #[test]
    fn a_second_process_has_an_issuer_of_its_own_and_takes_over_what_the_first_did_not_publish() {
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a directory");
        let (mut first, _) = open(directory.path());
        let issuer = first.held.issuer;
        first.write().expect("written");
        let (mut second, found) = open(directory.path());
        assert_eq!(found, Found::Copy(Vec::new()));
        assert_ne!(second.held.issuer, issuer);
        assert!(!second.take_over().expect("read"));
        first.give(order(issuer, 1));
        first.write().expect("written");
        drop(first);
        assert!(second.take_over().expect("read"));
        assert_eq!(second.held.others_unplaced(9), [order(issuer, 1)]);
        let held = second.held.clone();
        drop(second);
        assert_eq!(open(directory.path()).0.held, held);
    }

    #[test]
    fn a_damaged_journal_is_replaced_under_a_new_issuer() {
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a directory");
        let (journal, _) = open(directory.path());
        let issuer = journal.held.issuer;
        drop(journal);
        for (damage, length) in [(&b"MILLCLUS"[..], 8), (b"", 0), (&[0; 100], 100), (b"", LONGEST + 1)] {
            fs::write(directory.path().join(NAME), damage).expect("written");
            let file = File::options().write(true).open(directory.path().join(NAME)).expect("there");
            file.set_len(length).expect("a sparse file");
            let (journal, found) = open(directory.path());
            assert_eq!(found, Found::Damaged);
            assert_ne!(journal.held.issuer, issuer);
            drop(journal);
            assert_eq!(open(directory.path()).1, Found::Journal);
        }
    }

    #[test]
    fn a_journal_does_not_grow_without_end() {
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a directory");
        let (mut journal, _) = open(directory.path());
        let length = || fs::metadata(directory.path().join(NAME)).expect("there").len();
        for _ in 0..5_000 {
            journal.write().expect("written");
        }
        assert!(length() < 200_000);
        let marks = (0..1_000_u64)
            .map(|issuer| (Issuer([issuer as u8, (issuer >> 8) as u8].repeat(8).try_into().expect("16")), 1));
        journal.held.marks.reopen(marks);
        for number in 1..2_000 {
            journal.give(order(journal.held.issuer, number));
            journal.write().expect("written");
            assert!(length() < 2 * SLACK_BYTES as u64);
        }
    }
}
