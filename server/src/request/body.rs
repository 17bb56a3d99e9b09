//! What has been read of a request's body, in memory or in a file with a name.

use std::path::PathBuf;
use tempfile::TempPath;

/// The beginning of a request's body, or all of it.
#[derive(Debug, Default)]
pub struct EarlyBody {
    /// What was read.
    pub bytes: Vec<u8>,
    /// Whether that is all.
    pub is_whole: bool,
}

/// A file with a name that holds a request's body; gone with the request, unless it is to stay.
#[derive(Debug)]
pub struct BodyFile {
    /// Its path.
    pub path: PathBuf,
    /// What removes it.
    pub removed_by: Option<TempPath>,
}
