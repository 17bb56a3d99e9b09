//! A question to the file system that a script or `try_files` asks: whether something is there. Asked off the worker's loop.

use crate::failure;
use crate::followed::Followed;
use crate::request::Request;
use millstream_conf::model::{FileKind, Level};
use millstream_net::blocking;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTest {
    /// The path, as the configuration made it.
    pub path: Vec<u8>,
    /// What must be there.
    pub kind: FileKind,
}

/// The bit by which a file's owner may execute it.
const OWNER_EXECUTES: u32 = 0o100;

impl FileTest {
    /// Asks; what cannot be looked at is told and counts as not there.
    pub async fn ask(self, request: &Request) -> bool {
        let path = PathBuf::from(OsString::from_vec(self.path));
        let followed = Followed::of(request);
        let (path, found) = blocking::run(move || {
            let found = is(&path, self.kind, &followed);
            (path, found)
        })
        .await;
        found.unwrap_or_else(|error| {
            told(request, &path, &error);
            false
        })
    }
}

/// The first of several that is there. They are asked one after another, in one go off the loop.
pub async fn first(tests: Vec<FileTest>, request: &Request) -> Option<usize> {
    if tests.is_empty() {
        return None;
    }
    let followed = Followed::of(request);
    let (found, failures) = blocking::run(move || {
        let mut failures = Vec::new();
        let found = tests.into_iter().position(|test| {
            let path = PathBuf::from(OsString::from_vec(test.path));
            is(&path, test.kind, &followed).unwrap_or_else(|error| {
                failures.push((path, error));
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

fn told(request: &Request, path: &Path, error: &std::io::Error) {
    failure::log(request, Level::Crit, format_args!("stat() \"{}\" failed ({error})", path.display()));
}

fn is(path: &Path, kind: FileKind, followed: &Followed) -> std::io::Result<bool> {
    let found = match followed.metadata(path) {
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
    Ok(match kind {
        FileKind::File => found.is_file(),
        FileKind::Directory => found.is_dir(),
        FileKind::Anything => found.is_file() || found.is_dir(),
        FileKind::Executable => found.mode() & OWNER_EXECUTES != 0,
    })
}
