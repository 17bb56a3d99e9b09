//! What is opened and what is refused, by its kind.

use super::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

#[test]
fn a_pipe_without_a_writer_is_refused_at_once_and_a_log_may_be_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
    let refused = open(&pipe).expect_err("nobody writes to it");
    assert_eq!((refused.kind(), &*refused.to_string()), (io::ErrorKind::InvalidInput, "not a regular file"));
    append(&pipe, 0o644).expect("it is opened without a reader");
    assert!(open(folder.path()).is_ok(), "reading it is the error");
    assert!(open(Path::new("/dev/null")).is_ok());
}

#[test]
fn what_is_named_for_reading_is_not_named_for_writing() {
    let (key, log) = (Path::new("/k"), Path::new("/l"));
    let mut named = Named::default();
    named.read.insert(key.into());
    named.append.insert(log.into());
    named.patterns.insert("/etc/*.conf".to_owned());
    for (path, access, wanted) in [
        (key, Access::Read, true),
        (key, Access::Append(0o644), false),
        (log, Access::Append(0o600), true),
        (log, Access::Read, false),
        (Path::new("/etc/shadow"), Access::Read, false),
    ] {
        assert_eq!(named.has(path, access), wanted, "{path:?} {access:?}");
    }
    assert!(named.has_pattern("/etc/*.conf") && !named.has_pattern("/etc/*"));
}
