//! How a request descends from what a client sent: as a subrequest, by internal redirects, by error pages.

use millstream_wire::Headers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubrequestPart {
    Head,
    Body,
    Variable,
}

#[derive(Debug, Default)]
pub struct Descent {
    /// What the parent of a subrequest wants; `None` for a client's request.
    pub wanted: Option<SubrequestPart>,
    /// Internal redirects so far; `restart` has the limit.
    pub changes: u8,
    /// After an internal redirect: may use internal locations.
    pub is_internal: bool,
    /// Whether an `error_page` is being served: a further failure gets the built-in page.
    pub in_error_page: bool,
    /// Replaces the page's own status.
    pub error_status: Option<u16>,
    /// Fields left by responses with `X-Accel-Redirect`, or replaced by an error page.
    pub accel_fields: Option<Box<Headers>>,
}
