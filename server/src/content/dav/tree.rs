//! What `dav_methods` do to files. It blocks: for threads of `blocking` only.
//!
//! A file or directory is reached in the directory that holds it, which was opened as `disable_symlinks` allows, so that a link which
//! is put in its place meanwhile leads nowhere. New content is written under a name of its own and renamed. Links inside a directory
//! that is copied or removed are never followed.

use super::directory;
use crate::request::BodyFile;
use crate::symlinks::RefusedLinks;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CString, OsStr, OsString};
use std::fmt::Display;
use std::fs::{DirBuilder, File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub(super) struct DavRefusal {
    pub(super) status: u16,
    pub(super) what: String,
}

pub(super) enum NewContent {
    Bytes(Vec<u8>),
    File { file: Arc<File>, length: u64, named: Option<BodyFile> },
}

pub(super) struct Upload {
    pub(super) path: PathBuf,
    pub(super) content: NewContent,
    pub(super) mode: u32,
    pub(super) makes_directories: bool,
    pub(super) modified: Option<SystemTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Zero,
    One,
    Infinity,
    Invalid,
}

pub(super) struct Removal {
    pub(super) path: PathBuf,
    /// Whether the URI ends in a slash.
    pub(super) is_collection: bool,
    pub(super) depth: Option<Depth>,
}

pub(super) struct CopyOrMove {
    /// Without a final slash.
    pub(super) from: PathBuf,
    /// Without a final slash.
    pub(super) to: PathBuf,
    pub(super) is_move: bool,
    pub(super) is_collection: bool,
    pub(super) overwrites: bool,
    /// Permissions of created files; those of directories follow from them.
    pub(super) mode: u32,
}

struct Entry<'p> {
    directory: OwnedFd,
    name: &'p OsStr,
}

/// `missing`: the status if the path does not exist.
fn refused(error: impl Into<io::Error>, missing: u16, what: &str, path: &Path) -> DavRefusal {
    let error = error.into();
    let status = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => missing,
        // Links that are not followed are refused as files are.
        Some(Errno::ACCESS | Errno::PERM | Errno::LOOP) => 403,
        Some(Errno::EXIST) => 405,
        Some(Errno::NOSPC) => 507,
        _ => 500,
    };
    DavRefusal { status, what: format!("{what} \"{}\" failed ({error})", path.display()) }
}

/// As in nginx a server error, unless links are refused.
fn unwritten(error: io::Error, what: &str, path: &Path) -> DavRefusal {
    let status = if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) { 403 } else { 500 };
    DavRefusal { status, ..refused(error, 500, what, path) }
}

fn wrong(status: u16, path: &Path, what: impl Display) -> DavRefusal {
    DavRefusal { status, what: format!("\"{}\" {what}", path.display()) }
}

/// Read permission implies search permission, as in nginx.
fn directory_mode(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

impl<'p> Entry<'p> {
    fn open(links: &RefusedLinks, path: &'p Path) -> io::Result<Entry<'p>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::PERM.into());
        };
        Ok(Entry { directory: links.directory(parent)?, name })
    }

    fn made(links: &RefusedLinks, path: &'p Path, mode: u32) -> io::Result<Entry<'p>> {
        let opened = Entry::open(links, path);
        let parent = path.parent().unwrap_or(path);
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_directories(links, parent, directory_mode(mode))?;
                Entry::open(links, path)
            }
            opened => opened,
        }
    }

    /// Does not follow a link.
    fn look(&self) -> Result<Stat, Errno> {
        statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Replaces the file atomically: `write` gets a temporary file beside it.
    fn replace(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        // Nobody guesses it: the standard library's hasher is keyed by the system's random source.
        let beside = OsString::from(format!(".millstream-{:016x}", RandomState::new().hash_one(self.name)));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.directory, beside.as_os_str(), flags, Mode::from_raw_mode(0o600))?;
        let written = write(&mut File::from(opened));
        let named = written
            .and_then(|()| Ok(renameat(&self.directory, beside.as_os_str(), &self.directory, self.name)?));
        if named.is_err() {
            _ = unlinkat(&self.directory, beside.as_os_str(), AtFlags::empty());
        }
        named
    }
}

/// Each parent is opened with the location's rules for links.
fn make_directories(links: &RefusedLinks, path: &Path, mode: u32) -> io::Result<()> {
    if !links.refuses_some() {
        return DirBuilder::new().recursive(true).mode(mode).create(path);
    }
    let entry = Entry::open(links, path);
    let entry = match entry {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directories(links, path.parent().unwrap_or(path), mode)?;
            Entry::open(links, path)?
        }
        entry => entry?,
    };
    match mkdirat(&entry.directory, entry.name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => Ok(()),
        made => Ok(made?),
    }
}

pub(super) fn put(links: &RefusedLinks, upload: Upload) -> Result<bool, DavRefusal> {
    let Upload { path, content, mode, makes_directories, modified } = upload;
    let failed = |error| unwritten(error, "PUT", &path);
    let opened = if makes_directories { Entry::made(links, &path, mode) } else { Entry::open(links, &path) };
    let entry = opened.map_err(failed)?;
    let is_new = match statat(&entry.directory, entry.name, AtFlags::empty()) {
        Ok(found) if is_directory(&found) => return Err(wrong(409, &path, "is a directory")),
        Ok(_) => false,
        Err(_) => entry.look().is_err(),
    };
    entry.fill(content, mode, modified).map_err(failed)?;
    Ok(is_new)
}

impl Entry<'_> {
    fn fill(&self, content: NewContent, mode: u32, modified: Option<SystemTime>) -> io::Result<()> {
        let finish = |file: &File| {
            file.set_permissions(Permissions::from_mode(mode))?;
            modified.map_or(Ok(()), |modified| file.set_modified(modified))
        };
        let (file, length) = match content {
            NewContent::Bytes(bytes) => {
                return self.replace(|new| {
                    new.write_all(&bytes)?;
                    finish(new)
                });
            }
            NewContent::File { file, length, named: Some(named) } => {
                finish(&file)?;
                match renameat(CWD, named.path.as_path(), &self.directory, self.name) {
                    Ok(()) => {
                        // Its old name is nobody's to remove any more.
                        _ = named.removed_by.map(tempfile::TempPath::keep);
                        return Ok(());
                    }
                    Err(Errno::XDEV) => (file, length),
                    Err(error) => return Err(error.into()),
                }
            }
            NewContent::File { file, length, named: None } => (file, length),
        };
        let mut from = file.try_clone()?;
        from.seek(SeekFrom::Start(0))?;
        self.replace(|new| {
            io::copy(&mut from.take(length), new)?;
            finish(new)
        })
    }
}

/// Recursive for a directory.
pub(super) fn delete(links: &RefusedLinks, removal: &Removal) -> Result<(), DavRefusal> {
    let path = &removal.path;
    let gone = |error: io::Error| {
        let missing = if error.kind() == io::ErrorKind::NotADirectory { 409 } else { 404 };
        refused(error, missing, "DELETE", path)
    };
    let entry = Entry::open(links, path).map_err(gone)?;
    let found = entry.look().map_err(|error| gone(error.into()))?;
    let is_directory = is_directory(&found);
    if is_directory != removal.is_collection {
        let what = if is_directory { "is a directory" } else { "is not a directory" };
        return Err(wrong(409, path, what));
    }
    let wanted = match removal.depth {
        None | Some(Depth::Infinity) => None,
        Some(Depth::Zero) if !is_directory => None,
        Some(_) if is_directory => Some("infinity"),
        Some(_) => Some("0 or infinity"),
    };
    if let Some(wanted) = wanted {
        return Err(wrong(400, path, format_args!("needs a \"Depth\" header of {wanted}")));
    }
    entry.remove(is_directory).map_err(|error| refused(error, 404, "DELETE", path))
}

pub(super) fn make_collection(links: &RefusedLinks, path: &Path, mode: u32) -> Result<(), DavRefusal> {
    let failed = |error: io::Error| refused(error, 409, "MKCOL", path);
    let entry = Entry::open(links, path).map_err(failed)?;
    let mode = Mode::from_raw_mode(directory_mode(mode));
    mkdirat(&entry.directory, entry.name, mode).map_err(|error| failed(error.into()))
}

pub(super) fn transfer(links: &RefusedLinks, transfer: &CopyOrMove) -> Result<bool, DavRefusal> {
    let CopyOrMove { from, to, is_collection, .. } = transfer;
    let destination = match Entry::open(links, to) {
        Ok(entry) => Some(entry),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(refused(error, 404, "opening the directory of", to)),
    };
    let there = match destination.as_ref().map(Entry::look) {
        None | Some(Err(Errno::NOENT)) => None,
        Some(Err(error)) => return Err(refused(error, 404, "lstat()", to)),
        Some(Ok(found)) if is_directory(&found) && !is_collection => {
            return Err(wrong(409, to, "is a directory"));
        }
        Some(Ok(_)) if !transfer.overwrites => return Err(wrong(412, to, "already exists")),
        Some(Ok(found)) => Some(found),
    };
    let source = Entry::open(links, from).map_err(|error| refused(error, 404, "opening", from))?;
    let found = source.look().map_err(|error| refused(error, 404, "lstat()", from))?;
    if let Some(destination) = &destination {
        let is_inside = nested(&source, &found, destination, there.as_ref());
        if is_inside.map_err(|error| refused(error, 404, "opening the directory of", to))? {
            return Err(wrong(403, to, "and the source are the same location, or one contains the other"));
        }
    }
    match (is_directory(&found), is_collection) {
        (true, false) => Err(wrong(400, from, "is a directory")),
        (false, true) => Err(refused(Errno::NOTDIR, 404, "lstat()", from)),
        (false, false) => transfer_file(links, transfer, &source, destination).map(|()| false),
        (true, true) => {
            let destination = destination.ok_or_else(|| refused(Errno::NOENT, 404, "mkdir()", to))?;
            if let Some(there) = there {
                destination
                    .remove(is_directory(&there))
                    .map_err(|error| refused(error, 404, "removing", to))?;
            }
            transfer_directory(transfer, &source, &destination).map(|()| true)
        }
    }
}

/// Whether source and destination are the same, or one contains the other. Compares inodes, as links and
/// mounts give a place several paths.
fn nested(source: &Entry<'_>, found: &Stat, to: &Entry<'_>, there: Option<&Stat>) -> Result<bool, Errno> {
    if !is_directory(found) {
        return Ok(source.name == to.name && is_same(&fstat(&source.directory)?, &fstat(&to.directory)?));
    }
    let there = there.filter(|there| is_directory(there));
    Ok(there.is_some_and(|there| is_same(there, found))
        || is_within(&to.directory, found)?
        || there.map_or(Ok(false), |there| is_within(&source.directory, there))?)
}

fn is_within(directory: &OwnedFd, other: &Stat) -> Result<bool, Errno> {
    let up = |from: &OwnedFd| {
        openat(from, "..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    };
    let (mut here, mut parent) = (fstat(directory)?, up(directory)?);
    loop {
        if is_same(&here, other) {
            return Ok(true);
        }
        let above = fstat(&parent)?;
        if is_same(&above, &here) {
            return Ok(false);
        }
        (here, parent) = (above, up(&parent)?);
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn transfer_file(
    links: &RefusedLinks,
    transfer: &CopyOrMove,
    source: &Entry<'_>,
    destination: Option<Entry<'_>>,
) -> Result<(), DavRefusal> {
    let CopyOrMove { from, to, is_move, mode, .. } = transfer;
    let failed = |error| unwritten(error, if *is_move { "MOVE" } else { "COPY" }, to);
    let destination = match destination {
        Some(destination) => destination,
        // As in nginx a file that is moved has its directories made for it, and one that is copied has not.
        None if *is_move => Entry::made(links, to, *mode).map_err(failed)?,
        None => return Err(failed(Errno::NOENT.into())),
    };
    if *is_move {
        match renameat(&source.directory, source.name, &destination.directory, destination.name) {
            Err(Errno::XDEV) => {}
            renamed => return renamed.map_err(|error| failed(error.into())),
        }
    }
    let file = links.open(from).map_err(|error| refused(error, 404, "open()", from))?;
    destination.replace(|new| directory::copy_content(file, new)).map_err(failed)?;
    if *is_move {
        source.remove(false).map_err(failed)?;
    }
    Ok(())
}

fn transfer_directory(
    transfer: &CopyOrMove,
    source: &Entry<'_>,
    destination: &Entry<'_>,
) -> Result<(), DavRefusal> {
    if transfer.is_move {
        match renameat(&source.directory, source.name, &destination.directory, destination.name) {
            Err(Errno::XDEV) => {}
            renamed => return renamed.map_err(|error| refused(error, 404, "rename()", &transfer.from)),
        }
    }
    let names = (&*c_name(source.name)?, &*c_name(destination.name)?);
    directory::copy(&source.directory, &destination.directory, names)
        .map_err(|error| refused(error, 404, "copying to", &transfer.to))?;
    if transfer.is_move {
        source.remove(true).map_err(|error| refused(error, 404, "removing", &transfer.from))?;
    }
    Ok(())
}

fn c_name(name: &OsStr) -> Result<CString, DavRefusal> {
    CString::new(name.as_bytes())
        .map_err(|_| DavRefusal { status: 400, what: "a zero byte in a name".into() })
}

impl Entry<'_> {
    fn remove(&self, is_directory: bool) -> io::Result<()> {
        if !is_directory {
            return Ok(unlinkat(&self.directory, self.name, AtFlags::empty())?);
        }
        let name = CString::new(self.name.as_bytes())?;
        directory::remove(self.directory.as_fd(), &name, 0)
    }
}
