//! A file of nginx as it is read: its text, and owner and mode of that very file.
//!
//! Whoever imports may be root, and whose files they are somebody else, who changes them meanwhile. So what a copy gets of a file is asked of the
//! descriptor that its text came through, never again of its name. Next: `plan`, which keeps both.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const MOST_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Likeness {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
}

impl Likeness {
    pub(super) fn of(found: &Metadata) -> Likeness {
        let kept = if found.is_dir() { 0o3777 } else { 0o777 };
        Likeness { uid: found.uid(), gid: found.gid(), mode: found.mode() & kept }
    }
}

pub(super) fn read(path: &Path) -> io::Result<(Vec<u8>, Likeness)> {
    // A pipe would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("the file is too large"));
    }
    Ok((text, Likeness::of(&found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_read_with_its_mode_and_a_pipe_is_not_waited_for() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("users");
        std::fs::write(&file, "a:b").expect("written");
        std::fs::set_permissions(&file, Permissions::from_mode(0o4640)).expect("own");
        let (text, like) = read(&file).expect("it is there");
        assert_eq!((&*text, like.mode), (&b"a:b"[..], 0o640));
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("made");
        assert_eq!(read(&pipe).expect_err("not a regular file").to_string(), "not a regular file");
    }
}
