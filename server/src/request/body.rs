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
#[derive(Debug, Clone, Default)]
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
    /// It was passed on as it came and some of it is kept nowhere, or it could not be read: the status that the request fails with where it is needed.
    Lost(u16),
    /// It is lost, and what runs now does without.
    Omitted(u16),
}

/// What a request fails with whose body was passed on as it came.
pub const PASSED_ON: u16 = 502;

impl KeptBody {
    /// A page is fetched in place of a response, by GET or by the request's own method. A lost body is left out where nobody takes that for
    /// a success: the client is told of an error. One that its client sent wrong is left out of any page that is fetched by GET.
    pub fn lead_to_page(&mut self, is_by_get: bool, is_error: bool) {
        let (KeptBody::Lost(status) | KeptBody::Omitted(status)) = *self else { return };
        let may_lack = if status == PASSED_ON { is_by_get && is_error } else { is_by_get || is_error };
        *self = if may_lack { KeptBody::Omitted(status) } else { KeptBody::Lost(status) };
    }

    /// The server that was sent the body leads to what is fetched in place of its response.
    pub fn lead_on(&mut self) {
        if let KeptBody::Lost(PASSED_ON) = self {
            *self = KeptBody::Omitted(PASSED_ON);
        }
    }

    /// Whether some of it is kept nowhere, whether or not what runs now does without.
    pub fn is_lost(&self) -> bool {
        matches!(self, KeptBody::Lost(_) | KeptBody::Omitted(_))
    }

    /// Whether its client sent one that cannot be taken: too large, too slowly, or framed wrong.
    pub fn is_refused(&self) -> bool {
        matches!(self, KeptBody::Lost(status) | KeptBody::Omitted(status) if *status != PASSED_ON)
    }

    /// Octets of a body that is all here; else 0.
    pub fn held(&self) -> u64 {
        match self {
            KeptBody::Memory(bytes) => bytes.len() as u64,
            KeptBody::File(_, length) => *length,
            _ => 0,
        }
    }
}

/// A file with a name that holds a request's body; gone with the request, unless it is to stay.
#[derive(Debug)]
pub struct BodyFile {
    /// Its path.
    pub path: PathBuf,
    /// What removes it.
    pub removed_by: Option<TempPath>,
}
