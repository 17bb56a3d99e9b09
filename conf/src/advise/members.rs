//! What members get is given to the others: a location that lets only some in, and the page of its 401 or 403, use one cache under one
//! key.
//!
//! Who is not let in is led to the page, which finds there what is stored for the members. Fine is a key of its own, or one that tells
//! users apart.

use super::users::tells_users_apart;
use crate::model::{ErrorPage, Http, Location, LocationId, Pass, Server, Settings};
use crate::reading::Reading;
use crate::template::Variable;
use crate::variables::Builtin;

/// Warns of each location whose error page for refused clients shares its stored responses.
pub(super) fn advise(http: &Http, reading: &mut Reading<'_>) {
    for server in &http.servers {
        for id in http.locations_of(server) {
            let guarded = http.location(id);
            if lets_all_in(&guarded.settings) {
                continue;
            }
            let pages = guarded.settings.error_pages.iter().filter(|page| matches!(page.status, 401 | 403));
            let open = pages
                .filter_map(|page| Some((page, http.location(led_to(page, server)?))))
                .find(|(page, open)| is_shared(guarded, open, page, reading));
            if let Some((page, open)) = open {
                warn(guarded, open, page.status, reading);
            }
        }
    }
}

fn warn(guarded: &Location, open: &Location, status: u16, reading: &mut Reading<'_>) {
    let place = reading.sources.locate(open.span);
    reading
        .diagnostics
        .warning(
            guarded.span,
            format!(
                "a client that gets {status} here is redirected to the location at {place}, which has the same cache and key: it receives responses stored for clients with access"
            ),
        )
        .help(format!("write another proxy_cache_key, or proxy_cache off;, in the location at {place}"));
}

fn lets_all_in(settings: &Settings) -> bool {
    settings.auth_request.uri.is_none() && settings.auth_basic.is_none() && settings.access.is_empty()
}

/// The location an error page leads to, as far as it is known at load: an `@name`, or that of a path.
fn led_to(page: &ErrorPage, server: &Server) -> Option<LocationId> {
    let uri = page.uri.as_literal()?;
    let tree = &server.locations;
    let by_name =
        |all: &[(String, LocationId)], name: &str| all.iter().find(|(own, _)| own == name).map(|(_, id)| *id);
    if uri.starts_with('@') {
        return by_name(&tree.named, uri);
    }
    let path = uri.split('?').next().filter(|path| path.starts_with('/'))?;
    let prefixes = tree.prefixes.iter().filter(|(prefix, _)| path.starts_with(prefix.as_str()));
    let longest = || prefixes.max_by_key(|(prefix, _)| prefix.len()).map(|(_, id)| *id);
    by_name(&tree.exact, path).or_else(longest)
}

/// Whether one location finds what the other stored, with nothing telling their clients apart.
fn is_shared(guarded: &Location, open: &Location, page: &ErrorPage, reading: &Reading<'_>) -> bool {
    let (Some(own), Some(other)) = (guarded.settings.cache(), open.settings.cache()) else { return false };
    let (Some(pass), Some(other_pass)) = (guarded.settings.pass(), open.settings.pass()) else {
        return false;
    };
    let names = |wanted: &dyn Fn(&Variable) -> bool| reading.reads(&own.key).into_iter().any(wanted);
    // What the key names of the upstream and of the path differs with these.
    let is_by_target = names(&|variable| {
        matches!(
            variable,
            Variable::SentTarget
                | Variable::SentOrigin
                | Variable::Builtin(Builtin::ProxyHost | Builtin::ProxyPort)
        )
    });
    let is_by_path = names(&|variable| {
        matches!(variable, Variable::SentTarget | Variable::Builtin(Builtin::Uri | Builtin::DocumentUri))
    });
    let keeps_path = page.uri.as_literal().is_some_and(|uri| uri.starts_with('@'));
    own.zone == other.zone
        && own.key == other.key
        && lets_all_in(&open.settings)
        && !names(&|variable| matches!(variable, Variable::Slot(_)))
        && !tells_users_apart(&own.key, reading)
        && !own.no_cache.iter().any(|one| tells_users_apart(one, reading))
        && (!is_by_target || (&pass.target, target_uri(pass)) == (&other_pass.target, target_uri(other_pass)))
        && (!is_by_path || keeps_path)
}

fn target_uri(pass: &Pass) -> Option<&str> {
    pass.http().and_then(|http| http.uri.as_deref())
}
