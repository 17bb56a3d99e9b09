//! The API hides what is passed on: `api;` and `proxy_pass` in one location.

use crate::features::Level;
use crate::features::api::OwnApi;
use crate::reading::Reading;

pub(super) fn advise(level: &Level, reading: &mut Reading<'_>) {
    if let (Some(OwnApi { span, .. }), Some(draft)) = (level.api.own, &level.pass.draft) {
        let pass = draft.family.directive("pass");
        reading
            .diagnostics
            .warning(span, format!("\"api\" and \"{pass}\" are in the same location; the API responds"))
            .help("put the API into another location");
    }
}
