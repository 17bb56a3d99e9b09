//! A directive without what it belongs to: `proxy_cache_purge_soft on;` without a cache, `api_token` without an API.

use crate::features::Need;
use crate::model::{Handler, Location};
use crate::reading::Reading;

/// Purge, tag and explain directives without a cache, and rights to an API that does not exist.
pub(super) fn advise(locations: &[Location], reading: &mut Reading<'_>) {
    let has_api = locations.iter().any(|location| matches!(location.settings.content, Handler::Api(_)));
    for (need, name, span) in std::mem::take(&mut reading.dependent) {
        let (is_obeyed, needs, help) = match need {
            Need::Api => (has_api, "location with \"api\"", "write api; in the location of the API"),
            Need::Cache => (
                reading.obeyed.contains(&span),
                "location with \"proxy_pass\" and \"proxy_cache\"",
                "remove it, or write proxy_cache in the location whose responses are the same for every client",
            ),
        };
        if !is_obeyed {
            reading
                .diagnostics
                .warning(span, format!("\"{name}\" has no effect: there is no {needs} for it"))
                .help(help);
        }
    }
}
