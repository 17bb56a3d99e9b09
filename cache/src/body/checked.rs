//! Which blocks of a file were found to be as they were written, so that the kernel may send them unread.
//!
//! Reading a block to check it costs as much as copying it out, so each is checked once while its file stays what it
//! was: the same inode, not written since (its change time). What rots on the disk later, behind the filesystem's back,
//! is not noticed until the file is opened by another process; a block that has to be fetched from the disk again is
//! checked again. Next: `body`, which reads.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of an entry's file; shared by all who read it.
#[derive(Debug, Default)]
pub(crate) struct Checked(Mutex<Option<(Stamp, Arc<Blocks>)>>);

/// Tells a file from itself after a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
    length: u64,
}

/// One bit for each block, and one for the table of their checksums.
#[derive(Debug)]
pub(crate) struct Blocks {
    words: Box<[AtomicU64]>,
    table: AtomicBool,
}

impl Checked {
    /// `blocks` is the number of blocks the file has now.
    pub(crate) fn of(&self, found: &Metadata, blocks: u64) -> Arc<Blocks> {
        let stamp = Stamp {
            device: found.dev(),
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
            length: found.len(),
        };
        // A statement that panics leaves what is there whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((before, blocks)) if *before == stamp => blocks.clone(),
            _ => {
                let none = Arc::new(Blocks::none(blocks));
                *known = Some((stamp, none.clone()));
                none
            }
        }
    }
}

impl Blocks {
    fn none(blocks: u64) -> Blocks {
        // At most an eighth of a byte for 64 KiB of a file that is there.
        let words = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Blocks { words, table: AtomicBool::new(false) }
    }

    pub(crate) fn has(&self, block: u64) -> bool {
        let word = usize::try_from(block / 64).ok().and_then(|at| self.words.get(at));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
    }

    pub(crate) fn has_table(&self) -> bool {
        self.table.load(Ordering::Relaxed)
    }

    pub(crate) fn add_table(&self) {
        self.table.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, block: u64) {
        if let Some(word) = usize::try_from(block / 64).ok().and_then(|at| self.words.get(at)) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_found_holds_until_the_file_is_written_to() {
        let mut file = tempfile::tempfile().expect("a file");
        let checked = Checked::default();
        let now = |file: &std::fs::File| checked.of(&file.metadata().expect("open"), 130);
        now(&file).add(129);
        now(&file).add(0);
        now(&file).add(500);
        let found: Vec<u64> = (0..600).filter(|&block| now(&file).has(block)).collect();
        assert_eq!(found, [0, 129]);
        file.write_all(b"x").expect("written");
        assert!((0..130).all(|block| !now(&file).has(block)));
    }
}
