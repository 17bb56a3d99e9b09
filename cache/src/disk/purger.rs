//! `purger=on`: looks at every file after a purge and removes those that the purge goes for.
//!
//! Without it they go when they are come upon or unused: what a purge touched is never answered either way, this only
//! frees the disk. Heads are read, bodies are not, at the pace of `purger_files`, `purger_threshold` and
//! `purger_sleep`. Next: `keeper`, which calls it.

use super::files::Cursor;
use super::pace::Round;
use super::place::Name;
use super::{Disk, lock};
use crate::file_format::FileHead;
use crate::key;

/// Names taken from the index at a time.
const BATCH: usize = 64;

/// A walk over all files, where it has come to.
#[derive(Debug)]
pub(super) struct Walk {
    cursor: Cursor,
    names: Vec<Name>,
}

impl Walk {
    pub(super) fn begin() -> Walk {
        Walk { cursor: Cursor::begin(), names: Vec::new() }
    }

    /// Walks on until the round is over; false once every file was looked at. `is_purged` is asked with what a file
    /// says of itself and where its fill stands among the purges.
    pub(super) fn step(
        &mut self,
        disk: &Disk,
        round: &mut Round,
        is_purged: impl Fn(&FileHead, u64) -> bool,
    ) -> bool {
        loop {
            if self.names.is_empty() {
                if self.cursor.is_end() {
                    return false;
                }
                self.names = disk.files.names(&mut self.cursor, BATCH);
                // Taken from the end, so the highest has to be last.
                self.names.reverse();
            }
            let Some(name) = self.names.pop() else { continue };
            disk.remove_where(&name, &is_purged);
            if !round.takes() {
                return true;
            }
        }
    }
}

impl Disk {
    fn remove_where(&self, name: &Name, is_purged: impl Fn(&FileHead, u64) -> bool) {
        // Under the stripe, so that what is removed is what was read. Damage is for those who want to answer from it. A
        // key's own file stays where there may be others of its variants: they count only beside it.
        let _stripe = lock(self.stripe(name));
        if let Ok((head, born)) = self.read_head(name)
            && !(head.vary.is_some() && key::md5(&head.key) == *name)
            && is_purged(&head, born)
        {
            self.remove(name);
        }
    }
}
