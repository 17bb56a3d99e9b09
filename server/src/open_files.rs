//! Files, looked at and opened once for many requests where `open_file_cache` says so; each worker keeps its own.
//!
//! As in nginx what is known of a file is looked at again after `open_file_cache_valid`, and forgotten once nobody has asked for it
//! for `inactive`. Who asks when all places are taken gets that of a file nobody has asked for lately. Before:
//! `generation`, which has them; next: `content/file`.

use millstream_conf::model::{KeptFiles, OpenFileCache};
use millstream_conf::source::Span;
use millstream_net::clock;
use millstream_net::read_file::ReadFile;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How often this process changed files (`dav_methods`).
static CHANGES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone)]
pub enum FileOrDirectory {
    Directory,
    File(Arc<OpenFile>),
}

#[derive(Debug)]
pub struct OpenFile {
    pub file: ReadFile,
    pub length: u64,
    /// Seconds since 1970.
    pub modified: i64,
}

#[derive(Debug)]
pub struct OpenFiles {
    most: usize,
    /// The value of [`CHANGES`] last seen.
    changes: u64,
    caches: HashMap<Span, Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    known: HashMap<Rc<Path>, KnownPath>,
    /// Every known path, for the clock algorithm: one used since the hand passed stays for another round.
    clock: VecDeque<Rc<Path>>,
}

#[derive(Debug)]
struct KnownPath {
    /// `None` if nothing is kept (yet).
    found: Option<Result<FileOrDirectory, OpenFailure>>,
    looked_at: Instant,
    asked_at: Instant,
    uses: u64,
    is_wanted: bool,
}

#[derive(Debug, Clone, Copy)]
enum OpenFailure {
    Code(i32),
    Kind(io::ErrorKind),
}

/// `NotFound` for what is neither a file nor a directory.
pub async fn open(
    files: &RefCell<OpenFiles>,
    settings: &OpenFileCache,
    path: &Path,
) -> io::Result<FileOrDirectory> {
    let Some(kept) = &settings.kept else { return FileOrDirectory::of(ReadFile::open(path).await?) };
    let now = clock::now();
    let changes = CHANGES.load(Ordering::Acquire);
    files.borrow_mut().obey(changes);
    if let Some(known) = files.borrow_mut().ask(kept, settings, path, now) {
        return known.map_err(OpenFailure::into);
    }
    let found = ReadFile::open(path).await.and_then(FileOrDirectory::of);
    // What was found may be what was there before a change.
    if CHANGES.load(Ordering::Acquire) == changes {
        files.borrow_mut().note(kept, settings, path, &found, now);
    }
    found
}

/// Every worker looks at all files again.
pub fn changed() {
    CHANGES.fetch_add(1, Ordering::AcqRel);
}

impl FileOrDirectory {
    pub fn of(file: ReadFile) -> io::Result<FileOrDirectory> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(FileOrDirectory::Directory);
        }
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(FileOrDirectory::File(Arc::new(OpenFile {
            file,
            length: metadata.len(),
            modified: metadata.mtime(),
        })))
    }
}

impl OpenFiles {
    /// `most`: files per cache.
    pub fn new(most: usize) -> OpenFiles {
        OpenFiles { most, changes: 0, caches: HashMap::new() }
    }

    /// Forgets everything after a change.
    fn obey(&mut self, changes: u64) {
        if self.changes != changes {
            self.changes = changes;
            self.caches.clear();
        }
    }

    fn ask(
        &mut self,
        kept: &KeptFiles,
        settings: &OpenFileCache,
        path: &Path,
        now: Instant,
    ) -> Option<Result<FileOrDirectory, OpenFailure>> {
        let cache = self.caches.get_mut(&kept.span)?;
        cache.forget_idle(kept, now);
        let known = cache.known.get_mut(path)?;
        (known.asked_at, known.is_wanted) = (now, true);
        known.uses = known.uses.saturating_add(1);
        let is_valid = now.saturating_duration_since(known.looked_at) < settings.valid;
        known.found.clone().filter(|_| is_valid)
    }

    fn note(
        &mut self,
        kept: &KeptFiles,
        settings: &OpenFileCache,
        path: &Path,
        found: &io::Result<FileOrDirectory>,
        now: Instant,
    ) {
        let most = self.most.min(kept.max);
        let cache = self.caches.entry(kept.span).or_default();
        if !cache.known.contains_key(path) {
            if most == 0 {
                return;
            }
            while cache.clock.len() >= most {
                cache.make_room();
            }
            let path: Rc<Path> = path.into();
            cache.clock.push_back(path.clone());
            let known = KnownPath { found: None, looked_at: now, asked_at: now, uses: 1, is_wanted: false };
            cache.known.insert(path, known);
        }
        let Some(known) = cache.known.get_mut(path) else { return };
        known.looked_at = now;
        known.found = match found {
            Ok(found) if known.uses >= settings.min_uses => Some(Ok(found.clone())),
            Err(error) if settings.errors => Some(Err(OpenFailure::of(error))),
            _ => None,
        };
    }
}

impl Cache {
    /// Moves the hand by one, and drops the path there if it was unused for too long.
    fn forget_idle(&mut self, kept: &KeptFiles, now: Instant) {
        let Some(path) = self.clock.pop_front() else { return };
        let is_idle = |known: &KnownPath| now.saturating_duration_since(known.asked_at) > kept.inactive;
        if self.known.get(&path).is_none_or(is_idle) {
            self.known.remove(&path);
        } else {
            self.clock.push_back(path);
        }
    }

    /// Drops a path not used since the hand passed.
    fn make_room(&mut self) {
        while let Some(path) = self.clock.pop_front() {
            match self.known.get_mut(&path) {
                Some(known) if known.is_wanted => {
                    known.is_wanted = false;
                    self.clock.push_back(path);
                }
                _ => {
                    self.known.remove(&path);
                    return;
                }
            }
        }
    }
}

impl OpenFailure {
    fn of(error: &io::Error) -> OpenFailure {
        error.raw_os_error().map_or(OpenFailure::Kind(error.kind()), OpenFailure::Code)
    }
}

impl From<OpenFailure> for io::Error {
    fn from(failure: OpenFailure) -> io::Error {
        match failure {
            OpenFailure::Code(code) => io::Error::from_raw_os_error(code),
            OpenFailure::Kind(kind) => kind.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const KEPT: KeptFiles = KeptFiles {
        max: 2,
        inactive: Duration::from_secs(10),
        span: Span { file: millstream_conf::source::FileId(0), start: 0, end: 1 },
    };

    fn settings(min_uses: u64, errors: bool) -> OpenFileCache {
        OpenFileCache { kept: Some(KEPT), valid: Duration::from_secs(5), min_uses, errors }
    }

    fn asked(files: &mut OpenFiles, settings: &OpenFileCache, path: &str, now: Instant) -> bool {
        let path = Path::new(path);
        if let Some(known) = files.ask(&KEPT, settings, path, now) {
            let missing = path.starts_with("/missing");
            assert_eq!(missing, known.is_err(), "{path:?}");
            return true;
        }
        let found = if path.starts_with("/missing") {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(FileOrDirectory::Directory)
        };
        files.note(&KEPT, settings, path, &found, now);
        false
    }

    #[test]
    fn a_file_is_known_until_it_is_to_be_looked_at_again_and_forgotten_once_nobody_asks() {
        let (mut files, settings, start) = (OpenFiles::new(100), settings(1, false), clock::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let known: Vec<bool> =
            [0, 1, 4, 6, 7].map(|seconds| asked(&mut files, &settings, "/a", at(seconds))).into();
        assert_eq!(known, [false, true, true, false, true]);
        asked(&mut files, &settings, "/b", at(8));
        // The hand passes one path at each question.
        (17..20).for_each(|seconds| _ = asked(&mut files, &settings, "/b", at(seconds)));
        assert_eq!(files.caches[&KEPT.span].known.len(), 1, "nobody has asked for /a for 10 s");
    }

    #[test]
    fn as_many_files_are_known_as_there_may_be_and_those_that_are_asked_for_stay() {
        let (mut files, settings, now) = (OpenFiles::new(100), settings(1, false), clock::now());
        for path in ["/a", "/b", "/a", "/c", "/d"] {
            asked(&mut files, &settings, path, now);
        }
        assert_eq!(files.caches[&KEPT.span].clock.len(), 2);
        assert!(asked(&mut files, &settings, "/d", now) && !asked(&mut files, &settings, "/b", now));
        let mut none = OpenFiles::new(0);
        assert!(!asked(&mut none, &settings, "/a", now) && !asked(&mut none, &settings, "/a", now));
    }

    #[test]
    fn a_file_stays_open_from_its_nth_use_on_and_a_failure_is_known_only_where_that_is_wanted() {
        let now = clock::now();
        let mut files = OpenFiles::new(100);
        let known: Vec<bool> = (0..4).map(|_| asked(&mut files, &settings(3, false), "/a", now)).collect();
        assert_eq!(known, [false, false, false, true]);
        assert!(!asked(&mut files, &settings(1, false), "/missing", now));
        assert!(!asked(&mut files, &settings(1, true), "/missing", now));
        assert!(asked(&mut files, &settings(1, true), "/missing", now));
    }
}
