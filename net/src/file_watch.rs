//! Files that are followed by their names: whoever waits here hears when there may be something else under one of them.
//!
//! The kernel tells it (inotify), of directories and not of files, because a file is replaced more often than written. Links are followed step by
//! step, and each directory on the way is watched for the names of the next step: so it is heard when a link comes to lead elsewhere, and when what is not there
//! comes to be. What has changed is not said; nothing is read here. Next: `millstream`'s `app/src/renewing.rs`, which does.

use crate::guarded_path::names_of;
use crate::kernel;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tokio::io::unix::AsyncFd;

/// Bytes of one read: some hundred events.
const BUFFER: usize = 16 * 1024;
/// Links followed for one name, as many as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;

#[derive(Debug)]
pub struct Watched {
    inotify: OwnedFd,
    /// The names in each directory, by watch descriptor.
    names: HashMap<i32, HashSet<OsString>>,
}

pub type Unwatched = (PathBuf, io::Error);

impl Watched {
    pub fn nothing() -> io::Result<Watched> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Watched { inotify, names: HashMap::new() })
    }

    /// Replaces the names followed. Blocks on the disk. Fails with the first directory that cannot be
    /// watched; all others are.
    pub fn follow<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) -> Result<(), Unwatched> {
        let mut wanted: HashMap<PathBuf, HashSet<OsString>> = HashMap::new();
        for file in files {
            follow_one(file, &mut |directory, name| {
                wanted.entry(directory.to_path_buf()).or_default().insert(name.to_os_string());
            });
        }
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::CREATE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let mut failed = None;
        let mut names: HashMap<i32, HashSet<OsString>> = HashMap::new();
        for (directory, of_it) in wanted {
            match inotify::add_watch(&self.inotify, &directory, flags) {
                Ok(number) => names.entry(number).or_default().extend(of_it),
                Err(error) => _ = failed.get_or_insert((directory, error.into())),
            }
        }
        for number in self.names.keys().filter(|number| !names.contains_key(number)) {
            // A directory that is gone has taken its watch along.
            _ = inotify::remove_watch(&self.inotify, *number);
        }
        self.names = names;
        failed.map_or(Ok(()), Err)
    }

    pub fn has_changed(&self) -> io::Result<bool> {
        happened(&self.inotify, &self.names)
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// Names watched by another process, which writes to a pipe on changes.
pub trait Watcher: Send {
    fn follow(&mut self, files: &[PathBuf]) -> Result<(), Unwatched>;
}

pub struct FileWatch(Source);

enum Source {
    Own { inotify: AsyncFd<OwnedFd>, watched: Watched },
    Others { told: AsyncFd<OwnedFd>, watcher: Box<dyn Watcher> },
}

impl FileWatch {
    /// Call it in a runtime. Watches nothing yet.
    pub fn new() -> io::Result<FileWatch> {
        let watched = Watched::nothing()?;
        let inotify = kernel::readable(watched.inotify.try_clone()?)?;
        Ok(FileWatch(Source::Own { inotify, watched }))
    }

    /// `pipe` is that of the other process. Call it in a runtime.
    pub fn through(pipe: OwnedFd, watcher: Box<dyn Watcher>) -> io::Result<FileWatch> {
        Ok(FileWatch(Source::Others { told: kernel::readable(pipe)?, watcher }))
    }

    /// Replaces the names followed. Blocks on the disk. Fails with the first directory that cannot be
    /// watched; all others are.
    pub fn follow<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) -> Result<(), Unwatched> {
        match &mut self.0 {
            Source::Own { watched, .. } => watched.follow(files),
            Source::Others { watcher, .. } => {
                watcher.follow(&files.into_iter().map(Path::to_path_buf).collect::<Vec<_>>())
            }
        }
    }

    /// Waits until one of the names changes. Fails if the other process has ended.
    pub async fn changed(&mut self) -> io::Result<()> {
        let (readable, watched) = match &self.0 {
            Source::Own { inotify, watched } => (inotify, Some(watched)),
            Source::Others { told, .. } => (told, None),
        };
        loop {
            let mut guard = readable.readable().await?;
            let has_changed = match watched {
                Some(watched) => watched.has_changed(),
                None => was_told(readable.get_ref()),
            };
            if has_changed? {
                return Ok(());
            }
            guard.clear_ready();
        }
    }
}

fn was_told(pipe: &OwnedFd) -> io::Result<bool> {
    match rustix::io::read(pipe, &mut [0; 64]) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn happened(inotify: &OwnedFd, names: &HashMap<i32, HashSet<OsString>>) -> io::Result<bool> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    let mut is_one = false;
    loop {
        match reader.next() {
            Ok(event) => {
                let flags = event.events();
                let is_lost = flags.contains(ReadFlags::QUEUE_OVERFLOW);
                let is_of_one = names.get(&event.wd()).is_some_and(|known| match event.file_name() {
                    Some(name) => known.contains(OsStr::from_bytes(name.to_bytes())),
                    None => flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF),
                });
                is_one |= is_lost || is_of_one;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(is_one),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Passes on each directory and the name in it that determine what a path leads to.
fn follow_one(path: &Path, tell: &mut impl FnMut(&Path, &OsStr)) {
    let Ok(path) = std::path::absolute(path) else { return };
    let mut rest: VecDeque<OsString> = names_of(&path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            // No link is on the way to here any more, so the one above is where it came from.
            at.pop();
            continue;
        }
        let here = at.join(&name);
        match fs::symlink_metadata(&here) {
            Ok(about) if about.is_symlink() => {
                tell(&at, &name);
                links += 1;
                let Ok(target) = fs::read_link(&here) else { return };
                if links > MOST_LINKS {
                    return;
                }
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                let steps: Vec<OsString> = names_of(&target).collect();
                steps.into_iter().rev().for_each(|step| rest.push_front(step));
            }
            Ok(_) if rest.is_empty() => tell(&at, &name),
            Ok(_) => at = here,
            // It may come to be.
            Err(_) => return tell(&at, &name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::within;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    fn is_heard(file: &Path, act: impl FnOnce()) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut watch = FileWatch::new().expect("inotify");
            watch.follow([file]).expect("watched");
            act();
            // What the kernel has to tell is there when the call that caused it is over.
            within(Duration::from_millis(50), watch.changed()).await.is_ok()
        })
    }

    #[test]
    fn a_name_is_followed_through_links_and_directories_that_are_replaced() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("there");
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("archive")).expect("made");
        fs::create_dir_all(at("live")).expect("made");
        for number in ["1", "2"] {
            fs::write(at("archive").join(number), number).expect("written");
        }
        let live = at("live/pem");
        symlink("../archive/1", &live).expect("linked");
        assert!(
            is_heard(&live, || fs::write(at("archive/1"), "anew").expect("written")),
            "where a link leads"
        );
        assert!(!is_heard(&live, || fs::write(at("archive/2"), "anew").expect("written")), "another file");
        assert!(!is_heard(&live, || _ = fs::read(&live).expect("read")), "reading");
        let replace = || {
            symlink("../archive/2", at("live/next")).expect("linked");
            fs::rename(at("live/next"), &live).expect("renamed");
        };
        assert!(is_heard(&live, replace), "a link is replaced");
        assert!(
            is_heard(&live, || fs::write(at("archive/2"), "anew").expect("written")),
            "where it leads now"
        );
        // As orchestrators mount what they keep: all files of a directory change at once, by one link.
        symlink("archive", at("data")).expect("linked");
        let mounted = at("data/1");
        fs::create_dir(at("second")).expect("made");
        let swap = || {
            symlink("second", at("data-next")).expect("linked");
            fs::rename(at("data-next"), at("data")).expect("renamed");
        };
        assert!(is_heard(&mounted, swap), "a directory is replaced by its link");
        assert!(is_heard(&mounted, || fs::write(at("second/1"), "1").expect("written")), "it comes to be");
        let away = || fs::rename(at("second"), at("third")).expect("renamed");
        assert!(is_heard(&mounted, away), "its directory goes away");
    }

    #[test]
    fn links_in_a_circle_end() {
        let folder = tempfile::tempdir().expect("a directory");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        symlink(&other, &one).expect("linked");
        symlink(&one, &other).expect("linked");
        let mut told = 0;
        follow_one(&one, &mut |_, _| told += 1);
        assert!(told > 1 && told <= MOST_LINKS + 3, "{told}");
    }
}
