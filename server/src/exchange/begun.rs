//! The common exchange, without a future of its own: a request without a body, a server with an idle connection, an answer
//! that goes to the client as it comes.
//!
//! ```text
//! begin ─ no idle connection, or its socket is full ─┐
//!   │                                                │
//! asked ─ a failure, an answer that needs judging ───┤
//!   │ a plain answer                                 ├─▶ go_on, which knows all cases
//! body ── a slow client, a cut ──────────────────────┤
//!   │ whole                                          │
//! flushing ─ the client failed ──────────────────────┘
//! ```
//!
//! Each step is that of the ordinary way ([`super::answer`]), taken by polling; whatever takes more than a step is left to
//! it, in the state in which it is. Nothing is decided here that is not decided there.

use super::attempt::{Asking, At, Underway};
use super::destination::{self, Destination};
use super::request_body::{self, RequestBody};
use super::transfer::{Follows, Moved, Transfer, flushed};
use super::{Filling, HEAD, Passing, Proxied, answer_head, method, sticky};
use crate::client::{Client, ClientFailure};
use crate::filter::charset;
use crate::generation::Generation;
use crate::request::Request;
use millstream_cache::policy;
use millstream_conf::model::{Pass, Store};
use millstream_net::{buffers, clock};
use millstream_telemetry::metrics::Counter;
use millstream_upstream::{Ask, Connection, Tried, Turn};
use millstream_wire::h1::framing::Framing;
use millstream_wire::h1::head::ResponseHead;
use std::cell::OnceCell;
use std::mem;
use std::task::{Context, Poll, ready};
use std::time::Instant;

pub struct Begun {
    destination: Destination,
    started: Instant,
    stage: ExchangeStage,
    head: Option<Box<ResponseHead>>,
}

enum ExchangeStage {
    Asking(Tried, Turn, Option<Underway>),
    Body(Transfer),
    Moved(Transfer, Moved),
    Flushing,
    Ended(Proxied),
}

/// The time of waking, read when first needed.
type Woken = OnceCell<Instant>;

/// `None`: this request needs more, and nothing was done.
pub fn begin(context: &mut Context<'_>, request: &mut Request, client: &mut Client) -> Option<Box<Begun>> {
    let generation = request.generation.clone();
    let proxy = pass_of(request, &generation)?;
    let is_common = request.received.framing == Framing::None
        && proxy.cache.is_none()
        && proxy.store.place == Store::Off
        && proxy.http().is_some_and(|http| http.body.is_none())
        && !request_body::lacks_empty_file(request);
    if !is_common {
        return None;
    }
    let destination = destination::known(request, &generation, proxy)?;
    if destination.pool.is_empty() {
        return None;
    }
    let started = clock::now();
    let mut tried = destination.peers.tried(proxy.exchange.next_upstream_tries);
    let (key, session) = (&*destination.key, destination.session.server());
    let turn = destination.peers.choose(Ask { key, session, tried: &mut tried, now: started }).ok()?;
    sticky::chosen(request, &destination, &turn);
    request.has_asked.set(true);
    request.tries.begin();
    let underway = destination.pooled(turn.peer(), 0, started).and_then(|mut connection| {
        let mut passing = Passing::plain(request, client, proxy, &destination, started);
        passing.count(Counter::UpstreamRequests, 1);
        passing.count(Counter::UpstreamConnectionsReused, 1);
        // What is spoken here can be said of any request.
        let (out, written) = passing.begin_exchange(&mut connection, &turn, started).ok()?;
        let at = match connection.send_at_once(context, &out, proxy.exchange.send_timeout) {
            Ok(()) => {
                buffers::give(out);
                connection.sent_whole();
                connection.wait_for_head_until(started + proxy.exchange.read_timeout);
                At::Sent
            }
            Err(sent) => At::Sending(out, sent),
        };
        Some(Underway { connection, written, at })
    });
    let stage = ExchangeStage::Asking(tried, turn, underway);
    Some(Box::new(Begun { destination, started, stage, head: None }))
}

/// Finishes what polling could not.
pub async fn go_on(request: &mut Request, client: &mut Client, begun: Begun) -> Proxied {
    let generation = request.generation.clone();
    let Some(proxy) = pass_of(request, &generation) else { return Proxied::Failed(500) };
    let Begun { destination, started, stage, head } = begun;
    match stage {
        ExchangeStage::Asking(tried, turn, underway) => {
            let mut head = head.or_else(|| HEAD.take()).unwrap_or_default();
            let asking = Asking { tried, started, turn, underway };
            let mut passing = Passing::plain(request, client, proxy, &destination, started);
            let proxied = passing.run(Some(asking), Filling::No, &mut head).await;
            HEAD.set(Some(head));
            proxied
        }
        ExchangeStage::Body(transfer) => {
            let mut passing = Passing::plain(request, client, proxy, &destination, started);
            match passing.client.take() {
                Some(client) => passing.pass_body(client, transfer).await,
                None => Proxied::Done,
            }
        }
        ExchangeStage::Moved(transfer, moved) => {
            let mut passing = Passing::plain(request, client, proxy, &destination, started);
            match passing.client.take() {
                Some(client) => passing.moved(client, transfer, moved).await,
                None => Proxied::Done,
            }
        }
        ExchangeStage::Flushing => flushed(client, request).await,
        ExchangeStage::Ended(proxied) => proxied,
    }
}

fn pass_of<'g>(request: &Request, generation: &'g Generation) -> Option<&'g Pass> {
    generation.http().location(request.route.location).settings.pass()
}

impl Begun {
    /// The time of the last step once the client has its response; `None`: [`go_on`] must finish it.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Request,
        client: &mut Client,
    ) -> Poll<Option<Instant>> {
        let generation = request.generation.clone();
        let Some(proxy) = pass_of(request, &generation) else { return Poll::Ready(None) };
        let woken = Woken::new();
        loop {
            let next = match &mut self.stage {
                ExchangeStage::Asking(..) => ready!(self.poll_head(context, request, client, proxy, &woken)),
                ExchangeStage::Body(transfer) => {
                    let moved = ready!(transfer.poll(context, client, request));
                    self.moved(moved, request, client, proxy, &woken)
                }
                ExchangeStage::Flushing => match ready!(client.poll_flush(context, request)) {
                    Ok(()) => return Poll::Ready(Some(*woken.get_or_init(clock::now))),
                    Err(failure) => Some(ExchangeStage::Ended(Proxied::ClientFailed(failure))),
                },
                ExchangeStage::Moved(..) | ExchangeStage::Ended(_) => None,
            };
            match next {
                Some(stage) => self.stage = stage,
                None => return Poll::Ready(None),
            }
        }
    }

    /// A simple head goes straight to the client.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        request: &mut Request,
        client: &mut Client,
        proxy: &Pass,
        woken: &Woken,
    ) -> Poll<Option<ExchangeStage>> {
        let ExchangeStage::Asking(_, _, Some(Underway { connection, at: at @ At::Sent, .. })) =
            &mut self.stage
        else {
            return Poll::Ready(None);
        };
        let mut passing = Passing::plain(request, client, proxy, &self.destination, self.started);
        let mut head = HEAD.take().unwrap_or_default();
        head.clear();
        let (size, timeout) = (proxy.exchange.buffer_size, proxy.exchange.read_timeout);
        match connection.poll_read_head(context, &mut head, size, timeout) {
            Poll::Pending => {
                HEAD.set(Some(head));
                if connection.has_unread() {
                    // A head that comes in pieces is not read from its beginning with each of them.
                    return Poll::Ready(None);
                }
                ready!(passing.poll_left(context));
                passing.note_end(connection, 0, clock::now());
                return Poll::Ready(Some(ExchangeStage::Ended(Proxied::ClientFailed(ClientFailure::Gone))));
            }
            Poll::Ready(Ok(())) if passing.is_plain(connection, &head) => {}
            Poll::Ready(read) => {
                *at = At::Read(read);
                self.head = Some(head);
                return Poll::Ready(None);
            }
        }
        let stage = mem::replace(&mut self.stage, ExchangeStage::Flushing);
        let ExchangeStage::Asking(_, turn, Some(Underway { connection, .. })) = stage else {
            return Poll::Ready(None);
        };
        let stage = passing.accept(connection, turn, &head, *woken.get_or_init(clock::now));
        HEAD.set(Some(head));
        Poll::Ready(Some(stage))
    }

    fn moved(
        &mut self,
        moved: Moved,
        request: &mut Request,
        client: &mut Client,
        proxy: &Pass,
        woken: &Woken,
    ) -> Option<ExchangeStage> {
        let ExchangeStage::Body(transfer) = mem::replace(&mut self.stage, ExchangeStage::Flushing) else {
            return None;
        };
        let Moved::Whole = moved else { return Some(ExchangeStage::Moved(transfer, moved)) };
        let mut passing = Passing::plain(request, client, proxy, &self.destination, self.started);
        let client = passing.client.take()?;
        passing.ended(client, transfer, *woken.get_or_init(clock::now));
        Some(ExchangeStage::Flushing)
    }
}

impl<'a> Passing<'a> {
    /// A request without a body, whose response is not shared.
    fn plain(
        request: &'a mut Request,
        client: &'a mut Client,
        proxy: &'a Pass,
        destination: &'a Destination,
        asked_at: Instant,
    ) -> Passing<'a> {
        Passing {
            method: method(request, proxy, false),
            request,
            client: Some(client),
            proxy,
            destination,
            body: RequestBody::None,
            caching: false,
            stale: None,
            rest: None,
            tap: None,
            watching: !proxy.exchange.ignore_client_abort,
            left: false,
            awaited: None,
            asked_at,
            since: None,
        }
    }

    /// Ready when the client has left and that ends the request.
    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.client {
            Some(client) if self.watching => client.poll_gone(context),
            _ => Poll::Pending,
        }
    }

    /// Whether the response needs no special handling.
    fn is_plain(&self, connection: &Connection, head: &ResponseHead) -> bool {
        let fields = head.view(connection.head_bytes());
        matches!(head.status, 200..400)
            // To CONNECT a success says more than the answer means (RFC 8441 §5).
            && !self.request.is_extended_connect()
            && !policy::invalidates(self.request.method, head.status)
            && !answer_head::may_be_rewritten(self.proxy, fields)
            && self.set_aside(connection, head).is_none()
    }

    fn accept(
        &mut self,
        mut connection: Box<Connection>,
        mut turn: Turn,
        head: &ResponseHead,
        now: Instant,
    ) -> ExchangeStage {
        self.note_head(&connection, head, now);
        self.accepted(&mut turn);
        self.take_limit_rate(head.view(connection.head_bytes()));
        charset::take(self.request, head.view(connection.head_bytes()));
        self.limit_rate(&mut connection);
        let Some(client) = self.client.take() else { return ExchangeStage::Ended(Proxied::Done) };
        match self.begin(client, &connection, head) {
            Ok(Follows::Body { buffered, wanted }) => {
                ExchangeStage::Body(self.body_on_its_way(client, (connection, turn), buffered, wanted))
            }
            Ok(Follows::Nothing) => {
                client.end(self.request, None);
                self.discard(connection, turn);
                ExchangeStage::Flushing
            }
            Err(unmet) => {
                self.discard(connection, turn);
                ExchangeStage::Ended(Proxied::Unmet(unmet))
            }
        }
    }
}
