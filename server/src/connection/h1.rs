//! An HTTP/1 connection: read a head, serve it, go on or close (RFC 9112 §9).
//!
//! ```text
//! Idle ──bytes──▶ Head ──whole──▶ Serving ──kept alive──▶ Idle
//!   │ timeout,      │ malformed      │ else
//!   ▼ stop          ▼ 400…           ▼
//! Closed ◀──────────┴──────────────lingering
//! ```
//! While a connection is idle it holds no buffer. A cache hit is written from here without another future.
//! Next: `phase`, which decides.

use super::counted::Counted;
use super::naming::{Naming, host_text};
use super::{lingering, proxied, spare};
use crate::access_log;
use crate::admission;
use crate::client::{Client, Ending};
use crate::failure;
use crate::gateway::{self, Begun};
use crate::generation::Generation;
use crate::judged::ClientCertificate;
use crate::loop_lag;
use crate::phase::{self, Content, Step};
use crate::request::{ConnectionFacts, Request};
use crate::rewrite::From;
use crate::serve;
use crate::worker::{Awaits, Place, Stage, Worker, idle_since};
use millstream_cache::Now;
use millstream_conf::model::{Level, ListenAddress, Settings};
use millstream_net::Address;
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_net::tls::HandshakeError;
use millstream_net::{buffers, clock};
use millstream_telemetry::log_writer::Ticket;
use millstream_telemetry::metrics::{Counter, Gauge};
use millstream_wire::Version;
use millstream_wire::h1::head::{HeadError, HeadLimits, Progress};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// An idle connection that was in use this recently is not closed at once by a graceful stop, nor by a reload that
/// took its listener away: the client's next request may be on its way already, and closing would reset it.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// The longest that a connection stays open for its line to be in the log.
const LOG_WAIT: Duration = Duration::from_millis(250);

/// Heads up to this size are copied out of the buffer that they were read into, which then stays where it is.
const COPIED: usize = 2048;

static SERIAL: AtomicU64 = AtomicU64::new(1);

struct Connection {
    worker: Rc<Worker>,
    facts: Rc<ConnectionFacts>,
    address: Rc<ListenAddress>,
    client: Client,
    /// The newest configuration that listens on `address`; the next request is served with it.
    generation: Rc<Generation>,
    /// A reload took the listener away: what is on its way is served, nothing after it.
    is_leaving: bool,
    last_used: Instant,
    ticket: Option<Ticket>,
    counted: Counted,
}

enum HeadOutcome {
    Request(Box<Request>),
    Refused(Box<Request>, HeadError),
    TimedOut(Option<Box<Request>>),
    Closed,
}

/// What the decision about a request left to do.
enum Left {
    /// Nothing: it was a hit and is written.
    Nothing,
    /// A hit that the socket did not take whole.
    Queued,
    /// To wait for the upstream, which is asked.
    Begun(Box<Begun>),
    /// All but the decision.
    Step(Box<Step>),
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Request,
    Close(Closing),
}

/// How a connection closes.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Closing {
    /// After a whole answer, with nothing to read as far as is known.
    Clean,
    /// The client may still be sending.
    Unread,
    /// It was too slow, or is not there to read the rest of its answer: nothing more is waited for.
    Now,
    /// Its answer was cut where a clean end would look like the end of the whole.
    Reset,
}

/// Serves a connection from its first byte to its close. `address` is the listener that accepted it.
///
/// What only the opening needs is in a box of its own: the future that is left for a connection's life is small.
pub fn serve(
    worker: Rc<Worker>,
    place: Place,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) -> impl Future<Output = ()> {
    // What was accepted before a reload is served with what listened then.
    let generation = worker.generation();
    let opening = Box::pin(open(worker, generation, place, stream, remote, address));
    async move {
        let Some(mut connection) = opening.await else { return };
        connection.run().await;
    }
}

/// The TLS handshake, where the listener wants one, and the facts of the connection.
async fn open(
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    place: Place,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) -> Option<Connection> {
    let listener = generation.listener_of(&address)?;
    let opened = clock::now();
    let mut stream = stream;
    let proxied = match generation.http().listeners[listener].proxy_protocol {
        true => proxied::read(&mut stream, &generation, listener, &place, &remote).await?,
        false => None,
    };
    let (stream, is_plain_on_tls) = match &generation.shared.tls[listener] {
        None => (stream, false),
        Some(acceptor) => {
            let id = generation.http().listeners[listener].default_server;
            let naming = Naming { worker: &worker, generation: &generation, listener, remote: &remote };
            let mut deadline = millstream_net::timer::Deadline::new();
            deadline.set(opened + generation.http().server(id).settings.client_header.timeout);
            let handshake = place.unless_shed(
                Awaits::Head(opened),
                Box::pin(acceptor.accept_as(stream, |text, name| naming.say(text, name))),
            );
            match with_deadline(&mut deadline, handshake).await {
                Ok(Some(Ok(encrypted))) => (encrypted, false),
                Ok(Some(Err(HandshakeError::PlainHttp(stream)))) => (stream, true),
                Ok(Some(Err(error))) => {
                    let log = &generation.shared.main_log;
                    log.write(Level::Info, format_args!("TLS handshake failed: {error}, client: {remote}"));
                    return None;
                }
                Ok(None) | Err(_) => return None,
            }
        }
    };
    let own = generation.http().server(generation.http().listeners[listener].default_server).own;
    if generation.http().location(own).settings.send.tcp_nodelay {
        // A unix socket has no such option; nothing is lost where it cannot be set.
        _ = stream.set_nodelay(true);
    }
    let facts = Rc::new(ConnectionFacts {
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        remote_text: host_text(&remote),
        remote,
        local: stream.local().unwrap_or(Address::Unix(None)),
        listener: Cell::new(listener),
        is_plain_on_tls,
        proxied,
        tls: stream.tls().cloned().map(Box::new),
        certificate: ClientCertificate::of(stream.tls()),
        opened,
        requests: Cell::new(0),
    });
    worker.metrics.add(Counter::ConnectionsAccepted, 1);
    Some(Connection {
        counted: Counted::new(worker.metrics.clone()),
        worker,
        facts,
        address,
        client: Client::new(stream, place),
        generation,
        is_leaving: false,
        last_used: opened,
        ticket: None,
    })
}

impl Connection {
    async fn run(&mut self) {
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
                HeadOutcome::Refused(request, error) => Box::pin(self.refuse(request, error.status())).await,
                HeadOutcome::TimedOut(Some(request)) => {
                    Box::pin(self.refuse(request, 408)).await;
                    Next::Close(Closing::Now)
                }
                HeadOutcome::TimedOut(None) => break,
            };
            if let Next::Close(closing) = next {
                self.counted.is(None);
                Box::pin(self.close(closing)).await;
                return;
            }
        }
        // Its future is as large as the rest of the loop, and few connections end here.
        Box::pin(self.until_logged()).await;
    }

    /// Waits until the last unbuffered line is in its file, but not for a disk that hangs.
    async fn until_logged(&self) {
        let Some(ticket) = self.ticket else { return };
        let log_writer = self.worker.log_writer.clone();
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + LOG_WAIT);
        if with_deadline(&mut deadline, log_writer.written(ticket)).await.is_err() {
            log_writer.stop_waiting();
        }
    }

    /// The connection ends in the middle of a head: logged, with nothing answered.
    fn left(&mut self, mut request: Box<Request>, status: u16) {
        request.bytes.append(self.client.rest());
        request.sent.status = status;
        request.keep_alive = false;
        self.conclude(request, clock::now());
    }

    /// Reads until a whole head is there. Holds no buffer while it waits for a first byte.
    fn poll_head(&mut self, cx: &mut Context<'_>, pending: &mut Option<Box<Request>>) -> Poll<HeadOutcome> {
        // Bytes that are there before anything is read came behind the request before.
        let mut waited = true;
        loop {
            if !self.client.rest().is_empty() {
                let request = match pending {
                    Some(request) => request,
                    None => {
                        self.client.deadline().clear();
                        let request = pending.insert(self.new_request());
                        request.pipelined = waited;
                        request
                    }
                };
                let limits = limits(request);
                match request.head.parse(self.client.rest(), &limits) {
                    Ok(Progress::Complete) => {
                        self.client.deadline().clear();
                        self.client.set_busy();
                        let request = pending.take().expect("it was put there above");
                        return Poll::Ready(HeadOutcome::Request(self.take_head(request)));
                    }
                    Ok(Progress::Partial) => {}
                    Err(error) => {
                        let mut request = pending.take().expect("it was put there above");
                        request.bytes.append(self.client.rest());
                        return Poll::Ready(HeadOutcome::Refused(request, error));
                    }
                }
            }
            match self.client.poll_read_more(cx) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    waited = false;
                }
                Poll::Ready(_) => return Poll::Ready(HeadOutcome::Closed),
                Poll::Pending => {
                    self.client.release_buffer();
                    return self.poll_waiting(cx, pending);
                }
            }
        }
    }

    /// Nothing to read: waits for bytes, for the timeout that holds now, for a stop.
    fn poll_waiting(
        &mut self,
        cx: &mut Context<'_>,
        pending: &mut Option<Box<Request>>,
    ) -> Poll<HeadOutcome> {
        let idle = pending.is_none();
        self.counted.is((!idle).then_some(Gauge::ConnectionsReading));
        let awaits = match pending {
            None => Awaits::Request(self.last_used),
            Some(request) => {
                Awaits::Head(idle_since(request.started, self.client.rest().len(), clock::now()))
            }
        };
        self.client.wait(awaits, cx.waker());
        self.follow_generation();
        let stage = self.worker.stage();
        if stage == Stage::Stopping || self.client.is_shed() {
            return Poll::Ready(HeadOutcome::Closed);
        }
        if idle && (stage == Stage::Draining || self.is_leaving) {
            let until = self.last_used + DRAIN_GRACE;
            if clock::now() >= until {
                return Poll::Ready(HeadOutcome::Closed);
            }
            self.client.deadline().set(until);
        }
        if self.client.deadline().at().is_none() {
            let timeout = self.head_timeout();
            self.client.deadline().set(clock::now() + timeout);
        }
        self.client.deadline().poll(cx).map(|()| HeadOutcome::TimedOut(pending.take()))
    }

    /// How long a head may take. Behind a request the connection idles for as long as its location said.
    fn head_timeout(&self) -> Duration {
        let http = self.generation.http();
        http.server(http.listeners[self.facts.listener.get()].default_server).settings.client_header.timeout
    }

    /// Takes over the configuration in force, unless it no longer listens on this connection's address.
    fn follow_generation(&mut self) {
        if self.worker.serves_with(&self.generation) {
            return;
        }
        let newest = self.worker.generation();
        match newest.listener_of(&self.address) {
            Some(listener) => {
                self.facts.listener.set(listener);
                self.generation = newest;
                self.is_leaving = false;
            }
            None => self.is_leaving = true,
        }
    }

    /// A request to fill in, with the configuration in force now.
    fn new_request(&mut self) -> Box<Request> {
        self.follow_generation();
        self.facts.requests.set(self.facts.requests.get() + 1);
        let now = clock::now();
        loop_lag::tell(&self.worker.metrics, now);
        let mut request = match spare::take(&self.generation) {
            Some(mut request) => {
                request.reset(self.facts.clone(), now);
                request
            }
            None => {
                Box::new(Request::new(self.worker.clone(), self.generation.clone(), self.facts.clone(), now))
            }
        };
        // Until its host is known a request belongs to the listener's default server.
        let http = self.generation.http();
        request.server = http.listeners[self.facts.listener.get()].default_server;
        request.location = http.server(request.server).own;
        request
    }

    fn take_head(&mut self, mut request: Box<Request>) -> Box<Request> {
        let rest = self.client.rest();
        let length = request.head.length;
        if length <= COPIED {
            request.bytes.extend_from_slice(&rest[..length]);
            if rest.len() == length {
                rest.clear();
            } else {
                rest.drain(..length);
            }
        } else if rest.len() == length {
            std::mem::swap(&mut request.bytes, rest);
            if rest.capacity() < buffers::SIZE {
                // It held a head only; what is read next wants a buffer.
                *rest = Vec::new();
            }
        } else {
            request.bytes.extend_from_slice(&rest[..length]);
            rest.drain(..length);
        }
        request.method = request.head.method;
        request
    }

    /// Serves one request.
    async fn request(&mut self, mut request: Box<Request>) -> Next {
        request.keep_alive = self.may_keep_alive(&request);
        let mut admitted = admission::admit(&mut request);
        if self.facts.is_plain_on_tls {
            admitted = Err(failure::HTTP_TO_HTTPS);
        }
        let admitted = admitted.and_then(|()| admission::verify_client(&request));
        if let Err(status) = admitted {
            return Box::pin(self.refuse(request, status)).await;
        }
        let left = poll_fn(|cx| Poll::Ready(self.begin(cx, &mut request))).await;
        self.counted.is((!matches!(left, Left::Nothing)).then_some(Gauge::ConnectionsWriting));
        match left {
            Left::Nothing => {
                let now = request.started;
                return self.conclude(request, now);
            }
            // A client that fails now is seen by `conclude`: its answer is not whole.
            Left::Queued => _ = Box::pin(self.client.flush(&mut request)).await,
            Left::Begun(mut begun) => {
                self.hold_little(&mut request);
                match poll_fn(|cx| begun.poll(cx, &mut request, &mut self.client)).await {
                    Some(now) => {
                        loop_lag::tell(&self.worker.metrics, now);
                        return self.conclude(request, now);
                    }
                    None => {
                        let step = Step::Content(Content::Begun(begun));
                        Box::pin(serve::finish(&mut request, &mut self.client, step, Vec::new())).await;
                    }
                }
            }
            Left::Step(step) => {
                self.hold_little(&mut request);
                Box::pin(serve::finish(&mut request, &mut self.client, *step, Vec::new())).await;
            }
        }
        if request.keep_alive && self.client.body_pending() && !self.client.awaits_continue() {
            Box::pin(self.client.discard_body(&mut request)).await;
        }
        let now = clock::now();
        loop_lag::tell(&self.worker.metrics, now);
        self.conclude(request, now)
    }

    /// What may take long holds no buffers: there are many slow requests, and a head is small.
    fn hold_little(&mut self, request: &mut Request) {
        request.tighten();
        self.client.release_buffer();
    }

    /// Decides about a request. A hit in memory is answered here, in one write, and an upstream that is to be asked for
    /// something common is asked.
    fn begin(&mut self, cx: &mut Context<'_>, request: &mut Request) -> Left {
        let now = Now { unix_milliseconds: clock::wall().unix_milliseconds(), instant: request.started };
        let mut out = buffers::take();
        match phase::decide(request, From::Server, now, &mut out) {
            Step::Ready(ready) => match self.client.poll_whole(cx, request, out, ready.whole()) {
                Poll::Ready(_) => Left::Nothing,
                Poll::Pending => Left::Queued,
            },
            step => {
                buffers::give(out);
                if let Step::Content(Content::Pass(None)) = step
                    && let Some(begun) = gateway::begin(cx, request, &mut self.client)
                {
                    return Left::Begun(begun);
                }
                Left::Step(Box::new(step))
            }
        }
    }

    /// Whether the connection may serve another request after this one, as far as that is no location's matter.
    fn may_keep_alive(&self, request: &Request) -> bool {
        let fields = request.fields();
        let wanted = match request.head.version {
            Version::Http11 => !fields.connection_lists("close"),
            Version::Http10 => fields.connection_lists("keep-alive") && !fields.connection_lists("close"),
        };
        wanted && !self.is_leaving && !self.worker.is_short()
    }

    /// Refuses a request whose head or framing is wrong: it is not known where the next one begins, so this is the last.
    async fn refuse(&mut self, mut request: Box<Request>, status: u16) -> Next {
        request.keep_alive = false;
        self.counted.is(Some(Gauge::ConnectionsWriting));
        let log = &request.generation.shared.error_logs[request.location.0 as usize];
        if log.enabled(Level::Info) {
            let described = failure::describe(&request, None);
            log.write(
                Level::Info,
                format_args!("client sent a request that was refused with {status}{described}"),
            );
        }
        serve::finish(&mut request, &mut self.client, Step::Status(status), Vec::new()).await;
        self.conclude(request, clock::now());
        Next::Close(Closing::Unread)
    }

    /// Logs and counts a request and decides how the connection goes on.
    fn conclude(&mut self, mut request: Box<Request>, now: Instant) -> Next {
        let body_left = self.client.body_pending();
        let ending = self.client.settle();
        let metrics = &self.worker.metrics;
        metrics.add(Counter::Requests, 1);
        let settings = &request.location().settings;
        if let Some(zone) = settings.status_zone.or(request.server().status_zone) {
            let zone = request.generation.shared.status_zones[zone as usize];
            let received = request.head.length as u64 + request.body_received;
            metrics.zone_request(
                zone,
                request.sent.status,
                received,
                request.sent.bytes,
                request.cache_status,
            );
        }
        if let Some(ticket) = access_log::write(&request, now) {
            self.ticket = Some(ticket);
        }
        self.last_used = now;
        // A client that was told that it may go on is not cut by a graceful stop that began meanwhile: its next request
        // is answered, with `Connection: close`.
        let goes_on = request.keep_alive && !body_left && self.worker.stage() != Stage::Stopping;
        self.client.deadline().set(now + request.location().settings.keepalive.timeout);
        // What follows on the connection is not held up by what this one counts for, nor does its body stay with it.
        request.body_file = None;
        request.limited.under_way.clear();
        let unread = body_left || !self.client.rest().is_empty();
        spare::keep(request);
        match ending {
            Ending::Whole if goes_on => Next::Request,
            Ending::Whole | Ending::Closing if unread => Next::Close(Closing::Unread),
            Ending::Whole | Ending::Closing => Next::Close(Closing::Clean),
            Ending::Cut => Next::Close(Closing::Now),
            Ending::CutUnseen => Next::Close(Closing::Reset),
        }
    }

    async fn close(&mut self, closing: Closing) {
        self.until_logged().await;
        let http = self.generation.http();
        let server = http.listeners[self.facts.listener.get()].default_server;
        let settings: &Settings = &http.location(http.server(server).own).settings;
        let Some((stream, place)) = self.client.connection() else { return };
        let unread = match closing {
            Closing::Clean => stream.has_unread(),
            Closing::Unread => true,
            Closing::Now => false,
            Closing::Reset => return stream.reset_on_close(),
        };
        let lingering = pin!(lingering::close(stream, settings, unread));
        // Where its place is needed, what the client still sends is reset.
        _ = place.unless_shed(Awaits::Close(clock::now()), lingering).await;
    }
}

fn limits(request: &Request) -> HeadLimits {
    let http = request.generation.http();
    let listener = &http.listeners[request.connection.listener.get()];
    let settings = &http.server(listener.default_server).settings.client_header;
    let (number, size) = settings.large_buffers;
    HeadLimits { line: size, total: number.saturating_mul(size), fields: settings.max_fields }
}
