//! Files for a while: what does not fit memory, mostly without a name, gone with its last handle however the process ends.
//!
//! Where the filesystem has no such files (O_TMPFILE) one is made and unlinked at once. Nothing here chooses a folder.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// A new unnamed file to read and write. Blocks.
pub fn file_in(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// A new file that is removed with the second value. Blocks.
pub fn named_file_in(folder: &Path) -> io::Result<(File, tempfile::TempPath)> {
    tempfile::Builder::new().prefix("").rand_bytes(10).tempfile_in(folder).map(|file| file.into_parts())
}

/// Accessible only to its owner, as in nginx; only the last part of the path. An existing folder stays as it
/// is.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::metadata(folder)?.is_dir() => {
            Ok(())
        }
        made => made,
    }
}
