//! What the files that were there at the start say of themselves, for whoever has to know of all of them: read once, when somebody
//! asks for it.
//!
//! Heads are read, bodies are not, at the pace of `loader_files`, `loader_threshold` and `loader_sleep`. In a directory without files
//! there is nothing to ask for. Next: `keeper`, which calls it.

use super::kept::KeptFiles;
use super::pace::Round;
use super::walk::Walk;
use crate::file_format::FileHead;
use std::io::ErrorKind;

#[derive(Debug)]
pub(super) struct Survey {
    walk: Walk,
    /// Whether some file could not be read for now.
    is_partial: bool,
}

impl Survey {
    pub(super) fn begin() -> Survey {
        Survey { walk: Walk::begin(), is_partial: false }
    }

    /// After the last file: whether each was read.
    pub(super) fn step(
        &mut self,
        kept: &KeptFiles,
        round: &mut Round,
        mut meet: impl FnMut(&FileHead),
    ) -> Option<bool> {
        let is_partial = &mut self.is_partial;
        let goes_on = self.walk.step(kept, round, |name| match kept.read_head(name) {
            Ok((head, _)) => meet(&head),
            // What is gone, damaged or not ours is never answered from.
            Err(error) => {
                *is_partial |= !matches!(
                    error.kind(),
                    ErrorKind::NotFound
                        | ErrorKind::InvalidData
                        | ErrorKind::UnexpectedEof
                        | ErrorKind::Unsupported
                );
            }
        });
        (!goes_on).then_some(!self.is_partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, Identity};
    use crate::samples::{head, start, zone};
    use crate::{file_format, key};
    use millstream_telemetry::error_log::ErrorLogs;
    use std::fs;

    #[test]
    fn only_what_may_be_read_another_time_leaves_it_partial() {
        let folder = tempfile::tempdir().expect("a directory");
        let zone = zone(Some(folder.path()));
        let disk = Disk::open(&zone, folder.path(), None, ErrorLogs::default()).expect("it can be written");
        let paths = ["a", "b", "c", "d"].map(|key| {
            let (name, stored) = (key::md5(key.as_bytes()), head(&[], Some(0), 60, start()));
            let bytes = file_format::encode_head(key.as_bytes(), None, stored.view());
            let spool = disk.begin(&bytes, Identity { id: 1, epoch: 1, born: 0 }, 0).expect("room");
            disk.commit(spool, &name, (1, 0), start(), || true).expect("room");
            disk.path(&name)
        });
        let surveyed = || {
            let (mut survey, mut met) = (Survey::begin(), Vec::new());
            let whole = loop {
                let met = |head: &FileHead| met.push(String::from_utf8_lossy(&head.key).into_owned());
                if let Some(whole) = survey.step(&disk.kept, &mut Round::begin(zone.loader_pace), met) {
                    break whole;
                }
            };
            met.sort();
            (whole, met.concat())
        };
        assert_eq!(surveyed(), (true, "abcd".to_owned()));
        fs::remove_file(&paths[0]).expect("it was there");
        fs::write(&paths[1], b"damaged").expect("written");
        assert_eq!(surveyed(), (true, "cd".to_owned()));
        fs::remove_file(&paths[2]).expect("it was there");
        fs::create_dir(&paths[2]).expect("there is room for it");
        assert_eq!(surveyed(), (false, "d".to_owned()));
    }
}
