//! An HTTP/1 connection: read a head, serve it, go on or close (RFC 9112 §9).
//!
//! ```text
//! Idle ──bytes──▶ Head ──whole──▶ Serving ──kept alive──▶ Idle
//!   │ timeout,      │ malformed      │ else
//!   ▼ stop          ▼ 400…           ▼
//! Closed ◀──────────┴──────────────lingering
//! ```
//! While a connection is idle it holds no buffer. A cache hit is written from here without another future.
//! Next: `heads`, which reads them; `phase`, which decides.

mod heads;

use super::accepted::{Accepted, DRAIN_GRACE, DRAIN_PATIENCE};
use super::opening::Opened;
use super::{h2, lingering, spare};
use crate::admission;
use crate::client::{Client, Ending};
use crate::counting;
use crate::drive::{self, Left, subrequest};
use crate::failure;
use crate::loop_lag;
use crate::phase::{self, Step};
use crate::request::Request;
use crate::rewrite::From;
use crate::worker::{Awaits, Stage};
use heads::HeadOutcome;
use millstream_cache::Now;
use millstream_conf::model::Level;
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::Gauge;
use millstream_wire::Version;
use millstream_wire::h1::head::HeadError;
use millstream_wire::h2::PREFACE;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Instant;

/// An HTTP/1 connection, until its preface says HTTP/2.
pub(super) struct Connection {
    accepted: Accepted,
    client: Client,
    is_http2: bool,
}

#[derive(PartialEq, Eq)]
enum Next {
    Request,
    Close(Closing),
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Closing {
    Clean,
    Unread,
    /// It was too slow or is gone: do not wait.
    Now,
    /// The response was cut and a clean close would hide it.
    Reset,
}

/// An HTTP/2 preface where that is not spoken is no request of another version (RFC 9113 §3.4).
fn refusal(request: &Request, error: HeadError) -> u16 {
    match error {
        HeadError::BadVersion if request.received.bytes.starts_with(b"PRI * ") => 400,
        HeadError::TooManyFields => failure::TOO_MANY_FIELDS,
        error => failure::of_head(error.status()),
    }
}

impl Connection {
    pub(super) fn new(opened: Opened) -> Connection {
        let is_http2 = opened.has_chosen_http2();
        let Opened { accepted, socket, place } = opened;
        Connection { accepted, client: Client::new(socket, place, subrequest::answer), is_http2 }
    }

    pub(super) async fn run(&mut self) {
        if self.is_http2 {
            return;
        }
        loop {
            let mut pending = None;
            let head = poll_fn(|cx| self.poll_head(cx, &mut pending)).await;
            let next = match head {
                HeadOutcome::Closed => {
                    if let Some(request) = pending {
                        // nginx's status for who leaves in the middle of a head, and the one for who takes too long.
                        self.left(request, if self.client.is_shed() { 408 } else { 400 });
                    }
                    break;
                }
                HeadOutcome::Request(request) => self.request(request).await,
                HeadOutcome::Refused(request, error) if self.is_preface(&request, error) => {
                    return self.turn(request);
                }
                HeadOutcome::Refused(request, error) => {
                    let (status, mut request) = (refusal(&request, error), request);
                    request.method = request.received.head.method;
                    // An `error_page` may lead to a location that asks for the path, as far as it is known.
                    _ = admission::normalise(&mut request);
                    Box::pin(self.refuse(request, status)).await
                }
                HeadOutcome::TimedOut(Some(request)) => {
                    Box::pin(self.refuse(request, 408)).await;
                    Next::Close(Closing::Now)
                }
                HeadOutcome::TimedOut(None) => break,
            };
            if let Next::Close(closing) = next {
                self.accepted.counted.is(None);
                Box::pin(self.close(closing)).await;
                return;
            }
        }
        // Its future is as large as the rest of the loop, and few connections end here.
        Box::pin(self.accepted.until_logged()).await;
    }

    /// Whether the first bytes are an allowed HTTP/2 preface (RFC 9113 §3.3).
    fn is_preface(&self, request: &Request, error: HeadError) -> bool {
        let listener = &self.accepted.generation.http().listeners[self.accepted.facts.listener.get()];
        error == HeadError::BadVersion
            && self.accepted.facts.requests.get() == 1
            && self.accepted.facts.tls.is_none()
            && !self.accepted.facts.is_plain_on_tls
            && (listener.http2 || self.accepted.server().settings.http2.enabled)
            && request.received.bytes.starts_with(&PREFACE[..request.received.bytes.len().min(PREFACE.len())])
    }

    fn turn(&mut self, mut request: Box<Request>) {
        *self.client.rest() = std::mem::take(&mut request.received.bytes);
        spare::keep(request);
        self.accepted.facts.requests.set(0);
        self.is_http2 = true;
    }

    pub(super) fn turned(mut self) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        if !self.is_http2 {
            return None;
        }
        let came = std::mem::take(self.client.rest());
        let (socket, place) = self.client.into_connection()?;
        Some(h2::serve(Opened { accepted: self.accepted, socket, place }, came))
    }

    async fn request(&mut self, mut request: Box<Request>) -> Next {
        request.keep_alive = self.may_keep_alive(&request);
        if let Err(status) = admission::admit_client(&mut request) {
            return Box::pin(self.refuse(request, status)).await;
        }
        let mut left = poll_fn(|cx| Poll::Ready(self.begin(cx, &mut request))).await;
        match left {
            Left::Nothing => self.accepted.counted.is(None),
            _ => self.accepted.counted.answers(counting::zones(&request)),
        }
        let now = if let Left::Nothing = left {
            request.received.started
        } else {
            self.hold_little(&mut request);
            let now = match poll_fn(|cx| left.poll(cx, &mut request, &mut self.client)).await {
                Some(now) => now,
                None => {
                    Box::pin(drive::end(&mut request, &mut self.client, left)).await;
                    if request.keep_alive && self.client.body_pending() && !self.client.awaits_continue() {
                        Box::pin(self.client.discard_body(&mut request)).await;
                    }
                    clock::now()
                }
            };
            loop_lag::tell(&self.accepted.worker.metrics, now);
            now
        };
        // What follows a request comes before the next one.
        if subrequest::is_followed(&request) {
            Box::pin(subrequest::follow(&mut request)).await;
        }
        self.conclude(request, now)
    }

    /// Releases buffers before a long wait: there are many slow requests, and a head is small.
    fn hold_little(&mut self, request: &mut Request) {
        request.tighten();
        self.client.release_buffer();
    }

    /// Serves a hit in memory in one write, and starts a simple upstream request.
    fn begin(&mut self, cx: &mut Context<'_>, request: &mut Request) -> Left {
        let now =
            Now { unix_milliseconds: clock::wall().unix_milliseconds(), instant: request.received.started };
        let mut out = buffers::take();
        let step = phase::decide(request, From::Server, now, &mut out);
        drive::begin(cx, request, &mut self.client, step, out)
    }

    fn may_keep_alive(&self, request: &Request) -> bool {
        let fields = request.fields();
        let wanted = match request.received.head.version {
            Version::Http11 | Version::Http2 => !fields.connection_lists("close"),
            Version::Http10 => fields.connection_lists("keep-alive") && !fields.connection_lists("close"),
        };
        wanted && !self.accepted.is_leaving && !self.accepted.worker.is_short()
    }

    /// After a malformed head or framing; the last request, as the start of the next is unknown.
    async fn refuse(&mut self, mut request: Box<Request>, status: u16) -> Next {
        request.keep_alive = false;
        self.accepted.counted.is(Some(Gauge::ConnectionsWriting));
        let what = format_args!("client sent a request that was refused with {status}");
        failure::log(&request, Level::Info, what);
        drive::end(&mut request, &mut self.client, Left::Step(Box::new(Step::Status(status)))).await;
        self.conclude(request, clock::now());
        Next::Close(Closing::Unread)
    }

    fn left(&mut self, mut request: Box<Request>, status: u16) {
        request.received.bytes.append(self.client.rest());
        request.sent.status = status;
        request.keep_alive = false;
        self.conclude(request, clock::now());
    }

    fn conclude(&mut self, request: Box<Request>, now: Instant) -> Next {
        let body_left = self.client.body_pending();
        let ending = self.client.settle();
        // A client that was told that it may go on is not cut by a graceful stop that began meanwhile: its next request
        // is answered, with `Connection: close`.
        let goes_on = request.keep_alive && !body_left && self.accepted.worker.stage() != Stage::Stopping;
        self.client.deadline().set(now + request.location().settings.keepalive.timeout);
        let unread = body_left || !self.client.rest().is_empty();
        self.accepted.record(request, now);
        match ending {
            Ending::Whole if goes_on => Next::Request,
            Ending::Whole | Ending::Closing if unread => Next::Close(Closing::Unread),
            Ending::Whole | Ending::Closing => Next::Close(Closing::Clean),
            Ending::Cut => Next::Close(Closing::Now),
            Ending::CutUnseen => Next::Close(Closing::Reset),
        }
    }

    async fn close(&mut self, closing: Closing) {
        self.accepted.until_logged().await;
        let settings = &self.accepted.settings().lingering;
        let Some((stream, place)) = self.client.connection() else { return };
        let unread = match closing {
            Closing::Clean => stream.has_unread(),
            Closing::Unread => true,
            Closing::Now => return lingering::close_now(stream).await,
            Closing::Reset => return stream.reset_on_close(),
        };
        let lingering = pin!(lingering::close(stream, settings, unread));
        // Where its place is needed, what the client still sends is reset.
        _ = place.unless_shed(Awaits::Close(clock::now()), lingering).await;
    }
}
