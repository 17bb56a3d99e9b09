//! An HTTP/1 connection: read a head, serve it, go on or close (RFC 9112 §9).
//!
//! ```text
//! Idle ──bytes──▶ Head ──whole──▶ Serving ──kept alive──▶ Idle
//!   │ timeout,      │ malformed      │ else
//!   ▼ stop          ▼ 400…           ▼
//! Closed ◀──────────┴──────────────lingering
//! ```
//! While a connection is idle it holds no buffer. A cache hit is written from here without another future.
//! Next: `heads`, which reads them; `phase`, which decides; `ending`, which says how it goes on.

mod opening;
mod heads;
mod ending;

use super::counted::Counted;
use super::{lingering, proxied, spare};
use crate::admission;
use crate::client::{Client, Ending};
use crate::counting;
use crate::failure;
use crate::gateway::{self, Begun};
use crate::generation::Generation;
use crate::loop_lag;
use crate::phase::{self, Content, Step};
use crate::request::{ConnectionFacts, Request};
use crate::rewrite::From;
use crate::serve;
use crate::worker::{ConnectionSlot, Worker};
use ending::{Closing, Next};
use heads::HeadOutcome;
use millstream_cache::Now;
use millstream_conf::model::{Level, ListenAddress};
use millstream_net::Address;
use millstream_net::stream::Stream;
use millstream_net::{buffers, clock};
use millstream_telemetry::log_writer::Ticket;
use millstream_telemetry::metrics::Gauge;
use millstream_wire::Version;
use opening::open;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::task::AbortHandle;

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

/// Serves a connection from its first byte to its close, in a task of its own. `address` is the listener that accepted it.
///
/// The task begins here, and not where this is called: a crate compiles all code of the futures that it spawns.
/// What only the opening needs is in a box of its own: the future that is left for a connection's life is small.
pub fn serve(
    worker: Rc<Worker>,
    place: ConnectionSlot,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) -> AbortHandle {
    // What was accepted before a reload is served with what listened then.
    let generation = worker.generation();
    let opening = Box::pin(open(worker, generation, place, stream, remote, address));
    let life = async move {
        let Some(mut connection) = opening.await else { return };
        connection.run().await;
    };
    tokio::task::spawn_local(life).abort_handle()
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
        match left {
            Left::Nothing => self.counted.is(None),
            _ => self.counted.answers(counting::zones(&request)),
        }
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
        let what = format_args!("client sent a request that was refused with {status}");
        failure::log(&request, Level::Info, what);
        serve::finish(&mut request, &mut self.client, Step::Status(status), Vec::new()).await;
        self.conclude(request, clock::now());
        Next::Close(Closing::Unread)
    }
}
