//! Answers in whose place the client gets an error page: `proxy_intercept_errors` with an `error_page` for the status.
//!
//! It holds for what an upstream says now and for what is stored alike, so that a client is told the same by a hit as by a miss. Next:
//! `exchange/judging` and `cached`, which ask; `drive`, which answers the status.

use crate::request::Request;
use millstream_wire::{FieldId, Fields};

/// Whether an error page replaces a response with this status. A request already on the way to a page gets
/// the built-in one, never the upstream's body and fields.
pub fn gets_page(request: &Request, status: u16) -> bool {
    let settings = &request.location().settings;
    status >= 300
        && settings.pass().is_some_and(|pass| pass.exchange.intercept_errors)
        && settings.error_pages.iter().any(|page| page.status == status)
}

/// Keeps WWW-Authenticate for the page, as nginx.
pub fn keep_beside_page(request: &mut Request, status: u16, fields: Fields<'_>) {
    if status == 401 {
        for challenge in fields.all(FieldId::WwwAuthenticate) {
            request.descent.accel_fields.get_or_insert_default().push_id(FieldId::WwwAuthenticate, challenge);
        }
    }
}

pub fn of_stored(request: &mut Request, status: u16, fields: Fields<'_>) -> Option<u16> {
    if !gets_page(request, status) {
        return None;
    }
    keep_beside_page(request, status, fields);
    Some(status)
}
