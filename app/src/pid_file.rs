//! The pid file: written after the listeners are open, renamed during an upgrade, removed at the end.
//!
//! It is locked for as long as its process lives: a number alone could be anybody's, nginx's for one. Who has rights to give up reaches it by
//! `net`'s `guarded_path`, as the opener does all files.

use millstream_net::{guarded_path, privileges};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Removed on drop.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    replaced: bool,
    /// Holds the lock.
    _open: Option<File>,
}

impl PidFile {
    /// Writes this process's id and a newline. An empty path writes none.
    pub fn write(path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(PidFile { path: PathBuf::new(), replaced: false, _open: None });
        }
        let mut file = create(path)?;
        // Where the filesystem has no locks, the program's name has to do.
        _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        writeln!(file, "{}", std::process::id())?;
        Ok(PidFile { path: path.to_path_buf(), replaced: false, _open: Some(file) })
    }

    pub fn path(&self) -> PathBuf {
        if self.replaced { old(&self.path) } else { self.path.clone() }
    }

    /// Renames it to `….oldbin` for the next process. Fails while the previous process still has that name.
    pub fn step_aside(&mut self) -> io::Result<()> {
        if self.path.as_os_str().is_empty() {
            return Ok(());
        }
        let aside = old(&self.path);
        if read(&aside).is_ok_and(|pid| pid != own_id() && is_running(pid)) {
            return Err(io::Error::other("the previous process has not exited yet"));
        }
        rename(&self.path, &aside)?;
        self.replaced = true;
        Ok(())
    }

    /// Closes it without removing it: it belongs to the process this one was split off from.
    pub fn leave(mut self) {
        self.path = PathBuf::new();
        self.replaced = false;
    }

    /// Restores its name when the next process is gone.
    pub fn step_back(&mut self) -> io::Result<()> {
        if self.replaced {
            rename(&old(&self.path), &self.path)?;
            self.replaced = false;
        }
        Ok(())
    }

    /// After a reload with another name: writes that file, then removes this one. On error this one stays.
    pub fn move_to(&mut self, path: &Path) -> io::Result<()> {
        if path != self.path {
            *self = PidFile::write(path)?;
        }
        Ok(())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let path = self.path();
        if read(&path).is_ok_and(|pid| pid == own_id()) {
            // Nothing can be done about a file that will not go.
            _ = if is_guarded() { guarded_path::remove(&path) } else { fs::remove_file(path) };
        }
    }
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".oldbin");
    PathBuf::from(name)
}

/// Whether a link on the way would let this process do more than the user who made it.
fn is_guarded() -> bool {
    privileges::has_rights_to_give_up()
}

fn create(path: &Path) -> io::Result<File> {
    if is_guarded() {
        return guarded_path::create(path, 0o666).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => {
                io::Error::other("a symbolic link that another user may have created is not followed")
            }
            _ => error,
        });
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create(path)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if is_guarded() { guarded_path::rename(from, to) } else { fs::rename(from, to) }
}

fn own_id() -> i32 {
    std::process::id().cast_signed()
}

fn is_running(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

pub fn read(path: &Path) -> io::Result<i32> {
    let mut text = String::new();
    let mut file = if is_guarded() { guarded_path::open(path, None)? } else { File::open(path)? };
    file.read_to_string(&mut text)?;
    let pid = text.trim().parse().ok().filter(|&pid| pid > 0);
    pid.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file contains no process id"))
}

#[derive(Debug, PartialEq, Eq)]
pub enum Holder {
    Ours,
    Other(String),
    Gone,
}

/// Ours if it holds the file's lock, or runs the same program.
pub fn holder(path: &Path, pid: i32) -> Holder {
    if !is_running(pid) {
        Holder::Gone
    } else if holds_lock(path, pid) || is_same_program(pid) {
        Holder::Ours
    } else {
        Holder::Other(program_of(pid))
    }
}

/// Looks for the file in `/proc/locks`: kind, mode, access, process, device and inode.
fn holds_lock(path: &Path, pid: i32) -> bool {
    let (Ok(file), Ok(locks)) = (fs::metadata(path), fs::read_to_string("/proc/locks")) else { return false };
    let (inode, pid) = (format!(":{}", file.ino()), pid.to_string());
    locks.lines().any(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
        words.next() == Some(&*pid) && words.next().is_some_and(|place| place.ends_with(&inode))
    })
}

/// By name, as the file may have been replaced since.
fn is_same_program(pid: i32) -> bool {
    let (theirs, own) = (format!("/proc/{pid}/exe"), "/proc/self/exe");
    let file = |path: &str| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let name = |path: &str| fs::read_link(path).ok().map(|link| base_name(&link));
    let is_same = |theirs: Option<_>, own: Option<_>| theirs.is_some() && theirs == own;
    is_same(file(&theirs), file(own)) || name(&theirs).is_some_and(|theirs| Some(theirs) == name(own))
}

/// Without the system's suffix for a removed file.
fn base_name(link: &Path) -> String {
    let name = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(name)
}

fn program_of(pid: i32) -> String {
    let link = fs::read_link(format!("/proc/{pid}/exe")).map(|link| link.display().to_string());
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| name.trim().to_owned());
    link.or_else(|_| name()).unwrap_or_else(|_| "another program".to_owned())
}
