//! Answers to POST are found by the URL alone: `proxy_cache_methods POST;` with a key that tells nothing of the body.

use super::Cached;
use crate::reading::Reading;
use crate::template::Variable;
use crate::variables::Builtin;

/// Warns if responses to POST are stored by URL alone. `$request_body` in the key avoids it, and a request
/// field may.
pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    const NO_BODY: [&str; 3] = ["host", "authorization", "cookie"];
    let tells_body = |variable: &Variable| match variable {
        Variable::RequestHeader(name) => !NO_BODY.contains(&&**name),
        Variable::Builtin(Builtin::RequestBody) => true,
        _ => false,
    };
    let Some((methods, span)) = of.written.cache.methods else { return };
    if methods.post && !of.cache.key.variables().any(tells_body) {
        let (methods, key) = (of.family.directive("cache_methods"), of.family.directive("cache_key"));
        reading
            .diagnostics
            .warning(span, "a response to POST is stored under its key and sent to clients with another body")
            .help(format!(
                "write {methods} QUERY; if QUERY suits the requests, or add $request_body to {key}"
            ))
            .once();
    }
}
