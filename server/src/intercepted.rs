//! Answers in whose place the client gets an error page: `proxy_intercept_errors` with an `error_page` for the status.
//!
//! It holds for what an upstream says now and for what is stored alike, so that a client is told the same by a hit as by a miss. Next:
//! `gateway/judging` and `answer/cached`, which ask; `serve`, which answers the status.

use crate::request::Request;
use millstream_wire::{FieldId, Fields, Headers};

/// Whether a page may stand in the place of an answer with this status in the location of the request.
pub fn has_page(request: &Request, status: u16) -> bool {
    let settings = &request.location().settings;
    status >= 300
        && settings.pass().is_some_and(|pass| pass.exchange.intercept_errors)
        && settings.error_pages.iter().any(|page| page.status == status)
}

/// Whether it does for this request, which may be on its way to a page already.
pub fn gets_page(request: &Request, status: u16) -> bool {
    has_page(request, status) && !request.in_error_page
}

/// What an answer whose status gets a page says beside that page, as in nginx: how to be let in.
pub fn kept_beside_page(status: u16, fields: Fields<'_>) -> Option<Headers> {
    let is_asked_for = status == 401 && fields.has(FieldId::WwwAuthenticate);
    is_asked_for.then(|| Headers::copied_from(fields, |id, _, _| id == FieldId::WwwAuthenticate))
}

/// The same of a stored answer: the status to answer in its place.
pub fn of_stored(request: &mut Request, status: u16, fields: Fields<'_>) -> Option<u16> {
    if !gets_page(request, status) {
        return None;
    }
    request.accel_fields = kept_beside_page(status, fields).map(Box::new);
    Some(status)
}
