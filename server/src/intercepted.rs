//! Answers in whose place the client gets an error page: `proxy_intercept_errors` with an `error_page` for the status.
//!
//! It holds for what an upstream says now and for what is stored alike, so that a client is told the same by a hit as by a miss. Next:
//! `gateway/judging` and `answer/cached`, which ask; `serve`, which answers the status.

use crate::request::Request;
use millstream_wire::{FieldId, Fields};

/// Whether the client gets a page instead of a response with this status in the location of the request. It does not matter whether the
/// request is being led to a page already: then it gets the built-in one, never the body and the fields of the upstream.
pub fn gets_page(request: &Request, status: u16) -> bool {
    let settings = &request.location().settings;
    status >= 300
        && settings.pass().is_some_and(|pass| pass.exchange.intercept_errors)
        && settings.error_pages.iter().any(|page| page.status == status)
}

/// Keeps for the page what the response in whose place it stands says of how to be let in, as in nginx.
pub fn keep_beside_page(request: &mut Request, status: u16, fields: Fields<'_>) {
    if status == 401 {
        for challenge in fields.all(FieldId::WwwAuthenticate) {
            request.accel_fields.get_or_insert_default().push_id(FieldId::WwwAuthenticate, challenge);
        }
    }
}

/// The same of a stored answer: the status to answer in its place.
pub fn of_stored(request: &mut Request, status: u16, fields: Fields<'_>) -> Option<u16> {
    if !gets_page(request, status) {
        return None;
    }
    keep_beside_page(request, status, fields);
    Some(status)
}
