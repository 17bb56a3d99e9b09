//! Answers made for one client's certificate are stored and given to all: the upstream is told whose it is, and the cache is not.
//!
//! A certificate is a credential as a cookie is. `proxy_cache_credentials public` knows it; a key by cookie or Authorization does not.

use super::Cached;
use super::users::stored_without_a_word;
use crate::reading::Reading;
use crate::template::{Template, Variable};
use crate::variables::{Builtin, Source};

/// Warns if the upstream is told the client's certificate but nothing keeps the responses apart by it.
pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    let Some(span) = stored_without_a_word(of.written) else { return };
    let told = of.sent.iter().any(|field| is_about(&field.value, reading));
    let is_apart = of.written.sharing.credentials.is_some()
        || is_about(&of.cache.key, reading)
        || of.cache.no_cache.iter().any(|one| is_about(one, reading));
    if !told || is_apart {
        return;
    }
    let [credentials, key] = ["cache_credentials", "cache_key"].map(|rest| of.family.directive(rest));
    reading
        .diagnostics
        .warning(
            span,
            "the upstream receives the client's certificate, and a response made for one client is stored and sent to others",
        )
        .help(format!("write {credentials} public; or add $ssl_client_fingerprint to {key}"))
        .once();
}

/// Whether a value differs between certificates, also through a `map`. A serial number does if all have one
/// issuer.
fn is_about(template: &Template, reading: &Reading<'_>) -> bool {
    let is_about = |variable: &Variable| {
        variable.source() == Source::Certificate || *variable == Variable::Builtin(Builtin::SslClientSerial)
    };
    reading.reads(template).into_iter().any(is_about)
}
