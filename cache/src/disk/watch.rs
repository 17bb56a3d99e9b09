//! The kernel's word on what others do to the directories of a cache (inotify): a file removed, a directory gone.
//!
//! Only removals are asked for, and only of directories that hold files of ours: a store wakes nobody. Whoever puts a
//! file somewhere makes sure *before* that its directory is watched, so that no removal is missed. It says what
//! happened and decides nothing. Next: `unlinked`, which goes by it; `keeper`, the thread that listens.

use super::lock;
use super::place::{Directory, Name, Tree, name_of};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// Bytes of one read: some hundred events.
const BUFFER: usize = 16 * 1024;
const READS: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// Removed or moved away.
    Unlinked(Name),
    Vanished(Directory),
    /// Events were lost, or directories with all their content moved elsewhere.
    Lost,
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<Watches>,
}

#[derive(Debug, Default)]
struct Watches {
    inotify: Option<Arc<OwnedFd>>,
    numbers: HashMap<Directory, i32>,
    directories: HashMap<i32, Directory>,
    refused: bool,
}

impl Watch {
    /// Watches nothing yet. Without inotify (too many instances, an old kernel) it stays blind, see
    /// [`Watch::is_blind`].
    pub(super) fn new() -> Watch {
        let watch = Watch::default();
        watch.renew();
        watch
    }

    pub(super) fn renew(&self) {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok().map(Arc::new);
        *lock(&self.state) = Watches { refused: inotify.is_none(), inotify, ..Watches::default() };
    }

    pub(super) fn is_blind(&self) -> bool {
        lock(&self.state).refused
    }

    pub(super) fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        lock(&self.state).inotify.clone()
    }

    /// Watches a directory and those above it, as far as they exist. The system's first refusal is an error.
    pub(super) fn ensure(&self, tree: &Tree, directory: Directory) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.numbers.contains_key(&directory) {
            return Ok(());
        }
        state.add(tree, directory, false)
    }

    /// As [`Watch::ensure`], for directories just made: those with their names before no longer exist.
    pub(super) fn ensure_anew(&self, tree: &Tree, directory: Directory) -> io::Result<()> {
        lock(&self.state).add(tree, directory, true)
    }

    /// Reports a bounded number of events; true if there may be more.
    pub(super) fn happened(&self, mut tell: impl FnMut(Happening)) -> bool {
        let Some(inotify) = self.descriptor() else { return false };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(&*inotify, &mut buffer);
        for _ in 0..READS {
            // What was read has to be told: it is lost with the reader.
            loop {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map_or(&b""[..], |name| name.to_bytes());
                        self.understand(event.wd(), event.events(), name).into_iter().for_each(&mut tell);
                    }
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
                if reader.is_buffer_empty() {
                    break;
                }
            }
        }
        true
    }

    fn understand(&self, number: i32, events: ReadFlags, name: &[u8]) -> Option<Happening> {
        if events.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT | ReadFlags::MOVE_SELF) {
            return Some(Happening::Lost);
        }
        if events.contains(ReadFlags::IGNORED) {
            return lock(&self.state).forget(number).map(Happening::Vanished);
        }
        if events.contains(ReadFlags::ISDIR) {
            return events.contains(ReadFlags::MOVED_FROM).then_some(Happening::Lost);
        }
        let gone = events.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
        gone.then(|| name_of(name).map(Happening::Unlinked))?
    }
}

impl Watches {
    fn add(&mut self, tree: &Tree, directory: Directory, anew: bool) -> io::Result<()> {
        let Some(inotify) = self.inotify.clone() else { return Ok(()) };
        for directory in tree.down_to(directory) {
            if !anew && self.numbers.contains_key(&directory) {
                continue;
            }
            let itself = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR;
            let within = match tree.holds_files(directory) {
                true => WatchFlags::MOVED_FROM | WatchFlags::DELETE,
                false => WatchFlags::MOVED_FROM,
            };
            match inotify::add_watch(&*inotify, tree.path_of(directory), itself | within) {
                Ok(number) => {
                    if let Some(old) = self.numbers.insert(directory, number)
                        && old != number
                    {
                        self.directories.remove(&old);
                    }
                    self.directories.insert(number, directory);
                }
                // Not there: whoever makes it asks again.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
                Err(error) => {
                    let first = !std::mem::replace(&mut self.refused, true);
                    return if first { Err(error.into()) } else { Ok(()) };
                }
            }
        }
        Ok(())
    }

    fn forget(&mut self, number: i32) -> Option<Directory> {
        let directory = self.directories.remove(&number)?;
        if self.numbers.get(&directory) == Some(&number) {
            self.numbers.remove(&directory);
        }
        Some(directory)
    }
}

/// Waits until one of the descriptors is readable, or until `timeout`.
pub(super) fn wait(
    descriptors: [Option<&OwnedFd>; 2],
    timeout: std::time::Duration,
) -> rustix::io::Result<()> {
    let mut polled: Vec<PollFd<'_>> =
        descriptors.into_iter().flatten().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    let timeout = rustix::event::Timespec {
        tv_sec: timeout.as_secs().min(3600) as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match rustix::event::poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn tree(root: PathBuf) -> Tree {
        Tree { root, levels: vec![1, 2] }
    }

    fn all(watch: &Watch) -> Vec<Happening> {
        let mut all = Vec::new();
        while watch.happened(|happening| all.push(happening)) {}
        all
    }

    #[test]
    fn removals_are_told_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a directory");
        let tree = tree(folder.path().to_path_buf());
        let (name, other) = ([7; 16], [8; 16]);
        for name in [name, other] {
            fs::create_dir_all(tree.path_of(tree.directory(&name))).expect("made");
        }
        let watch = Watch::new();
        for name in [name, other] {
            watch.ensure(&tree, tree.directory(&name)).expect("watched");
        }
        let temporary = folder.path().join("temporary");
        for _ in 0..3 {
            fs::write(&temporary, b"x").expect("written");
            fs::rename(&temporary, tree.path(&name)).expect("renamed");
            fs::read(tree.path(&name)).expect("read");
        }
        assert_eq!(all(&watch), [], "writing, replacing and reading");
        fs::remove_file(tree.path(&name)).expect("removed");
        assert_eq!(all(&watch), [Happening::Unlinked(name)]);
        fs::remove_dir(tree.path_of(tree.directory(&name))).expect("removed");
        assert_eq!(all(&watch), [Happening::Vanished(tree.directory(&name))]);
        fs::rename(folder.path().join("8"), folder.path().join("elsewhere")).expect("moved");
        assert!(all(&watch).contains(&Happening::Lost));
    }

    #[test]
    fn a_directory_made_again_is_watched_again() {
        let folder = tempfile::tempdir().expect("a directory");
        let tree = tree(folder.path().join("cache"));
        let directory = tree.directory(&[7; 16]);
        let watch = Watch::new();
        watch.ensure(&tree, directory).expect("nothing is there, which is no error");
        for _ in 0..3 {
            fs::create_dir_all(tree.path_of(directory)).expect("made");
            watch.ensure_anew(&tree, directory).expect("watched");
            fs::write(tree.path(&[7; 16]), b"x").expect("written");
            fs::remove_dir_all(&tree.root).expect("removed");
            assert!(all(&watch).contains(&Happening::Unlinked([7; 16])));
        }
        assert!(!watch.is_blind() && lock(&watch.state).directories.is_empty());
    }

    #[test]
    fn more_events_than_the_kernel_keeps_are_told_as_a_loss() {
        let folder = tempfile::tempdir().expect("a directory");
        let tree = Tree { root: folder.path().to_path_buf(), levels: Vec::new() };
        let watch = Watch::new();
        watch.ensure(&tree, Directory::ROOT).expect("watched");
        let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("Linux");
        let queue: u32 = queue.trim().parse().expect("a number");
        if queue > 100_000 {
            return;
        }
        for number in 0..queue + 10 {
            // Two names in turn: equal events in a row are told once.
            let name = if number % 2 == 0 { [1; 16] } else { [2; 16] };
            fs::write(tree.path(&name), b"").expect("written");
            fs::remove_file(tree.path(&name)).expect("removed");
        }
        let told = all(&watch);
        assert_eq!(told.last(), Some(&Happening::Lost));
    }
}
