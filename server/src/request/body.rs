//! What has been read of a request's body, in memory or in a file.
//!
//! The request owns it, so that whatever runs next (another location, a named one, a further upstream) sends every byte of it once more.
//! Next: `exchange/request_body`, which reads it and sends it.

use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tempfile::TempPath;

#[derive(Debug, Clone, Default)]
pub enum KeptBody {
    #[default]
    Unread,
    Part(Vec<u8>),
    /// Visible as `$request_body`.
    Memory(Rc<Vec<u8>>),
    /// With its length in bytes.
    File(Arc<File>, u64),
    /// Streamed and not kept, or unreadable: the status if it is needed again.
    Lost(u16),
    /// It is lost, and the present handler does without.
    Omitted(u16),
}

pub const PASSED_ON: u16 = 502;
/// No file could hold it.
pub const UNWRITABLE: u16 = 500;

impl KeptBody {
    /// Before fetching a page by GET or the request's own method. A lost body is omitted for an error page; a
    /// malformed one for any page by GET.
    pub fn lead_to_page(&mut self, is_by_get: bool, is_error: bool) {
        let (KeptBody::Lost(status) | KeptBody::Omitted(status)) = *self else { return };
        let may_lack = if is_of_client(status) { is_by_get || is_error } else { is_by_get && is_error };
        *self = if may_lack { KeptBody::Omitted(status) } else { KeptBody::Lost(status) };
    }

    /// Before a fetch that the server which got the body asked for.
    pub fn lead_on(&mut self) {
        if let KeptBody::Lost(PASSED_ON) = self {
            *self = KeptBody::Omitted(PASSED_ON);
        }
    }

    /// Whether part of it is not kept, omitted or not.
    pub fn is_lost(&self) -> bool {
        matches!(self, KeptBody::Lost(_) | KeptBody::Omitted(_))
    }

    /// Whether the client's body was too large, too slow or malformed.
    pub fn is_refused(&self) -> bool {
        matches!(self, KeptBody::Lost(status) | KeptBody::Omitted(status) if is_of_client(*status))
    }

    /// Bytes of a complete body, else 0.
    pub fn held(&self) -> u64 {
        match self {
            KeptBody::Memory(bytes) => bytes.len() as u64,
            KeptBody::File(_, length) => *length,
            _ => 0,
        }
    }
}

/// Whether a body was lost by the client's fault.
fn is_of_client(status: u16) -> bool {
    !matches!(status, PASSED_ON | UNWRITABLE)
}

/// Removed with the request, unless it is to stay.
#[derive(Debug)]
pub struct BodyFile {
    pub path: PathBuf,
    pub removed_by: Option<TempPath>,
}
