//! Lists the files that are there at start, in the background, so that the zone's bounds hold for them too.
//!
//! Nothing waits for it: until it is done a miss looks for its file itself. Only names and sizes are read. It also
//! removes temporary files that a process left behind which is no longer there. Next: `read`.

use super::{Disk, TEMPORARY, lock, name_of};
use crate::now::Now;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;

pub(super) fn start(disk: &Arc<Disk>) -> io::Result<()> {
    let weak = Arc::downgrade(disk);
    let (root, depth) = (disk.root.clone(), disk.levels.len());
    thread::Builder::new().name("cache-loader".to_owned()).spawn(move || {
        // A zone that a reload adds is listed by a thread of the main thread, which has rights that this needs none of.
        _ = millstream_net::privileges::renounce();
        let temporary = weak.upgrade().map(|disk| disk.temporary.clone());
        list(&weak, &root, depth);
        if let Some(temporary) = temporary.filter(|path| *path != root) {
            remove_leftovers(&temporary);
        }
        if let Some(disk) = weak.upgrade() {
            disk.loaded.store(true, Ordering::Release);
        }
    })?;
    Ok(())
}

/// Lists one directory; `depth` levels lie below it. Ends early once nobody uses the zone any more.
fn list(disk: &Weak<Disk>, directory: &Path, depth: usize) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut below: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(TEMPORARY.as_bytes()) {
            remove_leftover(&entry.path());
        } else if depth > 0 && name.len() <= 2 {
            below.push(entry.path());
        } else if depth == 0
            && let Some(name) = name_of(name)
            && let Ok(found) = entry.metadata()
        {
            let Some(disk) = disk.upgrade() else { return };
            // How long it was unused before nobody knows; nginx begins to count anew too.
            lock(&disk.index).note(name, found.len(), super::second(Now::read()));
        }
    }
    below.iter().for_each(|path| list(disk, path, depth - 1));
}

fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            remove_leftover(&entry.path());
        }
    }
}

/// Removes a temporary file whose process is gone. One of a process that runs (the old one, during an upgrade) stays.
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
