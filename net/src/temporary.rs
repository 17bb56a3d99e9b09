//! Files for a while: what does not fit memory, mostly without a name, gone with its last handle however the process ends.
//!
//! Where the filesystem has no such files (O_TMPFILE) one is made and unlinked at once. Nothing here chooses a folder.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// A new file in a folder, to be read and written. Blocks.
///
/// # Errors
/// Those of the filesystem: no such folder, no right to it, read-only, no room.
pub fn file_in(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// A new file in a folder with a name, which goes with the second value. Blocks.
///
/// # Errors
/// Those of [`file_in`].
pub fn named_file_in(folder: &Path) -> io::Result<(File, tempfile::TempPath)> {
    tempfile::Builder::new().prefix("").rand_bytes(10).tempfile_in(folder).map(|file| file.into_parts())
}

/// Makes a folder that nobody else may enter, as nginx does: its last part alone. One that is there stays as it is.
///
/// # Errors
/// Those of making it; something else is there under its name.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::metadata(folder)?.is_dir() => {
            Ok(())
        }
        made => made,
    }
}
