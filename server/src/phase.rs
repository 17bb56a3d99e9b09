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
//! of it may lead back here ([`again`]). Next: `rewrite`, the phases up to the location's script; `serve`; `answer`, for what
//! each kind of content does.

use crate::access;
use crate::answer::cached;
use crate::answer::purge::{self, Purging};
use crate::answer::slices;
use crate::client::{Client, ClientFailure};
use crate::limits::{self, Ruling};
use crate::realip;
use crate::representation::hit::{self, Ready};
use crate::request::Request;
use crate::restart::{Restart, Resumed};
use crate::rewrite::file_test::FileTest;
use crate::rewrite::{self, From, Paused, Settled};
use crate::try_files::{self, Tries};
use millstream_cache::{Lookup, Now};
use millstream_conf::model::{LocationId, Phases, Settings};
use millstream_net::timer::Deadline;
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::h1::framing::Framing;
use std::time::Instant;

/// What the phases come to.
pub enum Step {
    /// The head of a stored answer is in the buffer; its body, if any, is at hand.
    Hit(Ready),
    /// Something answers that takes waiting.
    Content(Content),
    /// It is not decided yet.
    Wait(Check),
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
    /// A file under `root` or `alias`.
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

/// What is waited for before it is decided.
pub enum Check {
    /// A file that an `if` asks for.
    File(FileTest, Paused),
    /// A moment, before which a request is too early (`limit_req`).
    Until(Instant),
    /// The files of a `try_files`.
    Tries(Tries),
}

impl Check {
    /// Waits for what is asked, and goes on behind it.
    ///
    /// # Errors
    /// The client left meanwhile.
    pub async fn wait(
        self,
        request: &mut Request,
        client: &mut Client,
        out: &mut Vec<u8>,
    ) -> Result<Step, ClientFailure> {
        Ok(match self {
            Check::File(test, paused) => {
                let from = From::Script(paused.answered(test.ask(request).await));
                decide(request, from, Now::read(), out)
            }
            Check::Until(moment) => {
                let mut deadline = Deadline::new();
                deadline.set(moment);
                client.unless_gone(deadline.passed()).await?;
                decide(request, From::Limits, Now::read(), out)
            }
            Check::Tries(tries) => {
                if tries.ask(request).await {
                    let generation = request.generation.clone();
                    let settings = &generation.http().location(request.location).settings;
                    return Ok(content(request, settings, Now::read(), out));
                }
                match try_files::otherwise(request) {
                    Ok(restart) => again(request, restart, Now::read(), out),
                    Err(status) => Step::Status(status),
                }
            }
        })
    }
}

/// Decides about an admitted request, from one phase on; a hit in memory is written to `out` at once.
pub fn decide(request: &mut Request, from: From, now: Now, out: &mut Vec<u8>) -> Step {
    if matches!(from, From::Server) {
        realip::take(request);
    }
    match rewrite::settle(request, from) {
        Settled::Here => in_location(request, now, out),
        Settled::Return(level, at) => Step::Content(Content::Return(level, at)),
        Settled::Redirect(status, url) => Step::Content(Content::Redirect(status, url)),
        Settled::Slash => Step::Content(Content::Slash),
        Settled::Status(status) => Step::Status(status),
        Settled::Test(test, paused) => Step::Wait(Check::File(test, paused)),
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
    let generation = request.generation.clone();
    let settings = &generation.http().location(request.location).settings;
    realip::take(request);
    if !settings.phases.is_none()
        && let Some(step) = guards(request, settings)
    {
        return step;
    }
    match try_files::begin(request) {
        Some(tries) => Step::Wait(Check::Tries(tries)),
        None => content(request, settings, now, out),
    }
}

/// The last phase: what answers, or a hit at once.
fn content(request: &mut Request, settings: &Settings, now: Now, out: &mut Vec<u8>) -> Step {
    match chosen(request, settings, now) {
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

/// The phases that may keep a request from the content: limits, then access.
fn guards(request: &mut Request, settings: &Settings) -> Option<Step> {
    if settings.phases.has(Phases::LIMITS) {
        match limits::pass(request, settings) {
            Ruling::Passes => {}
            Ruling::Until(moment) => return Some(Step::Wait(Check::Until(moment))),
            Ruling::Refused(status) => return Some(Step::Status(status)),
        }
    }
    if settings.phases.has(Phases::ACCESS) {
        return access::judge(request, settings).err().map(Step::Status);
    }
    None
}

/// What answers in a location, once every phase before has let the request through.
fn chosen(request: &mut Request, settings: &Settings, now: Now) -> Content {
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
