//! Files opened by paths whose symbolic links are followed only as far as the location lets them be (`disable_symlinks`).
//!
//! Where links are refused a path is walked name by name, each from the directory before, so that nobody can put a link where none
//! was a moment ago. It blocks: for threads of `blocking` only, but for what is known at once. Next: `rewrite/file_test` and `content/file`, which open so.

use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::Refused;
use millstream_net::read_file::look_at_once;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Debug, Clone, Default)]
pub struct RefusedLinks {
    /// Which links are refused, and the path prefix in which they are allowed.
    refused: Option<(Refused, Vec<u8>)>,
}

impl RefusedLinks {
    pub fn of(request: &Request) -> RefusedLinks {
        let symlinks = &request.location().settings.symlinks;
        let refused = symlinks.as_ref().map(|symlinks| {
            let from = symlinks.from.as_ref().map(|from| value(from, request));
            (symlinks.refused, from.unwrap_or_default())
        });
        RefusedLinks { refused }
    }

    pub fn refuses_some(&self) -> bool {
        self.refused.is_some()
    }

    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.walk(path, OFlags::PATH) {
            None => path.metadata(),
            Some(found) => File::from(found?).metadata(),
        }
    }

    /// Without blocking; `None` if the kernel would wait or links are refused, which needs a walk.
    pub fn metadata_at_once(&self, path: &Path) -> Option<io::Result<Metadata>> {
        if self.refused.is_some() {
            return None;
        }
        look_at_once(path)
    }

    pub fn open(&self, path: &Path) -> io::Result<File> {
        match self.walk(path, OFlags::RDONLY | OFlags::NONBLOCK) {
            None => File::open(path),
            Some(found) => found.map(File::from).map_err(io::Error::from),
        }
    }

    /// For opening files in it, not for listing.
    pub fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let opened = match self.walk(path, OFlags::PATH) {
            None => openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()),
            Some(found) => found,
        };
        Ok(opened?)
    }

    /// Opens the end of a path with these flags; `None` if nothing is refused.
    fn walk(&self, path: &Path, last: OFlags) -> Option<Result<OwnedFd, Errno>> {
        let (refused, from) = self.refused.as_ref()?;
        let bytes = path.as_os_str().as_bytes();
        let (trusted, names) = match bytes.strip_prefix(from.as_slice()) {
            // All of it is trusted.
            Some([]) => return None,
            Some(rest) if rest[0] == b'/' || from.ends_with(b"/") => (from.as_slice(), rest),
            _ => (&b""[..], bytes),
        };
        Some(walk(*refused, if trusted.is_empty() { b"/" } else { trusted }, names, last))
    }
}

fn walk(refused: Refused, trusted: &[u8], names: &[u8], last: OFlags) -> Result<OwnedFd, Errno> {
    let mut at = openat(CWD, trusted, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // What ends in a slash is a directory.
    let last = if names.ends_with(b"/") { last | OFlags::DIRECTORY } else { last };
    let mut names = names.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { OFlags::PATH } else { last } | OFlags::CLOEXEC;
        at = step(refused, at, name, flags)?;
    }
    Ok(at)
}

fn step(refused: Refused, at: OwnedFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let is_link = |mode| FileType::from_raw_mode(mode) == FileType::Symlink;
    match refused {
        Refused::All => {
            let found = openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
            // A path alone is opened even where it is a link.
            if flags.contains(OFlags::PATH) && is_link(fstat(&found)?.st_mode) {
                return Err(Errno::LOOP);
            }
            Ok(found)
        }
        Refused::OfOthers => {
            let found = openat(&at, name, flags, Mode::empty())?;
            let link = statat(at.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
            if is_link(link.st_mode) && link.st_uid != fstat(&found)?.st_uid {
                return Err(Errno::LOOP);
            }
            Ok(found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RefusedLinks;
    use millstream_conf::model::Refused;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_only_where_they_may_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        std::fs::create_dir_all(root.join("real/deep")).expect("made");
        std::fs::write(root.join("real/deep/file"), "x").expect("written");
        symlink(root.join("real"), root.join("link")).expect("made");
        symlink(root.join("real/deep/file"), root.join("real/alias")).expect("made");
        let rule = |refused, from: &str| RefusedLinks {
            refused: Some((refused, format!("{}{from}", root.display()).into_bytes())),
        };
        let none = RefusedLinks { refused: Some((Refused::All, Vec::new())) };
        for (path, follows_none, from_link, of_others) in [
            ("real/deep/file", true, true, true),
            ("real/alias", false, false, true),
            ("link/deep/file", false, true, true),
            ("link", false, true, true),
            ("link/alias", false, false, true),
            ("real/deep", true, true, true),
            ("real/none", false, false, false),
            ("real/deep/", true, true, true),
            ("real/deep/file/", false, false, false),
            ("real/alias/", false, false, false),
            ("link/deep/file/", false, false, false),
        ] {
            let full = root.join(path);
            assert_eq!(none.metadata(&full).is_ok(), follows_none, "{path}");
            assert_eq!(rule(Refused::All, "/link").metadata(&full).is_ok(), from_link, "{path} from link");
            assert_eq!(rule(Refused::OfOthers, "").metadata(&full).is_ok(), of_others, "{path} of others");
            assert_eq!(none.open(&full).is_ok(), follows_none, "{path}, opened");
        }
    }
}
