//! Files that others removed: out of the index, and what memory has of them with it.
//!
//! A removal told by the kernel is believed only after a look: a newer file may have the name already, and what this
//! process removes itself is no longer in the index. Where events were lost, or a directory cannot be watched, every
//! file is looked for once, a few at a time. Next: `watch`, which tells; `keeper`, which calls.

use super::files::Cursor;
use super::kept::KeptFiles;
use super::place::Name;

const BATCH: usize = 256;

#[derive(Debug)]
pub(super) struct Recheck {
    cursor: Cursor,
}

impl Recheck {
    pub(super) fn begin() -> Recheck {
        Recheck { cursor: Cursor::begin() }
    }

    /// `gone` gets each missing file. False after the last.
    pub(super) fn step(&mut self, kept: &KeptFiles, mut gone: impl FnMut(&Name, u64)) -> bool {
        for name in &kept.index.names(&mut self.cursor, BATCH) {
            kept.watch(name);
            if let Some(key) = kept.unlinked(name) {
                gone(name, key);
            }
        }
        !self.cursor.is_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::samples::zone;
    use millstream_telemetry::error_log::ErrorLogs;
    use std::fs;

    #[test]
    fn where_nothing_is_told_every_file_is_looked_for_and_those_that_are_gone_are_found() {
        let folder = tempfile::tempdir().expect("a directory");
        let disk = Disk::open(&zone(Some(folder.path())), folder.path(), None, ErrorLogs::default())
            .expect("it can be written");
        for number in 0..1000u16 {
            let mut name = [7; 16];
            name[..2].copy_from_slice(&number.to_le_bytes());
            disk.kept.index.insert(name, 1, 0, 0, u64::from(number));
            if number % 2 == 0 {
                fs::create_dir_all(disk.path(&name).parent().expect("a directory")).expect("made");
                fs::write(disk.path(&name), b"").expect("written");
            }
        }
        let (mut recheck, mut gone, mut steps) = (Recheck::begin(), Vec::new(), 1);
        while recheck.step(&disk.kept, |_, key| gone.push(key)) {
            steps += 1;
        }
        gone.sort_unstable();
        assert_eq!(gone, (0..1000).filter(|key| key % 2 == 1).collect::<Vec<u64>>());
        assert_eq!((steps, disk.kept.index.len()), (4, 500));
    }
}
