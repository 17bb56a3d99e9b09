//! The page to read: the phases of a request, in nginx's order.
//!
//! ```text
//! admit → realip → server's script → location → its script ⟲ → realip → limits → access → try_files → content ─┬─ a hit in memory
//!                        ▲                         ▲                                                          ├─ whatever else answers
//!                        │                         │                                    a check that waits, ──┤
//!                        │                         └─ Restart::Named                 and goes on behind itself └─ a status
//!                        └─ Restart::Uri: index, try_files, error_page, X-Accel-Redirect
//! ```
//! `admission` has admitted the request. Deciding waits for nothing: what must wait is carried out by `serve`, and what comes
//! of it may lead back here ([`again`]). A body that is wanted early is read before realip, and copies (`mirror`) leave between access
//! and `try_files`. Next: `rewrite`, the phases up to the location's script; `serve`; `answer`, for what
//! each kind of content does.

use crate::access::{self, AccessDecision, Question, Weighing};
use crate::answer::challenge;
use crate::answer::fixed;
use crate::answer::purge::{self, Purging};
use crate::answer::slices;
use crate::answer::{cached, course, dav};
use crate::chosen_zone;
use crate::failure;
use crate::gateway::Begun;
use crate::limits::{self, Ruling};
use crate::realip;
use crate::representation::hit::{self, Ready};
use crate::request::Request;
use crate::restart::{Restart, Resumed};
use crate::rewrite::file_test::FileTest;
use crate::rewrite::{self, From, Paused, Settled};
use crate::tracing;
use crate::try_files::{self, FileTries};
use crate::variables;
use millstream_cache::{Lookup, Now};
use millstream_conf::model::{DavMethod, Handler, Level, LocationId, Pass, Phases, Settings};
use millstream_net::clock;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::h1::framing::Framing;
use std::sync::Arc;
use std::time::Instant;

/// What the phases come to.
pub enum Step {
    /// The head of an answer is in the buffer; its body, if any, is at hand.
    Ready(Ready),
    /// Something answers that takes waiting.
    Content(Content),
    /// It is not decided yet.
    Wait(Wait),
    /// A status: by its `error_page`, or the built-in one.
    Status(u16),
}

/// What answers.
pub enum Content {
    /// A `return`: the level that wrote it, and its place in the script there.
    Return(LocationId, usize),
    /// The client is sent to a URL (`rewrite`), with 301 or 302.
    Redirect(u16, Vec<u8>),
    /// The location's name is the path and a slash: the client is sent there.
    Slash,
    /// What an authority looks for that is to issue a certificate.
    Challenge(Arc<str>),
    /// A file under `root` or `alias`.
    File,
    /// A file is to be changed.
    Dav(DavMethod),
    /// The upstream and the cache, piece by piece (`slice`).
    Slices,
    /// Something is to go from the cache.
    Purge(Purging),
    /// The counts of connections.
    StubStatus,
    /// A picture of one pixel.
    EmptyGif,
    /// The API.
    Api,
    /// The upstream, through the cache where it was looked up.
    Pass(Option<(Vec<u8>, Lookup)>),
    /// The upstream, which is asked already.
    Begun(Box<Begun>),
    /// Nothing can.
    Status(u16),
}

/// What is waited for before it is decided.
pub enum Wait {
    /// A file that an `if` asks for.
    File(FileTest, Paused),
    /// The body (`client_body_early_read`).
    Body,
    /// Copies of the request, and the body where they have it (`mirror`).
    Mirror,
    /// A moment, before which a request is too early (`limit_req`).
    Until(Instant),
    /// A moment, before which a refused request is not told so (`auth_delay`); and the status.
    Refusal(Instant, u16),
    /// Who the client is; and how far the checks of its access have come.
    Access(Question, Weighing),
    /// The files of a `try_files`.
    Tries(FileTries),
}

/// A phase that may keep a request from the content.
#[derive(Debug, Clone, Copy)]
pub enum Guard {
    /// The limits; once they have let a request wait, they let it pass.
    Limits,
    /// The access phase, from one of its checks on.
    Access(Weighing),
}

/// Decides about an admitted request, from one phase on; a hit in memory is written to `out` at once.
pub fn decide(request: &mut Request, from: From, now: Now, out: &mut Vec<u8>) -> Step {
    if matches!(from, From::Server) {
        if let Some(text) = challenge::open(request) {
            return Step::Content(Content::Challenge(text));
        }
        if reads_early(request) {
            return Step::Wait(Wait::Body);
        }
    }
    with_body(request, from, now, out)
}

/// Whether the body is to be read before anything is decided (`client_body_early_read`).
fn reads_early(request: &Request) -> bool {
    let has_body = !matches!(request.framing, Framing::None | Framing::Length(0));
    if !has_body || request.is_internal {
        return false;
    }
    let http = request.generation.http();
    let settings = &http.location(request.server().own).settings.client_body;
    variables::any_holds(&settings.early_read, request)
}

/// Decides about a request, whose body is here where it was to be read early.
pub fn with_body(request: &mut Request, from: From, now: Now, out: &mut Vec<u8>) -> Step {
    if matches!(from, From::Server) {
        realip::take(request);
    }
    let settled = rewrite::settle(request, from);
    if !matches!(settled, Settled::Here) {
        trace(request);
    }
    match settled {
        Settled::Here => in_location(request, now, out),
        Settled::Return(level, at) => returned(request, level, at, out),
        Settled::Redirect(status, url) => Step::Content(Content::Redirect(status, url)),
        Settled::Slash => Step::Content(Content::Slash),
        Settled::Status(status) => Step::Status(status),
        Settled::Test(test, paused) => Step::Wait(Wait::File(test, paused)),
    }
}

/// Decides whether a request is traced that its script answers.
fn trace(request: &mut Request) {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    if settings.phases.has(Phases::TRACING) {
        tracing::begin(request, &settings.otel);
    }
}

/// A `return`, at once where it is a text.
fn returned(request: &mut Request, level: LocationId, at: usize, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    let rule = fixed::rule(generation.http(), level, at);
    match rule.and_then(|rule| fixed::at_once(request, rule, out)) {
        Some(ready) => Step::Ready(ready),
        None => Step::Content(Content::Return(level, at)),
    }
}

/// Goes on where a restart leads.
pub fn again(request: &mut Request, restart: Restart, now: Now, out: &mut Vec<u8>) -> Step {
    match restart.apply(request) {
        Ok(Resumed::Server) => decide(request, From::Server, now, out),
        Ok(Resumed::Location) => decide(request, From::Rewrite, now, out),
        Err(status) => Step::Status(status),
    }
}

/// The phases of the location in force.
fn in_location(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Step {
    realip::take(request);
    guarded(request, Guard::Limits, now, out)
}

/// The phases of the location in force, from one of those on that may keep the request from the content.
pub fn guarded(request: &mut Request, from: Guard, now: Now, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    if !settings.phases.is_none()
        && let Some(step) = guards(request, settings, from)
    {
        return step;
    }
    if settings.phases.has(Phases::MIRROR) && request.wanted.is_none() && !request.is_extended_connect() {
        return Step::Wait(Wait::Mirror);
    }
    unguarded(request, settings, now, out)
}

/// What follows once copies of a request are on their way: `try_files`, then the content.
pub fn mirrored(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    unguarded(request, settings, now, out)
}

fn unguarded(request: &mut Request, settings: &Settings, now: Now, out: &mut Vec<u8>) -> Step {
    match try_files::begin(request).map(|tries| tries.ask_at_once(request)) {
        None => content(request, settings, now, out),
        Some(Ok(is_found)) => tried(request, is_found, now, out),
        Some(Err(tries)) => Step::Wait(Wait::Tries(tries)),
    }
}

/// What follows `try_files`: the content, or where the request goes on without a file.
pub fn tried(request: &mut Request, is_found: bool, now: Now, out: &mut Vec<u8>) -> Step {
    if is_found {
        let generation = request.generation.clone();
        let settings = &generation.http().location(request.location).settings;
        return content(request, settings, now, out);
    }
    match try_files::otherwise(request) {
        Ok(restart) => again(request, restart, now, out),
        Err(status) => Step::Status(status),
    }
}

/// The last phase: what answers, or a hit at once.
fn content(request: &mut Request, settings: &Settings, now: Now, out: &mut Vec<u8>) -> Step {
    match chosen(request, settings, now) {
        Content::Pass(Some((key, Lookup::Fresh(found)))) if request.framing == Framing::None => {
            request.cache_status = Some(CacheStatus::Hit);
            cached::report_entry(request, &found, now);
            let chosen = hit::choose(request, &found.entry);
            match hit::ready(request, &found, &chosen, now, out) {
                Some(ready) => {
                    millstream_net::buffers::give(key);
                    Step::Ready(ready)
                }
                None => Step::Content(Content::Pass(Some((key, Lookup::Fresh(found))))),
            }
        }
        content => Step::Content(content),
    }
}

/// The phases that may keep a request from the content: limits, then access.
fn guards(request: &mut Request, settings: &Settings, from: Guard) -> Option<Step> {
    let weighing = match from {
        Guard::Access(weighing) => weighing,
        Guard::Limits => {
            if settings.phases.has(Phases::TRACING) {
                tracing::begin(request, &settings.otel);
            }
            if settings.phases.has(Phases::LIMITS) {
                match limits::pass(request, settings) {
                    Ruling::Passes => {}
                    Ruling::Until(moment) => return Some(Step::Wait(Wait::Until(moment))),
                    Ruling::Refused(status) => return Some(Step::Status(status)),
                }
            }
            Weighing::default()
        }
    };
    // Whoever asks by a subrequest has been let in, or asks who is.
    if request.wanted.is_some() || !settings.phases.has(Phases::ACCESS) {
        return None;
    }
    match access::judge(request, settings, weighing) {
        AccessDecision::Granted => None,
        AccessDecision::Refused(401) if !settings.auth_delay.is_zero() => Some(delayed(request, settings)),
        AccessDecision::Refused(status) => Some(Step::Status(status)),
        AccessDecision::Asks(question, weighing) => Some(Step::Wait(Wait::Access(question, weighing))),
    }
}

/// A refusal that waits, however soon it was decided.
fn delayed(request: &Request, settings: &Settings) -> Step {
    failure::log(request, Level::Info, format_args!("delaying unauthorized request"));
    Step::Wait(Wait::Refusal(clock::now() + settings.auth_delay, 401))
}

/// What answers in a location, once every phase before has let the request through.
fn chosen(request: &mut Request, settings: &Settings, now: Now) -> Content {
    let proxy = match &settings.content {
        Handler::Pass(proxy) => proxy,
        // What is made here speaks no other protocol, and a success would say that it does (RFC 8441 §5).
        _ if request.is_extended_connect() => return Content::Status(501),
        Handler::Api(_) => return Content::Api,
        Handler::StubStatus(_) => return Content::StubStatus,
        Handler::EmptyGif(_) => return Content::EmptyGif,
        Handler::Purge(_) => return Content::Purge(Purging::Location),
        Handler::Files => return dav::asked(request, settings).map_or(Content::File, Content::Dav),
    };
    let Some(cache) = &proxy.cache else { return uncached(request, proxy, now) };
    if let Some(purging) = purge::in_cached_location(request, cache) {
        return Content::Purge(purging);
    }
    if slices::applies(request) {
        return Content::Slices;
    }
    let began = tracing::moment(request);
    let found = course::find(request, cache, now);
    if found.is_some() {
        tracing::note(request, began, "cache look-up", ("millstream.cache.tier", "memory"));
    }
    Content::Pass(found)
}

/// The upstream without a cache.
fn past_cache(request: &Request) -> Content {
    if slices::applies(request) { Content::Slices } else { Content::Pass(None) }
}

/// What answers in a location that has no cache of its own: the upstream, or the same location with the zone that the request chooses.
fn uncached(request: &mut Request, proxy: &Pass, now: Now) -> Content {
    if proxy.chosen_zone.is_none() {
        return past_cache(request);
    }
    // A request that purges means what is stored in any of the zones.
    if let Some((face, cache)) = chosen_zone::any(request)
        && let Some(purging) = purge::in_cached_location(request, cache)
    {
        request.location = face;
        return Content::Purge(purging);
    }
    match chosen_zone::chosen(request) {
        Ok(None) => past_cache(request),
        Ok(Some(face)) => {
            request.location = face;
            let generation = request.generation.clone();
            chosen(request, &generation.http().location(face).settings, now)
        }
        Err(status) => Content::Status(status),
    }
}
