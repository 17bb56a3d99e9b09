//! Directories of parties: closed to everybody else, gone with their value, and cleared away after owners that were killed.
//!
//! A directory has two floors. The upper one only its user can enter, and, where that is root, the group that servers give
//! their rights up for; it holds `owner`, a file that is locked for as long as this process lives. The lower one is the
//! party's own, and open: a server that runs its workers as yet another user reaches it as its working directory alone.
//!
//! Who is killed removes nothing. So the next measurement looks for directories of its own user whose lock nobody holds:
//! the kernel takes a lock away with the process, so that no number of a process has to be believed. Next: `party`.

use millstream_conf::model::User;
use millstream_net::privileges;
use rustix::fs::{Gid, chown};
use rustix::process::{getegid, geteuid};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files that are in memory, where the system has this.
pub const SHARED_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "millstream-measure-";
/// The locked file.
const OWNER: &str = "owner";
/// The same before it is locked.
const UNLOCKED: &str = "owner.new";
const LOWER: &str = "in";
/// Whom servers run their workers as where nobody says, ours and nginx.
const NOBODY: &str = "nobody";

#[derive(Debug)]
pub struct Place {
    // Removed before the lock is let go, so that nobody else begins to.
    directory: tempfile::TempDir,
    _owner: File,
}

impl Place {
    /// An empty directory under the system's temporary directory. Errors: those of making it.
    pub fn new() -> io::Result<Place> {
        Place::within(&std::env::temp_dir())
    }

    /// The same under another directory. Errors: those of making it.
    pub fn within(parent: &Path) -> io::Result<Place> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let path = directory.path();
        // Under another name until it is locked: nobody is to find it free and take its owner for dead.
        let owner = File::create_new(path.join(UNLOCKED))?;
        owner.try_lock()?;
        fs::rename(path.join(UNLOCKED), path.join(OWNER))?;
        let lower = path.join(LOWER);
        fs::create_dir(&lower)?;
        // Whatever the umask is.
        fs::set_permissions(&lower, Permissions::from_mode(0o755))?;
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
        if geteuid().is_root() {
            open_to_workers(path);
        }
        Ok(Place { directory, _owner: owner })
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join(LOWER)
    }

    /// Writes a file in it that only this user can read, and says where it is. Errors: those of writing.
    pub fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        // Servers read configurations and keys before they give up being root.
        File::options().write(true).create_new(true).mode(0o600).open(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }
}

/// Lets the workers of a server that root starts pass through: theirs is the group of `nobody`. Where there is no such user,
/// or root may not give its files away, it stays closed.
fn open_to_workers(path: &Path) {
    let nobody = User { name: NOBODY.to_owned(), group: None };
    let Ok(account) = privileges::find(&nobody) else { return };
    if account.gid != getegid().as_raw() && chown(path, None, Some(Gid::from_raw(account.gid))).is_ok() {
        _ = fs::set_permissions(path, Permissions::from_mode(0o710));
    }
}

/// Removes what measurements of this user left that were killed, in the places where [`Place`]s are made; how many.
///
/// Only what can be proven to be that is touched: a directory of this user, by such a name, with a lock in it that nobody
/// holds. What cannot be removed stays.
pub fn clear_away() -> usize {
    [std::env::temp_dir(), PathBuf::from(SHARED_MEMORY)].iter().map(|parent| clear_away_in(parent)).sum()
}

pub(super) fn clear_away_in(parent: &Path) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    // The lock is held meanwhile, so that two who clear away do not meet.
    let cleared = named.filter(|entry| {
        left_by_the_dead(&entry.path()).is_some_and(|_owner| fs::remove_dir_all(entry.path()).is_ok())
    });
    cleared.count()
}

/// The lock of a directory whose owner is dead; `None`: he is not, or it is not known to be such a directory.
fn left_by_the_dead(directory: &Path) -> Option<File> {
    let is_own = |about: &fs::Metadata| about.uid() == geteuid().as_raw();
    // Of a link these are the link's own, so what it leads to is never looked at.
    let about = fs::symlink_metadata(directory).ok()?;
    // Nobody else can have put anything into it.
    let is_closed = about.is_dir() && is_own(&about) && about.mode() & 0o067 == 0;
    let owner = directory.join(OWNER);
    let is_lock = fs::symlink_metadata(&owner).is_ok_and(|about| about.is_file() && is_own(&about));
    if !is_closed || !is_lock {
        return None;
    }
    let owner = File::open(owner).ok()?;
    owner.try_lock().ok()?;
    Some(owner)
}
