//! The page to read: the phases of a request, in nginx's order.
//!
//! ```text
//! admit → realip → server's script → location → its script ⟲ → realip → limits → access → try_files → content ─┬─ a hit in memory
//!                        ▲                         ▲                                                          ├─ whatever else answers
//!                        │                         │                                    a check that waits, ──┤
//!                        │                         └─ Restart::Named                 and goes on behind itself └─ a status
//!                        └─ Restart::Uri: index, try_files, error_page, X-Accel-Redirect
//! ```
//! `admission` has admitted the request. Deciding waits for nothing: what must wait is carried out by `drive`, and what comes
//! of it may lead back here ([`again`]). A body that is wanted early is read before realip, and copies (`mirror`) leave between access
//! and `try_files`. Next: `rewrite`, the phases up to the location's script; `drive`; `content`, for what
//! each kind of content does.

use crate::access::{self, AccessDecision, Question, Weighing};
use crate::cached::{self, FoundAtOnce};
use crate::content::{Content, challenge, fixed};
use crate::failure;
use crate::limits::exact::{Asking, Beginning};
use crate::limits::{self, Ruling};
use crate::realip;
use crate::representation::hit::Ready;
use crate::request::Request;
use crate::restart::{Restart, Resumed};
use crate::rewrite::file_test::FileTest;
use crate::rewrite::{self, From, Paused, Settled};
use crate::tracing;
use crate::try_files::{self, FileTries};
use crate::variables;
use crate::variables::personal::shown_by_answer;
use millstream_cache::Now;
use millstream_conf::model::{Http, Level, LocationId, Phases, Settings};
use millstream_net::clock;
use millstream_wire::h1::framing::Framing;
use std::time::Instant;

pub enum Step {
    Ready(Ready),
    Content(Content),
    Wait(Wait),
    Status(u16),
    /// The length of the body is known, and larger than the location allows.
    TooLarge,
}

pub enum Wait {
    File(FileTest, Paused),
    /// `client_body_early_read`.
    Body,
    /// `mirror`: sends copies, after reading the body if they contain it.
    Mirror,
    /// `limit_req`.
    Until(Instant),
    /// `limit_req` with `sync=exact`.
    Asking(Box<Asking>),
    /// `limit_conn` with `sync=exact`.
    Beginning(Box<Beginning>),
    /// `auth_delay`, and the status.
    Refusal(Instant, u16),
    /// The checks of the access phase so far.
    Access(Question, Weighing),
    Tries(FileTries),
}

#[derive(Debug, Clone, Copy)]
pub enum Guard {
    /// Passed, if the limits have delayed the request before.
    Limits,
    Access(Weighing),
}

/// Runs the phases from `from`; writes a hit in memory to `out` at once.
pub fn decide(request: &mut Request, from: From, now: Now, out: &mut Vec<u8>) -> Step {
    if matches!(from, From::Server) {
        if let Some(text) = challenge::open(request) {
            return Step::Content(Content::Challenge(text));
        }
        if reads_early(request) {
            return if request.is_too_large() { Step::TooLarge } else { Step::Wait(Wait::Body) };
        }
    }
    with_body(request, from, now, out)
}

/// `client_body_early_read`.
fn reads_early(request: &Request) -> bool {
    let has_body = !matches!(request.received.framing, Framing::None | Framing::Length(0));
    if !has_body || request.descent.is_internal {
        return false;
    }
    let http = request.generation.http();
    let settings = &http.location(request.server().own).settings.client_body;
    variables::any_holds(&settings.early_read, request)
}

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
        Settled::TooLarge => Step::TooLarge,
        Settled::Test(test, paused) => Step::Wait(Wait::File(test, paused)),
    }
}

fn trace(request: &mut Request) {
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.route.location).settings;
    if settings.phases.has(Phases::TRACING) {
        tracing::begin(request, &settings.otel);
    }
}

fn returned(request: &mut Request, level: LocationId, at: usize, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    let rule = fixed::rule(generation.http(), level, at);
    match rule.and_then(|rule| fixed::at_once(request, rule, out)) {
        Some(ready) => Step::Ready(ready),
        None => Step::Content(Content::Return(level, at)),
    }
}

pub fn again(request: &mut Request, restart: Restart, now: Now, out: &mut Vec<u8>) -> Step {
    match restart.apply(request) {
        Ok(Resumed::Server) => decide(request, From::Server, now, out),
        Ok(Resumed::Location) => decide(request, From::Rewrite, now, out),
        Err(status) => Step::Status(status),
    }
}

fn in_location(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Step {
    realip::take(request);
    guarded(request, Guard::Limits, now, out)
}

pub fn guarded(request: &mut Request, from: Guard, now: Now, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    let http = generation.http();
    let settings = &http.location(request.route.location).settings;
    if settings.phases.has(Phases::GUARDS)
        && let Some(step) = guards(request, settings, from)
    {
        return step;
    }
    if settings.phases.has(Phases::MIRROR)
        && request.descent.wanted.is_none()
        && !request.is_extended_connect()
    {
        return Step::Wait(Wait::Mirror);
    }
    unguarded(request, http, now, out)
}

/// Continues after the copies: `try_files`, then the content.
pub fn mirrored(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Step {
    let generation = request.generation.clone();
    unguarded(request, generation.http(), now, out)
}

#[inline]
fn unguarded(request: &mut Request, http: &Http, now: Now, out: &mut Vec<u8>) -> Step {
    match try_files::begin(request).map(|tries| tries.ask_at_once(request)) {
        None => content(request, http, now, out),
        Some(Ok(is_found)) => tried(request, is_found, now, out),
        Some(Err(tries)) => Step::Wait(Wait::Tries(tries)),
    }
}

/// Continues after `try_files`, with the content or its fallback.
pub fn tried(request: &mut Request, is_found: bool, now: Now, out: &mut Vec<u8>) -> Step {
    if is_found {
        let generation = request.generation.clone();
        return content(request, generation.http(), now, out);
    }
    match try_files::otherwise(request) {
        Ok(restart) => again(request, restart, now, out),
        Err(status) => Step::Status(status),
    }
}

fn content(request: &mut Request, http: &Http, now: Now, out: &mut Vec<u8>) -> Step {
    if let Some(content) = Content::of(request, &http.location(request.route.location).settings) {
        return Step::Content(content);
    }
    // By now, it is the location with the chosen zone.
    let Some(cache) = http.location(request.route.location).settings.cache() else {
        return Step::Content(Content::Pass(None));
    };
    match cached::find_at_once(request, cache, now, out) {
        FoundAtOnce::Ready(ready) => Step::Ready(ready),
        FoundAtOnce::Rest(found) => Step::Content(Content::Pass(found)),
    }
}

/// Limits, then access.
fn guards(request: &mut Request, settings: &Settings, from: Guard) -> Option<Step> {
    let weighing = match from {
        Guard::Access(weighing) => weighing,
        Guard::Limits => {
            if settings.phases.has(Phases::TRACING) {
                tracing::begin(request, &settings.otel);
            }
            if settings.phases.has(Phases::LIMITS) {
                let ruling = limits::pass(request, settings);
                if let Some(step) = ruled(request, ruling) {
                    return Some(step);
                }
            }
            Weighing::default()
        }
    };
    // Whoever asks by a subrequest has been let in, or asks who is.
    if request.descent.wanted.is_some() || !settings.phases.has(Phases::ACCESS) {
        return None;
    }
    match access::judge(request, settings, weighing) {
        AccessDecision::Granted => None,
        AccessDecision::Refused(401) if !settings.auth_delay.is_zero() => Some(delayed(request, settings)),
        AccessDecision::Refused(status) => Some(Step::Status(status)),
        AccessDecision::Asks(question, weighing) => Some(Step::Wait(Wait::Access(question, weighing))),
    }
}

fn ruled(request: &mut Request, ruling: Ruling) -> Option<Step> {
    match ruling {
        Ruling::Passes => None,
        Ruling::Until(moment) => Some(Step::Wait(Wait::Until(moment))),
        Ruling::Asks(asking) => Some(Step::Wait(Wait::Asking(asking))),
        Ruling::Begins(beginning) => Some(Step::Wait(Wait::Beginning(beginning))),
        Ruling::Refused(status) => {
            request.route.shows.way |= shown_by_answer(request);
            Some(Step::Status(status))
        }
    }
}

/// Continues after a limit has decided.
pub fn limited(request: &mut Request, ruling: Ruling, now: Now, out: &mut Vec<u8>) -> Step {
    match ruled(request, ruling) {
        Some(step) => step,
        None => guarded(request, Guard::Limits, now, out),
    }
}

fn delayed(request: &Request, settings: &Settings) -> Step {
    failure::log(request, Level::Info, format_args!("delaying unauthorized request"));
    Step::Wait(Wait::Refusal(clock::now() + settings.auth_delay, 401))
}
