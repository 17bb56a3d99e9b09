//! The page to read: admit → route → answer → log, for every request.
//!
//! `admission` has admitted and routed it. `begin` decides without waiting and answers cache hits in memory on the spot; what must wait becomes a [`Work`], which
//! `finish` carries out in one boxed future. Failures come back as a status and become an `error_page` or the built-in
//! one in a single place.

use crate::admin;
use crate::admission::route;
use crate::answer::cached;
use crate::answer::hit::{self, Ready};
use crate::answer::purge::{self, Purging};
use crate::answer::{Outcome, file, fixed, slices};
use crate::client::{Client, ClientFailure};
use crate::failure;
use crate::request::{Arguments, Request};
use crate::route::location;
use crate::variables::value;
use millstream_cache::{Lookup, Now};
use millstream_conf::model::{
    ErrorPage, ErrorPageStatus, Level, LocationId, LocationMatch, Return, Settings,
};
use millstream_telemetry::metrics::CacheStatus;
use millstream_wire::h1::framing::Framing;
use millstream_wire::target::Normal;
use millstream_wire::{Method, target};

/// Internal redirects of one request at the most, as in nginx.
const REDIRECTS: u8 = 10;

/// What is left to do for a request.
pub enum Work {
    /// A `return` of the server or the location.
    Return(LocationId),
    /// A status: refused, or forbidden.
    Status(u16),
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
    Proxy(Option<(Vec<u8>, Lookup)>),
}

/// How a request begins.
pub enum Begun {
    /// Its head is in the buffer; the body, if any, is at hand.
    Hit(Ready),
    /// It takes waiting.
    Work(Work),
}

/// Decides what answers an admitted request; a hit in memory is written to `out` at once.
pub fn begin(request: &mut Request, now: Now, out: &mut Vec<u8>) -> Begun {
    let work = work_of(request, now);
    if let Work::Proxy(Some((_, Lookup::Fresh(found)))) = &work
        && request.framing == Framing::None
    {
        request.cache_status = Some(CacheStatus::Hit);
        cached::report_entry(request, found, now);
        let coding = hit::coding(request, &found.entry);
        if let Some(ready) = hit::ready(request, found, coding, now, out) {
            if let Work::Proxy(Some((key, _))) = work {
                millstream_net::buffers::give(key);
            }
            return Begun::Hit(ready);
        }
    }
    Begun::Work(work)
}

/// What answers a request where it was routed, be it at its beginning or after an internal redirect.
fn work_of(request: &mut Request, now: Now) -> Work {
    let generation = request.generation.clone();
    let http = generation.http();
    let location = http.location(request.location);
    let settings = &location.settings;
    // As in nginx the server's own `return` comes before every location that is found by its path.
    if !matches!(location.matches, LocationMatch::Named(_)) {
        let own = http.server(request.server).own;
        if http.location(own).settings.returns.is_some() {
            return Work::Return(own);
        }
        if slash_is_missing(request) {
            return Work::Slash;
        }
    }
    if settings.returns.is_some() {
        return Work::Return(request.location);
    }
    let Some(proxy) = &settings.proxy else { return without_proxy(settings) };
    let Some(cache) = &proxy.cache else { return Work::Proxy(None) };
    if let Some(purging) = purge::in_cached_location(request, cache) {
        return Work::Purge(purging);
    }
    if settings.slice > 0 && slices::applies(request) {
        return Work::Slices;
    }
    Work::Proxy(cached::find(request, cache, now))
}

/// What answers in a location that passes nothing on.
fn without_proxy(settings: &Settings) -> Work {
    match settings {
        Settings { api: Some(_), .. } => Work::Api,
        Settings { purge_at: Some(_), .. } => Work::Purge(Purging::Location),
        _ => Work::File,
    }
}

/// Whether the location's name is the path and a slash more, which only the redirect to it makes good.
fn slash_is_missing(request: &Request) -> bool {
    match &request.location().matches {
        LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path.len() > request.uri.len(),
        LocationMatch::Regex(_) | LocationMatch::Named(_) | LocationMatch::Server => false,
    }
}

/// Carries out what is left, until the client has an answer or is gone.
pub async fn finish(request: &mut Request, client: &mut Client, work: Work) {
    let mut work = work;
    loop {
        let outcome = match client_body_fits(request, client, &work) {
            Err(failure) => Outcome::Client(failure),
            Ok(()) => carry_out(request, client, work).await,
        };
        work = match outcome {
            Outcome::Done => return,
            Outcome::Client(failure) => match failed(request, client, failure) {
                Some(status) => Work::Status(status),
                None => return,
            },
            Outcome::Status(status) => match Box::pin(error_page(request, client, status)).await {
                Some(next) => next,
                None => return,
            },
            Outcome::Index(path) => redirect_to_path(request, &path),
            Outcome::Elsewhere(uri) => accelerated(request, &uri),
        };
    }
}

fn client_body_fits(request: &Request, client: &mut Client, work: &Work) -> Result<(), ClientFailure> {
    // A body is announced once; a redirected request has none.
    if matches!(work, Work::Status(_)) || client.body_known() { Ok(()) } else { client.expect_body(request) }
}

async fn carry_out(request: &mut Request, client: &mut Client, work: Work) -> Outcome {
    match work {
        Work::Return(id) => {
            let rule: Option<Return> = request.generation.http().location(id).settings.returns.clone();
            match rule {
                Some(rule) => Box::pin(fixed::returned(request, client, &rule)).await,
                None => Outcome::Status(500),
            }
        }
        Work::Status(status) => Outcome::Status(status),
        Work::Slash => fixed::redirect_with_slash(request, client).await,
        Work::File => Box::pin(file::answer(request, client)).await,
        Work::Slices => Box::pin(slices::answer(request, client)).await,
        Work::Purge(purging) => Box::pin(purge::answer(request, client, purging)).await,
        Work::Api => Box::pin(admin::answer(request, client)).await,
        Work::Proxy(found) => cached::answer(request, client, found).await,
    }
}

/// A client failure: the status to answer, where something can still be said.
fn failed(request: &mut Request, client: &mut Client, failure: ClientFailure) -> Option<u16> {
    request.keep_alive = false;
    if client.begun() || failure == ClientFailure::Gone {
        if !client.begun() {
            request.sent.status = failure.status();
        }
        client.abandon();
        return None;
    }
    if failure == ClientFailure::TooLarge {
        let log = &request.generation.shared.error_logs[request.location.0 as usize];
        let described = failure::describe(request, None);
        log.write(Level::Error, format_args!("client intended to send too large body{described}"));
    }
    Some(failure.status())
}

/// Answers a status: by the `error_page` that names it, else by the built-in page. `Some` is the page's own work.
async fn error_page(request: &mut Request, client: &mut Client, status: u16) -> Option<Work> {
    if status == failure::CLOSE_WITHOUT_ANSWER {
        request.keep_alive = false;
        request.sent.status = status;
        return None;
    }
    if closes(status) {
        request.keep_alive = false;
    }
    if !request.in_error_page
        && let Some(page) = page_for(request, status)
    {
        return redirect_to_page(request, client, &page, status).await;
    }
    request.error_status = None;
    if let Outcome::Client(failure) = fixed::page(request, client, status, None).await {
        failed(request, client, failure);
    }
    None
}

/// Statuses after which the connection cannot be trusted to be in step (nginx closes after these too).
fn closes(status: u16) -> bool {
    matches!(status, 400 | 408 | 413 | 414 | 431 | 494..=497 | 500 | 501 | 505)
}

fn page_for(request: &Request, status: u16) -> Option<ErrorPage> {
    request.location().settings.error_pages.iter().find(|page| page.status == status).cloned()
}

async fn redirect_to_page(
    request: &mut Request,
    client: &mut Client,
    page: &ErrorPage,
    status: u16,
) -> Option<Work> {
    let uri = value(&page.uri, request);
    let answer = match page.answer {
        ErrorPageStatus::Keep => Some(status),
        ErrorPageStatus::Is(other) => Some(other),
        ErrorPageStatus::FromPage => None,
    };
    request.in_error_page = true;
    if uri.starts_with(b"/") {
        request.error_status = answer;
        request.method = reading(request.method);
        return Some(redirect_internally(request, &uri));
    }
    if uri.starts_with(b"@") {
        request.error_status = answer;
        return Some(redirect_to_named(request, &uri));
    }
    // A URL sends the client there; its status must be a redirect's.
    let redirect = match page.answer {
        ErrorPageStatus::Is(code @ (301 | 302 | 303 | 307 | 308)) => code,
        _ => 302,
    };
    if let Outcome::Client(failure) = fixed::redirect(request, client, redirect, &uri).await {
        failed(request, client, failure);
    }
    None
}

/// `X-Accel-Redirect`: the URI is the upstream's, so it is decoded and normalised as a client's is.
fn accelerated(request: &mut Request, uri: &[u8]) -> Work {
    if uri.starts_with(b"@") {
        return redirect_to_named(request, uri);
    }
    let (path, query) = halves(uri);
    let mut clean = Vec::with_capacity(path.len());
    let path = match target::normalise(path, request.server().merge_slashes, &mut clean) {
        Ok(Normal::Unchanged) => path,
        Ok(Normal::Written) => clean.as_slice(),
        Err(_) => return Work::Status(404),
    };
    request.arguments = Arguments::Replaced(query.to_vec());
    request.method = reading(request.method);
    redirect_to_path(request, path)
}

/// The method that a page is fetched with: what was asked for is done.
fn reading(method: Method) -> Method {
    if method == Method::Head { Method::Head } else { Method::Get }
}

/// Goes on under another path and the query it brings, if only an empty one.
fn redirect_internally(request: &mut Request, uri: &[u8]) -> Work {
    let (path, query) = halves(uri);
    request.arguments = Arguments::Replaced(query.to_vec());
    redirect_to_path(request, path)
}

/// Path and query of a URI.
fn halves(uri: &[u8]) -> (&[u8], &[u8]) {
    let end = uri.iter().position(|&byte| byte == b'?').unwrap_or(uri.len());
    (&uri[..end], uri.get(end + 1..).unwrap_or_default())
}

/// Goes on under another path with the query in force.
fn redirect_to_path(request: &mut Request, path: &[u8]) -> Work {
    request.redirects += 1;
    if request.redirects > REDIRECTS {
        return Work::Status(500);
    }
    request.uri.clear();
    request.uri.extend_from_slice(path);
    match route(request) {
        Ok(()) => work_of(request, Now::read()),
        Err(status) => Work::Status(status),
    }
}

fn redirect_to_named(request: &mut Request, name: &[u8]) -> Work {
    request.redirects += 1;
    let generation = request.generation.clone();
    let tree = &generation.http().server(request.server).locations;
    let named = std::str::from_utf8(name).ok().and_then(|name| location::named(tree, name));
    match named {
        Some(id) if request.redirects <= REDIRECTS => {
            request.location = id;
            work_of(request, Now::read())
        }
        _ => Work::Status(500),
    }
}
