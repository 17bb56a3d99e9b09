//! The page to read: the phases of a request, in nginx's order.
//!
//! ```text
//! admit → server's return → location → return → content ─┬─ a hit in memory, written on the spot
//!             ▲                                          ├─ whatever else answers
//!             └── Restart: index, error_page,            └─ a status
//!                 X-Accel-Redirect
//! ```
//! `admission` has admitted the request. Deciding waits for nothing; what must wait is carried out by `serve`, and what comes
//! of it may lead back here ([`again`]). Next: `serve`; `answer`, for what each kind of content does.

use crate::admission;
use crate::answer::cached;
use crate::answer::hit::{self, Ready};
use crate::answer::purge::{self, Purging};
use crate::answer::slices;
use crate::request::Request;
use crate::restart::{Restart, Resumed};
use millstream_cache::{Lookup, Now};
use millstream_conf::model::{LocationId, LocationMatch, Settings};
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::h1::framing::Framing;

/// What the phases come to.
pub enum Step {
    /// The head of a stored answer is in the buffer; its body, if any, is at hand.
    Hit(Ready),
    /// Something answers that takes waiting.
    Content(Content),
    /// A status: by its `error_page`, or the built-in one.
    Status(u16),
}

/// What answers.
pub enum Content {
    /// A `return` of the server or the location.
    Return(LocationId),
    /// The location's name is the path and a slash: the client is sent there.
    Slash,
    /// A file under `root`.
    File,
    /// The upstream and the cache, piece by piece (`slice`).
    Slices,
    /// Something is to go from the cache.
    Purge(Purging),
    /// The API.
    Api,
    /// The upstream, through the cache where it was looked up.
    Pass(Option<(Vec<u8>, Lookup)>),
}

/// Decides about an admitted request; a hit in memory is written to `out` at once.
pub fn decide(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Step {
    let own = request.server().own;
    if request.generation.http().location(own).settings.returns.is_some() {
        request.enter(own);
        return Step::Content(Content::Return(own));
    }
    if let Err(status) = admission::route(request) {
        return Step::Status(status);
    }
    if slash_is_missing(request) {
        return Step::Content(Content::Slash);
    }
    in_location(request, now, out)
}

/// Goes on where a restart leads.
pub fn again(request: &mut Request, restart: Restart, now: Now, out: &mut Vec<u8>) -> Step {
    match restart.apply(request) {
        Ok(Resumed::Server) => decide(request, now, out),
        Ok(Resumed::Location) => in_location(request, now, out),
        Err(status) => Step::Status(status),
    }
}

/// The phases of the location in force.
fn in_location(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    if settings.returns.is_some() {
        return Step::Content(Content::Return(request.location));
    }
    match content(request, settings, now) {
        Content::Pass(Some((key, Lookup::Fresh(found)))) if request.framing == Framing::None => {
            request.cache_status = Some(CacheStatus::Hit);
            cached::report_entry(request, &found, now);
            let coding = hit::coding(request, &found.entry);
            match hit::ready(request, &found, coding, now, out) {
                Some(ready) => {
                    millstream_net::buffers::give(key);
                    Step::Hit(ready)
                }
                None => Step::Content(Content::Pass(Some((key, Lookup::Fresh(found))))),
            }
        }
        content => Step::Content(content),
    }
}

/// What answers in a location, once every phase before has let the request through.
fn content(request: &mut Request, settings: &Settings, now: Now) -> Content {
    let Some(proxy) = &settings.pass else {
        return match settings {
            Settings { api: Some(_), .. } => Content::Api,
            Settings { purge_at: Some(_), .. } => Content::Purge(Purging::Location),
            _ => Content::File,
        };
    };
    let Some(cache) = &proxy.cache else { return Content::Pass(None) };
    if let Some(purging) = purge::in_cached_location(request, cache) {
        return Content::Purge(purging);
    }
    if settings.slice > 0 && slices::applies(request) {
        return Content::Slices;
    }
    Content::Pass(cached::find(request, cache, now))
}

/// Whether the location's name is the path and a slash more, which only the redirect to it makes good.
fn slash_is_missing(request: &Request) -> bool {
    match &request.location().matches {
        LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path.len() > request.uri.len(),
        LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => false,
    }
}
