//! Lists the files that are there at start, in the background, so that the zone's bounds hold for them too.
//!
//! Nothing waits for it: until it is done a miss looks for its file itself. Only names and sizes are read, at the pace
//! of `loader_files`, `loader_threshold` and `loader_sleep`. It also removes temporary files that a process left behind
//! which is no longer there. Next: `keeper`, which calls it.

use super::pace::Round;
use super::place::{Directory, name_of};
use super::{Disk, TEMPORARY, second};
use crate::now::Now;
use std::fs::{self, ReadDir};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Position of the listing: the open directories, nested.
#[derive(Debug)]
pub(super) struct Listing {
    open: Vec<(ReadDir, Directory)>,
}

impl Listing {
    pub(super) fn begin(disk: &Disk) -> Listing {
        let mut listing = Listing { open: Vec::with_capacity(disk.kept.tree.levels.len() + 1) };
        listing.enter(disk, &disk.kept.tree.root, Directory::ROOT);
        listing
    }

    /// False once everything is listed.
    pub(super) fn step(&mut self, disk: &Disk, round: &mut Round) -> bool {
        let now = second(Now::read());
        while let Some((entries, directory)) = self.open.last_mut() {
            let Some(entry) = entries.next() else {
                self.open.pop();
                continue;
            };
            let (Ok(entry), directory) = (entry, *directory) else { continue };
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            let width = disk.kept.tree.levels.get(self.open.len() - 1).copied();
            if name.starts_with(TEMPORARY.as_bytes()) {
                remove_leftover(&entry.path());
            } else if let Some(below) = width.and_then(|width| directory.below(name, width)) {
                self.enter(disk, &entry.path(), below);
            } else if width.is_none()
                && let Some(name) = name_of(name)
                && disk.kept.tree.directory(&name) == directory
                && let Ok(found) = entry.metadata()
            {
                // How long it was unused before nobody knows; nginx begins to count anew too.
                disk.kept.index.note(name, found.len(), now);
                if !round.takes() {
                    return true;
                }
            }
        }
        if disk.temporary != disk.kept.tree.root {
            remove_leftovers(&disk.temporary);
        }
        disk.loaded.store(true, Ordering::Release);
        let (files, bytes) = disk.size();
        disk.kept.tell(format_args!("files listed: {files}, {bytes} bytes on the disk"));
        false
    }

    /// Watched before it is read, so that later removals are reported.
    fn enter(&mut self, disk: &Disk, path: &Path, directory: Directory) {
        disk.kept.watch_directory(directory);
        if let Ok(entries) = fs::read_dir(path) {
            self.open.push((entries, directory));
        }
    }
}

fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            remove_leftover(&entry.path());
        }
    }
}

/// Removes a temporary file of an ended process. Those of a running one (the old one, during an upgrade)
/// stay.
fn remove_leftover(path: &Path) {
    let process = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix(TEMPORARY))
        .and_then(|rest| rest.split('-').next())
        .and_then(|number| number.parse::<u32>().ok());
    if process.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists()) {
        // Whether it could be removed changes nothing for anybody.
        let _ = fs::remove_file(path);
    }
}
