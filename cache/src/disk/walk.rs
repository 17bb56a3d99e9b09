//! A walk over every file of a zone, a round at a time: each that was there at its beginning is met.
//!
//! Next: `survey` and `keeper`, which go for one.

use super::files::Cursor;
use super::kept::KeptFiles;
use super::pace::Round;
use super::place::Name;

const BATCH: usize = 64;

#[derive(Debug)]
pub(super) struct Walk {
    cursor: Cursor,
    names: Vec<Name>,
}

impl Walk {
    pub(super) fn begin() -> Walk {
        Walk { cursor: Cursor::begin(), names: Vec::new() }
    }

    /// False after the last file.
    pub(super) fn step(&mut self, kept: &KeptFiles, round: &mut Round, mut meet: impl FnMut(&Name)) -> bool {
        loop {
            if self.names.is_empty() {
                if self.cursor.is_end() {
                    return false;
                }
                self.names = kept.index.names(&mut self.cursor, BATCH);
                // Taken from the end, so the highest has to be last.
                self.names.reverse();
            }
            let Some(name) = self.names.pop() else { continue };
            meet(&name);
            if !round.takes() {
                return true;
            }
        }
    }
}
