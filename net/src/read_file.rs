//! A file to be read: opened and read on the loop where the kernel can say at once, else off it.
//!
//! What the kernel has in its memory it gives at once: names (`RESOLVE_CACHED`) and pages (`RWF_NOWAIT`). Whatever would wait for
//! a disk is done on a thread of `blocking`, so that no loop waits. Next: `stream`, which sends files.

use crate::{blocking, clock};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstatfs, open, openat2};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// One page per so many bytes is probed before a part counts as cached: pages come and go in runs.
const PROBE: u64 = 256 * 1024;
/// `statfs` numbers of tmpfs and ramfs. Neither supports `RWF_NOWAIT`.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
/// How long the kind of a device is remembered: another filesystem may be mounted under its number.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Per thread.
const MOST_DEVICES: usize = 8;

#[derive(Debug)]
pub struct ReadFile {
    file: File,
    /// Whether its filesystem is memory; determined by [`ReadFile::metadata`], or on first use.
    in_memory: OnceLock<bool>,
}

/// A device that files were lately opened on.
#[derive(Debug, Clone, Copy)]
struct KnownDevice {
    number: u64,
    in_memory: bool,
    until: Instant,
}

thread_local! {
    static DEVICES: RefCell<Vec<KnownDevice>> = const { RefCell::new(Vec::new()) };
}

impl ReadFile {
    /// Does not wait for the writer of a pipe.
    pub async fn open(path: &Path) -> io::Result<ReadFile> {
        match ReadFile::open_at_once(path) {
            Some(opened) => opened,
            None => {
                let path = path.to_path_buf();
                blocking::run(move || ReadFile::open_waiting(&path)).await
            }
        }
    }

    /// Opens a file whose name is in the kernel's cache; `None` if that needs the disk, or is unsupported
    /// (Linux before 5.12).
    pub fn open_at_once(path: &Path) -> Option<io::Result<ReadFile>> {
        Some(at_once(path, FLAGS)?.map(ReadFile::from))
    }

    /// Blocks.
    pub fn open_waiting(path: &Path) -> io::Result<ReadFile> {
        Ok(File::from(open(path, FLAGS, Mode::empty())?).into())
    }

    /// For callers that may block.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Never blocks on an open file.
    pub fn metadata(&self) -> io::Result<Metadata> {
        let found = self.file.metadata()?;
        self.in_memory.get_or_init(|| device_in_memory(found.dev(), || in_memory(&self.file)));
        Ok(found)
    }

    /// Reads what is cached, possibly less than requested; `None` if that needs the disk.
    pub fn read_at_once(&self, bytes: &mut [u8], at: u64) -> Option<io::Result<usize>> {
        if self.in_memory.get() == Some(&true) {
            return Some(self.file.read_at(bytes, at));
        }
        match preadv2(&self.file, &mut [IoSliceMut::new(bytes)], at, ReadWriteFlags::NOWAIT) {
            Err(Errno::AGAIN) => None,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.is_in_memory().then(|| self.file.read_at(bytes, at)),
            read => Some(read.map_err(Into::into)),
        }
    }

    /// Whether a part is cached, by samples.
    pub fn is_at_hand(&self, part: &Range<u64>) -> bool {
        if self.is_in_memory() {
            return true;
        }
        let looks = (part.start..part.end).step_by(PROBE as usize).chain(part.end.checked_sub(1));
        looks.into_iter().all(|at| matches!(self.read_at_once(&mut [0], at), Some(Ok(1))))
    }

    fn is_in_memory(&self) -> bool {
        *self.in_memory.get_or_init(|| in_memory(&self.file))
    }
}

fn in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| IN_MEMORY.contains(&found.f_type))
}

/// What is known of a device, or what `ask` tells.
fn device_in_memory(number: u64, ask: impl FnOnce() -> bool) -> bool {
    let now = clock::now();
    DEVICES.with_borrow_mut(|devices| {
        devices.retain(|device| device.until > now);
        if let Some(device) = devices.iter().find(|device| device.number == number) {
            return device.in_memory;
        }
        if devices.len() == MOST_DEVICES {
            devices.clear();
        }
        let in_memory = ask();
        devices.push(KnownDevice { number, in_memory, until: now + KNOWN_FOR });
        in_memory
    })
}

/// What the kernel has cached of a path, links followed; `None` as for [`ReadFile::open_at_once`]. Opens only
/// the name, so no pipe or device is affected.
pub fn look_at_once(path: &Path) -> Option<io::Result<Metadata>> {
    Some(at_once(path, OFlags::PATH.union(OFlags::CLOEXEC))?.and_then(|name| name.metadata()))
}

fn at_once(path: &Path, flags: OFlags) -> Option<io::Result<File>> {
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED) {
        Err(Errno::AGAIN | Errno::NOSYS | Errno::INVAL | Errno::PERM) => None,
        opened => Some(opened.map(File::from).map_err(Into::into)),
    }
}

impl From<File> for ReadFile {
    fn from(file: File) -> ReadFile {
        ReadFile { file, in_memory: OnceLock::new() }
    }
}

impl AsFd for ReadFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

#[cfg(test)]
mod tests {
    use super::{MOST_DEVICES, ReadFile, device_in_memory, look_at_once};
    use std::io::ErrorKind;
    use std::path::Path;

    #[test]
    fn a_file_in_the_kernels_memory_is_read_without_waiting_on_a_disk_and_on_tmpfs() {
        for folder in [env!("CARGO_MANIFEST_DIR"), "/dev/shm"] {
            let place = tempfile::tempdir_in(folder).expect("a folder");
            let path = place.path().join("a");
            std::fs::write(&path, vec![b'x'; 600_000]).expect("written");
            // Where the kernel cannot say at once, a thread does.
            let opened = ReadFile::open_at_once(&path).unwrap_or_else(|| ReadFile::open_waiting(&path));
            let file = opened.expect("it opens");
            assert_eq!(file.metadata().expect("it is open").len(), 600_000);
            if let Some(read) = file.read_at_once(&mut [0; 10], 599_998) {
                assert_eq!(read.expect("it is readable"), 2, "{folder}");
            }
            let mut byte = [0];
            if file.is_at_hand(&(0..600_000)) {
                let read = file.read_at_once(&mut byte, 599_999).expect("it is at hand");
                assert_eq!((read.expect("it is readable"), byte), (1, *b"x"), "{folder}");
            }
        }
    }

    #[test]
    fn a_device_is_asked_about_once_until_there_is_no_room_for_it() {
        let asked = |number| {
            let mut asked = false;
            let told = device_in_memory(number, || {
                asked = true;
                number % 2 == 0
            });
            assert_eq!(told, number % 2 == 0, "{number}");
            asked
        };
        assert!((0..MOST_DEVICES as u64).all(asked));
        assert!(!(0..MOST_DEVICES as u64).any(asked));
        assert!(asked(100) && !asked(100));
        assert!(asked(0), "all were forgotten for the new one");
    }

    #[test]
    fn what_is_not_there_is_said_by_its_kind() {
        let missing = Path::new("/proc/self/there-is-no-such-file");
        let opened = ReadFile::open_at_once(missing).unwrap_or_else(|| ReadFile::open_waiting(missing));
        assert_eq!(opened.expect_err("nothing is there").kind(), ErrorKind::NotFound);
    }

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
