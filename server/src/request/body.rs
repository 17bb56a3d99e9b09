//! What has been read of a request's body, in memory or in a file.
//!
//! The request owns it, so that whatever runs next (another location, a named one, a further upstream) sends every byte of it once more.
//! Next: `gateway/request_body`, which reads it and sends it.

use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tempfile::TempPath;

/// What the request has of its body.
#[derive(Debug, Default)]
pub enum KeptBody {
    /// Nothing was read yet, or there is none.
    #[default]
    Unread,
    /// Its beginning; the rest is still at the client.
    Part(Vec<u8>),
    /// All of it, which `$request_body` shows.
    Memory(Rc<Vec<u8>>),
    /// All of it, with its length in octets.
    File(Arc<File>, u64),
    /// It was passed on as it came, and some of it is kept nowhere.
    Gone,
}

/// A file with a name that holds a request's body; gone with the request, unless it is to stay.
#[derive(Debug)]
pub struct BodyFile {
    /// Its path.
    pub path: PathBuf,
    /// What removes it.
    pub removed_by: Option<TempPath>,
}
