//! What is under a path: looked at on the loop where the kernel has the names in its memory.
//!
//! A name that was asked for a moment ago, there or not, is known at once; any other takes a disk, and a thread of `blocking`.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Nothing is opened but the name, so that no pipe and no device hears of it.
const NAME_ALONE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// What the kernel knows of a path without waiting, links followed; `None` where it has to ask a disk, or does not know how to
/// say so (Linux before 5.12).
pub fn look_at_once(path: &Path) -> Option<io::Result<Metadata>> {
    match openat2(CWD, path, NAME_ALONE, Mode::empty(), ResolveFlags::CACHED) {
        Err(Errno::AGAIN | Errno::NOSYS | Errno::INVAL | Errno::PERM) => None,
        Err(error) => Some(Err(error.into())),
        Ok(name) => Some(File::from(name).metadata()),
    }
}

#[cfg(test)]
mod tests {
    use super::look_at_once;
    use std::io::ErrorKind;

    #[test]
    fn what_is_said_at_once_is_what_is_there() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("a");
        std::fs::write(&path, b"abc").expect("written");
        std::os::unix::fs::symlink(&path, place.path().join("link")).expect("linked");
        for (name, length) in [("a", 3), ("link", 3)] {
            let path = place.path().join(name);
            path.metadata().expect("it is there");
            if let Some(found) = look_at_once(&path) {
                assert_eq!(found.expect("it is there").len(), length, "{name}");
            }
        }
        for (name, kind) in [("none", ErrorKind::NotFound), ("a/b", ErrorKind::NotADirectory)] {
            if let Some(found) = look_at_once(&place.path().join(name)) {
                assert_eq!(found.expect_err("nothing is there").kind(), kind, "{name}");
            }
        }
    }
}
