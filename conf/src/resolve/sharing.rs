//! Warnings where one user of a location may get what was made for another.
//!
//! A file from nginx keeps its meaning, and nginx shares what an upstream says nothing about, whoever it was made for. So
//! nothing is changed here, only told: at every start, and by `-t`. Before: `cache`, which asks; `made`, which knows what of
//! a request the upstream is told.

use crate::inherit::Level;
use crate::model::{CacheVary, Template, ValidStatus, Variable};
use crate::reading::Reading;
use crate::source::Span;
use crate::variables::Builtin;

/// Warns of a location that shares answers of which neither the upstream nor the location says who may have them.
pub(super) fn warn_of_users(level: &Level, key: &Template, reading: &mut Reading<'_>) {
    let Some(span) = stored_without_a_word(level) else { return };
    let is_decided = level.written.iter().any(|(name, _)| *name == "proxy_cache_credentials");
    if is_decided || tells_users_apart(key) || names_users(&level.proxy_no_cache) || clears_cookies(level) {
        return;
    }
    if names_users(&level.proxy_cache_bypass) {
        reading
            .diagnostics
            .warning(
                span,
                "\"proxy_cache_bypass\" alone does not keep users apart: answers to requests that bypass the cache are still \
                 stored and given to others",
            )
            .help("write proxy_no_cache with the same words as proxy_cache_bypass")
            .once();
        return;
    }
    reading
        .diagnostics
        .warning(
            span,
            "answers that say nothing about caching are stored and given to everybody, including those made for one user's cookie \
             or API key",
        )
        .help(
            "write proxy_cache_credentials public; or proxy_cache_bypass $http_cookie $http_authorization; and proxy_no_cache with \
             the same, with the field of an API key beside them, such as $http_x_api_key",
        )
        .once();
}

/// `proxy_cache_vary`. Credentials are another directive's matter: here they count for nothing, or an answer for everybody
/// would be stored once for each.
pub(super) fn vary(level: &Level, reading: &mut Reading<'_>) -> CacheVary {
    let Some((vary, span)) = level.proxy_cache_vary else { return CacheVary::default() };
    if vary.unlisted && level.proxy_cache_credentials != Some(true) {
        reading
            .diagnostics
            .warning(
                span,
                "\"proxy_cache_vary unlisted\" does not keep clients apart by cookies and credentials",
            )
            .help("write proxy_cache_credentials public; beside it")
            .once();
    }
    vary
}

/// The directive by which answers without a lifetime of their own are stored; failures are nobody's own.
fn stored_without_a_word(level: &Level) -> Option<Span> {
    let valid = level.proxy_cache_valid.iter().flatten().find(|(valid, _)| {
        !valid.time.is_zero()
            && match valid.status {
                ValidStatus::Is(status) => status < 400,
                ValidStatus::Any => true,
            }
    });
    let heuristic = || {
        level.proxy_cache_heuristic.as_ref()?.as_ref()?;
        level.written.iter().find(|(name, _)| *name == "proxy_cache_heuristic").map(|(_, span)| *span)
    };
    valid.map(|(_, span)| *span).or_else(heuristic)
}

fn names_users(templates: &Option<Vec<Template>>) -> bool {
    templates.iter().flatten().any(tells_users_apart)
}

/// Whether a value differs from user to user.
fn tells_users_apart(template: &Template) -> bool {
    const WORDS: [&str; 6] = ["cookie", "auth", "token", "secret", "session", "key"];
    template.variables().any(|variable| match variable {
        Variable::Cookie(_) | Variable::Builtin(Builtin::RemoteUser) => true,
        Variable::RequestHeader(name) => WORDS.iter().any(|word| name.contains(word)),
        _ => false,
    })
}

/// An upstream that gets no cookie of the client answers nobody's own by it.
fn clears_cookies(level: &Level) -> bool {
    level
        .proxy_set_headers
        .iter()
        .flatten()
        .any(|field| field.name.eq_ignore_ascii_case("cookie") && field.value.variables().next().is_none())
}

/// Warns of a location that stores the cookie of whoever asked first.
pub(super) fn warn_of_cookies(level: &Level, reading: &mut Reading<'_>) {
    let is_stored = level.proxy_ignore_headers.is_some_and(|ignore| ignore.set_cookie);
    let is_hidden = level.proxy_hide_headers.iter().flatten().any(|name| name == "set-cookie");
    let place = level.written.iter().rfind(|(name, _)| *name == "proxy_ignore_headers");
    if let Some((_, span)) = place
        && is_stored
        && !is_hidden
    {
        reading
            .diagnostics
            .warning(
                *span,
                "a cookie that is set for one client is stored with the answer and given to everybody",
            )
            .help("write proxy_hide_header Set-Cookie; beside it, or take Set-Cookie out")
            .once();
    }
}

/// Warns of answers to POST that are found by the URL alone. A field of the request that the key names may tell the body.
pub(super) fn warn_of_bodies(level: &Level, key: &Template, reading: &mut Reading<'_>) {
    const NO_BODY: [&str; 3] = ["host", "authorization", "cookie"];
    let tells_body = |variable: &Variable| matches!(variable, Variable::RequestHeader(name) if !NO_BODY.contains(&&**name));
    let is_stored = level.proxy_cache_methods.is_some_and(|methods| methods.post);
    let place = level.written.iter().rfind(|(name, _)| *name == "proxy_cache_methods");
    if let Some((_, span)) = place
        && is_stored
        && !key.variables().any(tells_body)
    {
        reading
            .diagnostics
            .warning(*span, "an answer to POST is stored by its key alone and given to requests with another body")
            .help("write proxy_cache_methods QUERY; for requests that QUERY fits, or put a field that tells the body into proxy_cache_key")
            .once();
    }
}

/// Warns of an upstream that is told the client's host where the key is not: it answers by it, and whoever sends another
/// host is heard by everybody under one key. `$host` has neither port nor the letters' case, so it does not stand for
/// `$http_host`.
pub(super) fn warn_of_hosts(level: &Level, key: &Template, span: Span, reading: &mut Reading<'_>) {
    let is_raw = |variable: &Variable| matches!(variable, Variable::RequestHeader(name) if &**name == "host");
    let is_host = |variable: &Variable| matches!(variable, Variable::Builtin(Builtin::Host));
    let fields = level.proxy_set_headers.as_deref().unwrap_or_default();
    let raw_is_keyed = key.variables().any(is_raw);
    let host_is_keyed = raw_is_keyed || key.variables().any(is_host);
    let told = fields.iter().find_map(|field| {
        let raw = field.value.variables().any(is_raw) && !raw_is_keyed;
        let host = field.value.variables().any(is_host) && !host_is_keyed;
        (raw || host).then_some((field, if raw { "$http_host" } else { "$host" }))
    });
    let Some((field, told)) = told else { return };
    let message = format!(
        "the upstream is sent {told} as {}, but \"proxy_cache_key\" does not contain it: an answer for one host is given to \
         clients of another",
        field.name
    );
    let help = match host_is_keyed {
        true => {
            format!("write proxy_set_header {} $host; or put $http_host into proxy_cache_key", field.name)
        }
        false => format!("write proxy_cache_key {told}{};", key.source),
    };
    reading.diagnostics.warning(span, message).help(help).once();
}
