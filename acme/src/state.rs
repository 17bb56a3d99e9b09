//! The directory of an issuer (`state_path`): the account's key and URL, and each certificate with its key.
//!
//! A file is written whole, under another name, and put on the disk before it gets its own: whatever ends the process, each file is
//! the one before or the one after. A certificate and its key are one file, so that they are always of each other. Files are for the owner alone. Whoever asks for
//! certificates holds the directory's lock, so that two processes do not ask for the same. Before: `certificate`; next: `setup`, `issuer`.

use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Root may open files of a user's directory: no link leads it out, no pipe holds it up.
const CAREFUL: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

const UNFINISHED: &str = ".new-";
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub struct StateDirectory(PathBuf);

/// Exclusive right to write in the directory, until dropped.
#[derive(Debug)]
pub(crate) struct StateLock(#[allow(dead_code, reason = "it holds the lock")] File);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownAccount {
    pub(crate) url: String,
    pub(crate) server: String,
    /// Thumbprint of its key.
    pub(crate) key: String,
}

impl StateDirectory {
    pub fn make(path: &Path) -> io::Result<StateDirectory> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Folders above it are nobody's secret, and whoever serves has to come through.
                path.parent().map_or(Ok(()), fs::create_dir_all)?;
                DirBuilder::new().mode(0o700).create(path)?;
            }
            Err(error) => return Err(error),
        }
        Ok(StateDirectory(path.to_owned()))
    }

    pub fn files(path: &Path) -> Vec<PathBuf> {
        let Ok(found) = fs::read_dir(path) else { return Vec::new() };
        found.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }

    pub fn certificate(&self, name: &str) -> Option<String> {
        self.read(&format!("{name}.pem"))
    }

    pub(crate) fn keep_certificate(&self, name: &str, pem: &str) -> io::Result<()> {
        self.write(&format!("{name}.pem"), pem)
    }

    pub(crate) fn account_key(&self) -> Option<String> {
        self.read("account.key")
    }

    pub(crate) fn keep_account_key(&self, pem: &str) -> io::Result<()> {
        self.write("account.key", pem)
    }

    pub(crate) fn account(&self) -> Option<KnownAccount> {
        let text = self.read("account.url")?;
        let mut lines = text.lines().map(str::to_owned);
        Some(KnownAccount { url: lines.next()?, server: lines.next()?, key: lines.next()? })
    }

    pub(crate) fn keep_account(&self, account: &KnownAccount) -> io::Result<()> {
        self.write("account.url", &format!("{}\n{}\n{}\n", account.url, account.server, account.key))
    }

    /// `None` while another process holds the lock. Removes unfinished files.
    pub(crate) fn lock(&self) -> io::Result<Option<StateLock>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(CAREFUL.bits() as i32);
        let file = options.open(self.0.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        for path in Self::files(&self.0) {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.starts_with(UNFINISHED.as_bytes()) {
                // One that stays takes a few kilobytes.
                _ = fs::remove_file(path);
            }
        }
        Ok(Some(StateLock(file)))
    }

    fn read(&self, name: &str) -> Option<String> {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(CAREFUL.bits() as i32).open(self.0.join(name)).ok()?;
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return None;
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.0)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.0.join(name)).map_err(|error| error.error)?;
        File::open(&self.0)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_pipe_in_the_place_of_a_file_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDirectory::make(&folder.path().join("acme_test")).expect("it can be made");
        let pipe = |name: &str| {
            rustix::fs::mkfifoat(rustix::fs::CWD, state.0.join(name), rustix::fs::Mode::RWXU)
                .expect("a pipe");
        };
        state.keep_certificate("a", "one").expect("written");
        let [certificate] = StateDirectory::files(&state.0).try_into().expect("one file");
        fs::remove_file(&certificate).expect("it is there");
        pipe(certificate.file_name().and_then(|name| name.to_str()).expect("a name"));
        pipe("lock");
        assert_eq!(state.certificate("a"), None);
        assert!(state.lock().is_err());
    }

    #[test]
    fn what_is_kept_is_read_again_and_is_for_the_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("acme_test");
        let state = StateDirectory::make(&path).expect("it can be made");
        assert_eq!((state.certificate("a"), state.account_key(), state.account()), (None, None, None));
        let account =
            KnownAccount { url: "https://ca/1".into(), server: "https://ca/dir".into(), key: "thumb".into() };
        state.keep_certificate("a", "one").expect("written");
        state.keep_certificate("a", "two").expect("written");
        state.keep_account(&account).expect("written");
        state.keep_account_key("key").expect("written");
        assert_eq!(state.certificate("a").as_deref(), Some("two"));
        assert_eq!(state.account(), Some(account));
        assert_eq!(state.account_key().as_deref(), Some("key"));
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        let files = StateDirectory::files(&path);
        assert_eq!(files.len(), 3);
        std::os::unix::fs::symlink(path.join("a.pem"), path.join("b.pem")).expect("a link");
        assert_eq!(state.certificate("b"), None, "nobody is led elsewhere");
        assert!(files.iter().all(|file| mode(file) == 0o600));
    }

    #[test]
    fn one_at_a_time_may_write_and_removes_what_was_left_unfinished() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDirectory::make(folder.path()).expect("it is there");
        let left = folder.path().join(".new-left");
        fs::write(&left, "half").expect("written");
        let lock = state.lock().expect("it can be opened").expect("nobody has it");
        assert!(!left.exists());
        assert!(state.lock().expect("it can be opened").is_none());
        drop(lock);
        // A program that another test starts has the file open, too, until it has become another one.
        let end = millstream_net::clock::now() + std::time::Duration::from_secs(10);
        while state.lock().expect("it can be opened").is_none() {
            assert!(millstream_net::clock::now() < end, "it is free again");
            std::thread::yield_now();
        }
    }
}
