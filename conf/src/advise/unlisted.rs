//! Answers vary by everything but who asks: `proxy_cache_vary unlisted;` without `proxy_cache_credentials public;`.
//!
//! Credentials are that directive's matter: here they count for nothing, or an answer for everybody would be stored once for each.

use super::Cached;
use crate::reading::Reading;

pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    let Some((vary, span)) = of.written.sharing.vary else { return };
    if vary.unlisted && of.written.sharing.credentials != Some(true) {
        let (vary, credentials) =
            (of.family.directive("cache_vary"), of.family.directive("cache_credentials"));
        reading
            .diagnostics
            .warning(
                span,
                format!("\"{vary} unlisted\" does not keep clients apart by cookies and credentials"),
            )
            .help(format!("write {credentials} public; in the same location"))
            .once();
    }
}
