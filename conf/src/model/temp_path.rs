//! `client_body_temp_path`, `proxy_temp_path`: where files without a name are made.

use std::path::PathBuf;

use crate::source::Span;

/// A directory for temporary files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TempPath {
    /// The directory. Where none is written, nginx's own name below the prefix until a start has chosen one.
    pub path: PathBuf,
    /// Where it is written; `None` leaves the choice to the start.
    pub written: Option<Span>,
}
