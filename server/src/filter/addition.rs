//! `add_before_body`, `add_after_body`: what other paths answer stands before and behind an answer.
//!
//! Only an answer of 200 has additions, and only a client's: those to subrequests have none, so an answer may be its own addition.
//! Next: `chain`; `client/assembly`, which asks.

use super::body::Draft;
use super::coding;
use crate::request::Request;

#[derive(Default)]
pub struct Addition {
    /// A path; its response comes first.
    pub before: Option<Box<str>>,
    /// A path; its response comes last.
    pub after: Option<Box<str>>,
}

pub(super) fn begin(request: &Request, draft: &mut Draft) -> Option<Addition> {
    let settings = &request.location().settings.addition;
    if draft.status != 200 || request.descent.wanted.is_some() || !settings.is_there() {
        return None;
    }
    if !coding::covers_type(settings.any_type, &settings.types, draft.headers.view()) {
        return None;
    }
    draft.resize();
    draft.weaken();
    let path = |path: &str| (!path.is_empty()).then(|| path.into());
    Some(Addition { before: path(&settings.before), after: path(&settings.after) })
}
