//! A cache behind passwords that keeps nothing: `auth_basic` beside `proxy_cache`, where every request brings a credential.
//!
//! RFC 9111 §3.5: what is answered to a credential is stored only where the answer says that it is for everybody. Fine is an
//! upstream that does not get it, a key that names it, or a word about credentials.

use super::Cached;
use crate::features::pass::Family;
use crate::model::Settings;
use crate::reading::Reading;

pub(super) fn advise(of: &Cached<'_>, settings: &Settings, reading: &mut Reading<'_>) {
    let is_sent = !of.sent.iter().any(|field| field.name.eq_ignore_ascii_case("authorization"));
    let is_decided = of.cache.key_names_credential || of.written.sharing.credentials.is_some();
    if settings.auth_basic.is_none() || of.family != Family::Proxy || !is_sent || is_decided {
        return;
    }
    reading
        .diagnostics
        .warning(
            of.span,
            "only responses with \"public\" are stored: with \"auth_basic\", every request has a credential",
        )
        .help(format!(
            "write {} public; and {} origin unlisted address; and put $http_authorization into {}, so that each user has separate responses",
            of.family.directive("cache_credentials"),
            of.family.directive("cache_vary"),
            of.family.directive("cache_key")
        ))
        .once();
}
