//! What tells one state of a file from the next, without reading it.
//!
//! Whoever reads a file looks at it *before*: what changes meanwhile is then read once more. Next: `evaluated` and `held`, which go by it.

use millstream_conf::files;
use millstream_conf::model::PemSource;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a file is: another one in its place has another inode, and whatever is done to one moves the time of its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// That of a file; nothing where it is not there.
    pub(super) fn of_file(path: &Path) -> Option<Stamp> {
        let about = match fs::metadata(path) {
            // Where this process may not look, an opener may.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                files::open(path).ok()?.metadata()
            }
            found => found,
        };
        let about = about.ok()?;
        Some(Stamp { inode: about.ino(), length: about.len(), changed: (about.ctime(), about.ctime_nsec()) })
    }

    /// That of a source; nothing where it is no file.
    pub(super) fn of(source: &PemSource) -> Option<Stamp> {
        match source {
            PemSource::File(path) => Stamp::of_file(path),
            _ => None,
        }
    }
}
