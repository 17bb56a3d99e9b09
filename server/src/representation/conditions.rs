//! Conditions of a request against an answer that is at hand: does it go out, or only 304 or 412?
//!
//! RFC 9110 §13.2.2 gives the order, `if_modified_since` says how dates are compared. They come before ranges.
//! Next: `ranges`.

use crate::request::Request;
use millstream_conf::model::IfModifiedSince;
use millstream_wire::conditional::{self, Outcome, Validators};
use millstream_wire::{FieldId, date};

/// Evaluates a request's conditions against the validators of an answer of 200.
pub fn evaluate(request: &Request, validators: Validators<'_>) -> Outcome {
    // The page of an error is not what the client has a copy of.
    if request.error_status.is_some_and(|status| status != 200) {
        return Outcome::Proceed;
    }
    match conditional::evaluate(request.method, request.fields(), validators) {
        Outcome::NotModified if !date_counts(request, validators) => Outcome::Proceed,
        outcome => outcome,
    }
}

/// Whether a 304 that a date alone gave is one by `if_modified_since` too: as in nginx the default asks for the very date.
fn date_counts(request: &Request, validators: Validators<'_>) -> bool {
    if request.fields().has(FieldId::IfNoneMatch) {
        return true;
    }
    match request.location().settings.ranges.if_modified_since {
        IfModifiedSince::Off => false,
        IfModifiedSince::Exact => {
            request.field(FieldId::IfModifiedSince).and_then(date::parse_http) == validators.last_modified
        }
        IfModifiedSince::Before => true,
    }
}
