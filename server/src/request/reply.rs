//! What the response to this client has of its own.

use crate::page::Sheet;
use millstream_wire::Headers;
use std::cell::OnceCell;

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
