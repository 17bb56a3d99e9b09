//! `random_index`: a file of a directory by chance.
//!
//! As in nginx no name that begins with a dot is taken. The directory is read off the worker's loop, and none of it is kept: each file
//! takes the place of the one before with the right chance.

use millstream_net::blocking;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// `None` if the directory has no file.
pub async fn choose(directory: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let directory = directory.to_vec();
    blocking::run(move || {
        let chance = RandomState::new();
        let found = std::fs::read_dir(Path::new(OsStr::from_bytes(&directory)))?;
        pick(found, |count| chance.hash_one(count))
    })
    .await
}

fn pick(
    found: impl Iterator<Item = io::Result<DirEntry>>,
    chance: impl Fn(u64) -> u64,
) -> io::Result<Option<Vec<u8>>> {
    let (mut chosen, mut count) = (None, 0);
    for entry in found {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(b".") || !is_file(&entry) {
            continue;
        }
        count += 1;
        if chance(count).is_multiple_of(count) {
            chosen = Some(entry.file_name().into_vec());
        }
    }
    Ok(chosen)
}

fn is_file(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => entry.path().metadata().is_ok_and(|found| found.is_file()),
        Ok(kind) => kind.is_file(),
        Err(_) => false,
    }
}
