//! One user of a location may get what was made for another: answers that say nothing about caching are stored and shared.
//!
//! `proxy_cache_valid 200 1m;` where nothing keeps users apart. Fine is a key, a `proxy_no_cache` or a `proxy_cache_credentials` that does.

use super::Cached;
use crate::features::pass::CommonLevel;
use crate::features::pass::http::SetHeader;
use crate::model::ValidStatus;
use crate::reading::Reading;
use crate::source::Span;
use crate::template::{Template, Variable};
use crate::variables::Builtin;

/// Warns of a location that shares responses although neither the upstream nor the location says who may have
/// them.
pub(super) fn advise(of: &Cached<'_>, reading: &mut Reading<'_>) {
    let Some(span) = stored_without_a_word(of.written) else { return };
    let is_decided = of.written.sharing.credentials.is_some();
    let cache = of.cache;
    if is_decided || clears_cookies(of.sent) {
        return;
    }
    let parting = || std::iter::once(&cache.key).chain(&cache.no_cache);
    let tells_users = parting().any(|one| tells_users_apart(one, reading));
    let tells_browsers = parting().any(|one| tells_browsers_apart(one, reading));
    let is_bypassed = cache.bypass.iter().any(|one| tells_users_apart(one, reading));
    let mut warn = |what: String| {
        let [credentials, vary] = ["cache_credentials", "cache_vary"].map(|rest| of.family.directive(rest));
        let help = match cache.vary.unlisted {
            true => format!("write {credentials} public;"),
            false => format!("write {credentials} public; and {vary} origin unlisted address;"),
        };
        reading.diagnostics.warning(span, what).help(help).once();
    };
    if tells_users {
        // A browser sends its cookies unasked, whatever else a request is told apart by.
        if !tells_browsers {
            warn(
                "responses without caching headers are stored and sent to clients with other cookies"
                    .to_owned(),
            );
        }
    } else if is_bypassed {
        warn(format!(
            "\"{}\" alone does not keep users apart: responses to requests that bypass the cache are still stored and \
             sent to others",
            of.family.directive("cache_bypass")
        ));
    } else {
        warn(
            "responses without caching headers are stored and sent to every client, including those made for one user's \
             cookie or API key"
                .to_owned(),
        );
    }
}

/// The directive that stores responses without a lifetime of their own. Failures are not personal, so they do
/// not count.
pub(super) fn stored_without_a_word(written: &CommonLevel) -> Option<Span> {
    let valid = written.cache.valid.iter().flatten().find(|(valid, _)| {
        !valid.time.is_zero()
            && match valid.status {
                ValidStatus::Is(status) => status < 400,
                ValidStatus::Any => true,
            }
    });
    let guessed = written.cache.heuristic.filter(|(guess, _)| guess.is_some());
    valid.map(|(_, span)| *span).or(guessed.map(|(_, span)| span))
}

/// Whether a value differs between users, also through a `map`.
pub(super) fn tells_users_apart(template: &Template, reading: &Reading<'_>) -> bool {
    const WORDS: [&str; 6] = ["cookie", "auth", "token", "secret", "session", "key"];
    reading.reads(template).into_iter().any(|variable| match variable {
        Variable::Cookie(name) => is_of_users(name),
        Variable::Builtin(Builtin::RemoteUser) => true,
        Variable::RequestHeader(name) => WORDS.iter().any(|word| name.contains(word)),
        _ => false,
    })
}

/// Whether a value differs between logged-in browsers.
fn tells_browsers_apart(template: &Template, reading: &Reading<'_>) -> bool {
    reading.reads(template).into_iter().any(|variable| match variable {
        Variable::Cookie(name) => is_of_users(name),
        Variable::Builtin(Builtin::RemoteUser) | Variable::Slot(_) => true,
        Variable::RequestHeader(name) => name.contains("cookie"),
        _ => false,
    })
}

/// Whether a cookie of this name may be that of a session: those by which people switch a cache off (nginx's own example has
/// `$cookie_nocache`) are the same for many.
fn is_of_users(name: &str) -> bool {
    const SWITCHES: [&str; 7] = ["cache", "bypass", "purge", "preview", "debug", "lang", "currency"];
    let name = name.to_ascii_lowercase();
    !SWITCHES.iter().any(|switch| name.contains(switch))
}

/// An upstream that gets no cookie of the client cannot respond personally because of one.
fn clears_cookies(sent: &[SetHeader]) -> bool {
    sent.iter()
        .any(|field| field.name.eq_ignore_ascii_case("cookie") && field.value.variables().next().is_none())
}
