//! A question to the file system that a script or `try_files` asks: whether something is there.
//!
//! Asked on the worker's loop where the kernel has the answer in its memory, else off it.

use crate::failure;
use crate::request::Request;
use crate::symlinks::RefusedLinks;
use millstream_conf::model::{FileKind, Level};
use millstream_net::blocking;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTest {
    pub path: Vec<u8>,
    pub kind: FileKind,
}

const OWNER_EXECUTES: u32 = 0o100;

impl FileTest {
    /// Without blocking, if the kernel can; failures are logged and count as missing.
    pub fn ask_at_once(&self, request: &Request) -> Option<bool> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        let found = RefusedLinks::of(request).metadata_at_once(path)?;
        Some(self.is(found).unwrap_or_else(|error| {
            told(request, path, &error);
            false
        }))
    }

    pub async fn ask(self, request: &Request) -> bool {
        first(vec![self], request).await.is_some()
    }

    fn is(&self, found: io::Result<Metadata>) -> io::Result<bool> {
        let found = match found {
            Ok(found) => found,
            Err(error) => match error.kind() {
                // The last one is a path with a zero byte in it, which no file has.
                ErrorKind::NotFound
                | ErrorKind::NotADirectory
                | ErrorKind::InvalidFilename
                | ErrorKind::InvalidInput => return Ok(false),
                _ => return Err(error),
            },
        };
        Ok(match self.kind {
            FileKind::File => found.is_file(),
            FileKind::Directory => found.is_dir(),
            FileKind::Anything => found.is_file() || found.is_dir(),
            FileKind::Executable => found.mode() & OWNER_EXECUTES != 0,
        })
    }
}

/// The first existing one, if the kernel can tell without blocking.
pub fn first_at_once(tests: &[FileTest], request: &Request) -> Option<Option<usize>> {
    for (at, test) in tests.iter().enumerate() {
        if test.ask_at_once(request)? {
            return Some(Some(at));
        }
    }
    Some(None)
}

/// The first existing one; a single task off the loop.
pub async fn first(tests: Vec<FileTest>, request: &Request) -> Option<usize> {
    let followed = RefusedLinks::of(request);
    let (found, failures) = blocking::run(move || {
        let mut failures = Vec::new();
        let found = tests.into_iter().position(|test| {
            let path = Path::new(OsStr::from_bytes(&test.path));
            test.is(followed.metadata(path)).unwrap_or_else(|error| {
                failures.push((path.to_path_buf(), error));
                false
            })
        });
        (found, failures)
    })
    .await;
    for (path, error) in failures {
        told(request, &path, &error);
    }
    found
}

fn told(request: &Request, path: &Path, error: &io::Error) {
    failure::log(request, Level::Crit, format_args!("stat() \"{}\" failed ({error})", path.display()));
}
