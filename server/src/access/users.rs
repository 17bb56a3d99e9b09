//! Files of users: lines of `name:password`, with `#` before comments.
//!
//! A file is read when it has changed, and then kept for all workers while it is small; it is only ever looked at where a thread
//! may take its time. Next: `password`, which knows what stands behind a name; `auth_basic`, which asks.

use millstream_conf::files::{self, Access};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a file that are read; later users are unknown.
const LONGEST: u64 = 64 * 1024 * 1024;
/// Bytes of a file that is kept in memory; a longer one is read for each request.
const LONGEST_KEPT: u64 = 1024 * 1024;
const MOST_KEPT: usize = 16;

/// Differs if the file was replaced or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

pub(super) struct Users {
    pub(super) state: FileState,
    content: UsersText,
}

enum UsersText {
    Kept(Arc<[u8]>),
    Open(File),
}

struct KeptFile {
    path: PathBuf,
    state: FileState,
    content: Arc<[u8]>,
}

/// Shared by all workers, most recently used last. Only threads that may block take the lock, and not while
/// they read.
static KEPT: Mutex<Vec<KeptFile>> = Mutex::new(Vec::new());

impl FileState {
    pub(super) fn of(file: &Metadata) -> FileState {
        FileState {
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl Users {
    /// Blocks.
    pub(super) fn open(path: &Path) -> io::Result<Users> {
        let file = files::open_here(path, Access::Read)?;
        let state = FileState::of(&file.metadata()?);
        if state.size > LONGEST_KEPT {
            return Ok(Users { state, content: UsersText::Open(file) });
        }
        let known = kept()
            .iter()
            .find(|kept| kept.path == path && kept.state == state)
            .map(|kept| kept.content.clone());
        if let Some(content) = known {
            return Ok(Users { state, content: UsersText::Kept(content) });
        }
        let mut content = Vec::with_capacity(state.size as usize);
        file.take(LONGEST_KEPT).read_to_end(&mut content)?;
        let content: Arc<[u8]> = content.into();
        let mut kept = kept();
        kept.retain(|kept| kept.path != path);
        if kept.len() == MOST_KEPT {
            kept.remove(0);
        }
        kept.push(KeptFile { path: path.to_owned(), state, content: content.clone() });
        Ok(Users { state, content: UsersText::Kept(content) })
    }

    pub(super) fn is_long(&self) -> bool {
        matches!(self.content, UsersText::Open(_))
    }

    /// Blocks.
    pub(super) fn password_of(self, user: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self.content {
            UsersText::Kept(content) => {
                Ok(content.split(|&byte| byte == b'\n').find_map(|line| password_in(line, user)))
            }
            UsersText::Open(file) => {
                let (mut lines, mut line) = (BufReader::new(file.take(LONGEST)), Vec::new());
                while lines.read_until(b'\n', &mut line)? > 0 {
                    if let Some(password) = password_in(line.trim_ascii_end(), user) {
                        return Ok(Some(password));
                    }
                    line.clear();
                }
                Ok(None)
            }
        }
    }
}

fn kept() -> std::sync::MutexGuard<'static, Vec<KeptFile>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Up to the next colon: a remark may follow.
fn password_in(line: &[u8], user: &[u8]) -> Option<Vec<u8>> {
    let rest = line.strip_prefix(user)?.strip_prefix(b":")?;
    let end = rest.iter().position(|byte| matches!(byte, b':' | b'\r')).unwrap_or(rest.len());
    (!line.starts_with(b"#")).then(|| rest[..end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(path: &Path, user: &str) -> Option<String> {
        let users = Users::open(path).expect("it is there");
        let found = users.password_of(user.as_bytes()).expect("it can be read");
        found.map(|password| String::from_utf8(password).expect("it is text"))
    }

    #[test]
    fn a_name_is_found_in_short_and_long_files_and_a_change_is_seen() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("users");
        let lines = "# people\nann:one:a remark\nbob:two\r\n#eve:three\n:four\nlast:five";
        let long = format!("{}\n{lines}", "#".repeat(LONGEST_KEPT as usize));
        for text in [lines, &long] {
            std::fs::write(&path, text).expect("own directory");
            for (user, expected) in [
                ("ann", Some("one")),
                ("bob", Some("two")),
                ("last", Some("five")),
                ("an", None),
                ("#eve", None),
                ("eve", None),
                ("people", None),
            ] {
                assert_eq!(password(&path, user).as_deref(), expected, "{user} of {} bytes", text.len());
            }
        }
        std::fs::write(&path, "ann:six").expect("own directory");
        assert_eq!(password(&path, "ann").as_deref(), Some("six"));
        for number in 0..2 * MOST_KEPT {
            let path = directory.path().join(number.to_string());
            std::fs::write(&path, "ann:x").expect("own directory");
            assert_eq!(password(&path, "ann").as_deref(), Some("x"));
        }
        assert!(kept().len() <= MOST_KEPT);
    }
}
