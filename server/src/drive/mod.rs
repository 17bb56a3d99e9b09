//! The one driver of a request, for a connection, a stream and a subrequest: what the phases decided is carried out until the client has
//! a response or is gone.
//!
//! ```text
//! admission → phase ─▶ begin: what waits for nothing ─▶ end: what is left ⟲ phase, where it leads elsewhere
//! ```
//! Failures come back as a status and become an `error_page` or the built-in one in a single place. Next: `waiting`, for what is not decided
//! yet; `content`, for what answers.

pub mod subrequest;
mod copies;
mod waiting;

use crate::cached;
use crate::client::{Client, ClientFailure};
use crate::content::{Content, fixed};
use crate::exchange::{self, Begun};
use crate::failure;
use crate::outcome::Outcome;
use crate::phase::{self, Step};
use crate::request::{KeptBody, Request};
use crate::restart::{self, Restart};
use crate::variables::personal::shown_by;
use crate::variables::value;
use millstream_cache::Now;
use millstream_conf::model::{ErrorPage, ErrorPageStatus, Level};
use millstream_net::buffers;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Instant;

/// What a request still needs, once all is done that waits for nothing.
pub enum Left {
    Nothing,
    /// A response at hand that the client did not take whole.
    Queued,
    /// An upstream is asked; its response is awaited.
    Begun(Box<Begun>),
    Step(Box<Step>),
}

/// Sends a response at hand in one write, and starts a simple upstream request.
pub fn begin(
    context: &mut Context<'_>,
    request: &mut Request,
    client: &mut Client,
    step: Step,
    out: Vec<u8>,
) -> Left {
    match step {
        Step::Ready(ready) => match client.poll_whole(context, request, out, ready.whole()) {
            Poll::Ready(sent) => {
                if let Err(failure) = sent {
                    failed(request, client, failure);
                }
                Left::Nothing
            }
            Poll::Pending => Left::Queued,
        },
        step => {
            buffers::give(out);
            if let Step::Content(Content::Pass(None)) = step
                && let Some(begun) = exchange::begin(context, request, client)
            {
                return Left::Begun(begun);
            }
            Left::Step(Box::new(step))
        }
    }
}

impl Left {
    /// The time of the end if no more is left. What it leaves is for [`end`].
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Request,
        client: &mut Client,
    ) -> Poll<Option<Instant>> {
        match self {
            Left::Begun(begun) => begun.poll(context, request, client),
            _ => Poll::Ready(None),
        }
    }
}

/// Carries on until the client has a response or is gone.
pub async fn end(request: &mut Request, client: &mut Client, mut left: Left) {
    if poll_fn(|context| left.poll(context, request, client)).await.is_some() {
        return;
    }
    let step = match left {
        Left::Nothing => return,
        Left::Queued => {
            if let Err(failure) = client.flush(request).await {
                failed(request, client, failure);
            }
            return;
        }
        Left::Begun(begun) => Step::Content(Content::Begun(begun)),
        Left::Step(step) => *step,
    };
    Box::pin(finish(request, client, step)).await;
}

/// Each of its ways is a future of its own: one that holds the largest of them is moved and allocated for all.
async fn finish(request: &mut Request, client: &mut Client, step: Step) {
    let (mut step, mut out) = (step, Vec::new());
    loop {
        let outcome = match step {
            Step::Ready(ready) => {
                Box::pin(cached::send_ready(request, client, std::mem::take(&mut out), ready)).await
            }
            Step::Status(status) => {
                // It is read past where the connection goes on; of a refused request nobody knows where it ends.
                if request.keep_alive && !client.body_known() {
                    _ = client.expect_body(request);
                }
                Outcome::Status(status)
            }
            Step::TooLarge => too_large(request, client),
            Step::Wait(check) => {
                buffers::give(std::mem::replace(&mut out, buffers::take()));
                match Box::pin(waiting::on(check, request, client, &mut out)).await {
                    Ok(next) => {
                        step = next;
                        continue;
                    }
                    Err(failure) => Outcome::Client(failure),
                }
            }
            Step::Content(content) => match expected_body(request, client) {
                Err(failure) => Outcome::Client(failure),
                Ok(()) => content.answer(request, client).await,
            },
        };
        let restart = match outcome {
            Outcome::Done => return,
            Outcome::Restart(restart) => restart,
            Outcome::Redirect(status, url) => {
                fixed::lead_to(request, &url);
                step = Step::Status(status);
                continue;
            }
            Outcome::Status(status) => match Box::pin(answer_status(request, client, status)).await {
                Some(restart) => restart,
                None => return,
            },
            Outcome::Client(failure) => match failed(request, client, failure) {
                Some(status) => {
                    step = Step::Status(status);
                    continue;
                }
                None => return,
            },
        };
        buffers::give(std::mem::replace(&mut out, buffers::take()));
        step = phase::again(request, restart, Now::read(), &mut out);
    }
}

/// A restart finds the body expected already.
fn expected_body(request: &Request, client: &mut Client) -> Result<(), ClientFailure> {
    if client.body_known() { Ok(()) } else { client.expect_body(request) }
}

/// A body of which nothing was read is lost, so that its error page does without it. Any other is kept, and is too
/// large for a page with such a limit as well, as in nginx.
fn too_large(request: &Request, client: &mut Client) -> Outcome {
    if request.descent.wanted.is_none() && matches!(request.received.body, KeptBody::Unread) {
        _ = expected_body(request, client);
        return Outcome::Client(ClientFailure::TooLarge);
    }
    log_too_large(request);
    Outcome::Status(413)
}

fn log_too_large(request: &Request) {
    let length = request.received.known_length();
    let what = format_args!("client intended to send too large body: {length} bytes");
    failure::log(request, Level::Error, what);
}

pub fn gone(request: &mut Request, client: &mut Client) {
    _ = failed(request, client, ClientFailure::Gone);
}

/// The status to respond with, if that is possible.
fn failed(request: &mut Request, client: &mut Client, failure: ClientFailure) -> Option<u16> {
    request.keep_alive = false;
    let has_begun = client.begun();
    // Once an answer has begun, it may be that which the client is too slow for.
    if failure.is_of_body() && !(has_begun && failure == ClientFailure::Timeout) {
        request.received.body = KeptBody::Lost(failure.status());
    }
    if has_begun || failure == ClientFailure::Gone {
        if !has_begun {
            request.sent.status = failure.status();
        }
        client.abandon();
        return None;
    }
    if failure == ClientFailure::TooLarge {
        log_too_large(request);
    }
    Some(failure.status())
}

async fn answer_status(request: &mut Request, client: &mut Client, status: u16) -> Option<Restart> {
    if status == failure::CLOSE_WITHOUT_ANSWER {
        client.withhold(request);
        request.sent.status = status;
        return None;
    }
    if closes(status) {
        request.keep_alive = false;
    }
    if status >= 300 && subrequest::answer_stub(request, client).await {
        return None;
    }
    if !request.descent.in_error_page
        && restart::may_change(request)
        && let Some(page) = page_for(request, status)
    {
        return to_page(request, client, &page, status).await;
    }
    request.descent.error_status = None;
    if let Outcome::Client(failure) = fixed::page(request, client, status).await {
        failed(request, client, failure);
    }
    None
}

/// Statuses after which the connection may be out of step; nginx closes it too.
fn closes(status: u16) -> bool {
    matches!(status, 400 | 408 | 413 | 414 | 431 | 493..=497 | 500 | 501 | 505)
}

fn page_for(request: &Request, status: u16) -> Option<ErrorPage> {
    let pages = &request.location().settings.error_pages;
    let named = |status| pages.iter().find(|page| page.status == status).cloned();
    // A head with too much in it may be named by nginx's number or by the one that its client is told.
    match status {
        failure::HEAD_TOO_LARGE => named(status).or_else(|| named(431)),
        failure::TOO_MANY_FIELDS => named(failure::HEAD_TOO_LARGE).or_else(|| named(400)),
        _ => named(status),
    }
}

async fn to_page(
    request: &mut Request,
    client: &mut Client,
    page: &ErrorPage,
    status: u16,
) -> Option<Restart> {
    let uri = value(&page.uri, request);
    request.descent.in_error_page = !request.location().settings.recursive_error_pages;
    if matches!(uri.first(), Some(b'/' | b'@')) {
        fixed::forget_type(request);
        request.descent.error_status = match page.answer {
            ErrorPageStatus::Keep => Some(failure::public_status(status)),
            ErrorPageStatus::Is(other) => Some(other),
            ErrorPageStatus::FromPage => None,
        };
        let is_by_get = uri[0] == b'/';
        if is_by_get {
            request.method = restart::reading(request.method);
        }
        request
            .received
            .body
            .lead_to_page(is_by_get, request.descent.error_status.is_some_and(|status| status >= 400));
        return Some(Restart::read(&uri, shown_by(&page.uri, request)));
    }
    // A URL sends the client there; its status must be a redirect's.
    let redirect = match page.answer {
        ErrorPageStatus::Is(code @ (301 | 302 | 303 | 307 | 308)) => code,
        _ => 302,
    };
    fixed::lead_to(request, &uri);
    request.descent.error_status = None;
    if let Outcome::Client(failure) = fixed::page(request, client, redirect).await {
        failed(request, client, failure);
    }
    None
}
