//! Directories with all that is in them, copied or removed. It blocks: for threads of `blocking` only.
//!
//! Each directory is opened from the one it is in, and never through a link.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Depth of directories copied or removed: each level holds descriptors.
const DEEPEST: usize = 200;

pub(super) fn copy(from: &OwnedFd, to: &OwnedFd, names: (&CStr, &CStr)) -> io::Result<()> {
    copy_directory(from, to, names, &mut CopyLimits::default())
}

#[derive(Default)]
struct CopyLimits {
    depth: usize,
    /// The new directory, which is not copied into itself.
    made: Option<(u64, u64)>,
}

/// Never follows a link.
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Skips links and special files, as nginx.
fn copy_directory(
    from: &OwnedFd,
    to: &OwnedFd,
    (name, new_name): (&CStr, &CStr),
    limits: &mut CopyLimits,
) -> io::Result<()> {
    if limits.depth == DEEPEST {
        return Err(Errno::MLINK.into());
    }
    let from = openat(from, name, LISTED, Mode::empty())?;
    let found = fstat(&from)?;
    mkdirat(to, new_name, Mode::from_raw_mode(0o700))?;
    let to = openat(to, new_name, LISTED, Mode::empty())?;
    if limits.made.is_none() {
        let made = fstat(&to)?;
        limits.made = Some((made.st_dev, made.st_ino));
    }
    limits.depth += 1;
    for entry in Dir::read_from(&from)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let inner = statat(&from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(inner.st_mode) {
            FileType::Directory if limits.made != Some((inner.st_dev, inner.st_ino)) => {
                copy_directory(&from, &to, (name, name), limits)?;
            }
            FileType::RegularFile => copy_file(from.as_fd(), to.as_fd(), name)?,
            _ => {}
        }
    }
    limits.depth -= 1;
    let to = File::from(to);
    to.set_permissions(Permissions::from_mode(found.st_mode & 0o777))?;
    to.set_modified(File::from(from).metadata()?.modified()?)
}

fn copy_file(from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let common = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(from, name, OFlags::RDONLY | OFlags::NONBLOCK | common, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | common;
    let new = openat(to, name, flags, Mode::from_raw_mode(0o600))?;
    copy_content(file.into(), &mut new.into())
}

pub(super) fn copy_content(mut from: File, new: &mut File) -> io::Result<()> {
    let found = from.metadata()?;
    if !found.is_file() {
        return Err(Errno::PERM.into());
    }
    io::copy(&mut from, new)?;
    new.set_permissions(Permissions::from_mode(found.mode() & 0o777))?;
    new.set_modified(found.modified()?)
}

/// Continues after a failure and returns the first.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &CStr, depth: usize) -> io::Result<()> {
    if depth == DEEPEST {
        return Err(Errno::MLINK.into());
    }
    let directory = openat(parent, name, LISTED, Mode::empty())?;
    let mut outcome = Ok(());
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let inner = entry.file_name();
        if matches!(inner.to_bytes(), b"." | b"..") {
            continue;
        }
        let removed = match unlinkat(&directory, inner, AtFlags::empty()) {
            Err(Errno::ISDIR) => remove(directory.as_fd(), inner, depth + 1),
            removed => removed.map_err(io::Error::from),
        };
        outcome = outcome.and(removed);
    }
    let removed = unlinkat(parent, name, AtFlags::REMOVEDIR);
    outcome.and(removed.map_err(io::Error::from))
}
