//! What is made once under the target folder, by one test program at a time.
//!
//! Who makes a folder takes its lock first, and keeps it until all in there is whole.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// The exclusive right to make a folder, as long as the value is kept.
pub fn alone(folder: &Path) -> File {
    fs::create_dir_all(folder.parent().unwrap_or(folder)).expect("the target folder is writable");
    let lock = File::create(folder.with_extension("lock")).expect("the target folder is writable");
    flock(&lock, FlockOperation::LockExclusive).expect("a lock on an own file");
    lock
}
