//! The response to this client: what it has of its own, and what was sent of it.

use crate::page::Sheet;
use millstream_wire::Headers;
use std::cell::OnceCell;

/// What it has of its own.
#[derive(Debug, Default)]
pub struct Reply {
    /// The response's fields for this client only, if some are not stored.
    pub own_head: Option<Box<Headers>>,
    /// `sticky cookie` for the server chosen last.
    pub session_cookie: Option<Box<[u8]>>,
    /// `$limit_rate` in bytes a second, if not the location's.
    pub limit_rate: Option<u64>,
    /// `X-Accel-Charset`, known or not.
    pub accel_charset: Option<Box<[u8]>>,
    /// What `ssi` keeps of the page.
    pub sheet: OnceCell<Box<Sheet>>,
}

/// The response so far, for variables and logs.
#[derive(Debug, Default, Clone)]
pub struct Sent {
    /// 0 before the head is made.
    pub status: u16,
    /// As sent; kept only if the configuration reads `$sent_http_`.
    pub head: Vec<u8>,
    pub trailers: Vec<u8>,
    /// Head included.
    pub bytes: u64,
    pub body_bytes: u64,
    pub complete: bool,
    /// Bytes before and after compression, if compressed here.
    pub compressed: Option<(u64, u64)>,
}

impl Sent {
    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.trailers.clear();
        let (head, trailers) = (std::mem::take(&mut self.head), std::mem::take(&mut self.trailers));
        *self = Sent { head, trailers, ..Sent::default() };
    }
}
