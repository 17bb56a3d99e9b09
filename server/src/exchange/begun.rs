//! The common exchange, without a future of its own: a request without a body, a server with an idle connection, a response
//! that goes to the client as it comes.
//!
//! ```text
//! asked ── no idle connection, a failure, a head that needs judging ──┐
//!   │ a plain response                                               │
//! body ─── a slow client, a cut ──────────────────────────────────────├─▶ go_on, which knows all cases
//!   │ whole                                                          │
//! flushing ─ the client failed ───────────────────────────────────────┘
//! ```
//!
//! The states are those of the ordinary way ([`super::answer`]), polled; whatever takes more than a step is left to it, in the state
//! in which it is. Nothing is decided here that is not decided there.

use super::answered::Answered;
use super::asked::Asked;
use super::destination::{self, Destination};
use super::probing;
use super::request_body::{self, RequestBody};
use super::search::ServerSearch;
use super::transfer::{Moved, Transfer};
use super::{Filling, ForCache, HEAD, Passing, Proxied, Terms, pass_of};
use crate::client::{Client, ClientFailure};
use crate::request::Request;
use millstream_conf::model::{Pass, Store};
use millstream_net::clock;
use millstream_upstream::Turn;
use millstream_wire::h1::framing::Framing;
use millstream_wire::h1::head::ResponseHead;
use std::cell::OnceCell;
use std::mem;
use std::task::{Context, Poll, ready};
use std::time::Instant;

pub struct Begun {
    destination: Destination,
    terms: Terms,
    stage: ExchangeStage,
}

enum ExchangeStage {
    Asking(ServerSearch),
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
    request.has_asked.set(true);
    let mut terms =
        Terms::of(request, proxy, RequestBody::None, (ForCache::default(), probing::observed(request)));
    let mut passing =
        Passing { request, client: Some(client), proxy, destination: &destination, terms: &mut terms };
    let now = clock::now();
    let mut search = ServerSearch::begin(&mut passing, now);
    if let Some((turn, first)) = &mut search.first {
        // What is spoken here can be said of any request.
        *first = Asked::over_idle(&mut passing, turn, now).ok().flatten();
        if let Some(asked) = first {
            asked.send_at_once(context, &passing);
        }
    }
    Some(Box::new(Begun { destination, terms, stage: ExchangeStage::Asking(search) }))
}

/// Finishes what polling could not.
pub async fn go_on(request: &mut Request, client: &mut Client, begun: Begun) -> Proxied {
    let generation = request.generation.clone();
    let Some(proxy) = pass_of(request, &generation) else { return Proxied::Failed(500) };
    let Begun { destination, mut terms, stage } = begun;
    let mut passing = Passing { request, client: None, proxy, destination: &destination, terms: &mut terms };
    match stage {
        ExchangeStage::Asking(search) => {
            passing.client = Some(client);
            passing.run(search, Filling::No).await
        }
        ExchangeStage::Body(transfer) => transfer.finish(&mut passing, client).await,
        ExchangeStage::Moved(transfer, moved) => transfer.moved(&mut passing, client, moved).await,
        ExchangeStage::Flushing => client.flush(passing.request).await.into(),
        ExchangeStage::Ended(proxied) => proxied,
    }
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
                ExchangeStage::Asking(_) => {
                    ready!(self.poll_head(context, request, client, proxy, &woken))
                }
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
        let ExchangeStage::Asking(ServerSearch { first: Some((_, Some(asked))), .. }) = &mut self.stage
        else {
            return Poll::Ready(None);
        };
        if !asked.is_sent() {
            return Poll::Ready(None);
        }
        let (destination, terms) = (&self.destination, &mut self.terms);
        let mut passing = Passing { request, client: Some(client), proxy, destination, terms };
        let mut head = HEAD.take().unwrap_or_default();
        head.clear();
        match asked.poll_head(context, &passing, &mut head) {
            Poll::Ready(Ok(())) if passing.is_plain(&asked.connection, &head) => {
                let stage = mem::replace(&mut self.stage, ExchangeStage::Flushing);
                let accepted = stage
                    .asked()
                    .map(|asked| accept(&mut passing, asked, &head, *woken.get_or_init(clock::now)));
                HEAD.set(Some(head));
                Poll::Ready(accepted)
            }
            Poll::Ready(read) => {
                asked.has_read(read.map(|()| head));
                Poll::Ready(None)
            }
            Poll::Pending => {
                HEAD.set(Some(head));
                if asked.connection.has_unread() {
                    // A head that comes in pieces is not read from its beginning with each of them.
                    return Poll::Ready(None);
                }
                ready!(passing.poll_left(context));
                passing.note_end(&asked.connection, 0, clock::now());
                Poll::Ready(Some(ExchangeStage::Ended(Proxied::ClientFailed(ClientFailure::Gone))))
            }
        }
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
        let (destination, terms) = (&self.destination, &mut self.terms);
        let mut passing = Passing { request, client: None, proxy, destination, terms };
        transfer.ended(&mut passing, client, *woken.get_or_init(clock::now));
        Some(ExchangeStage::Flushing)
    }
}

impl ExchangeStage {
    fn asked(self) -> Option<(Turn, Asked)> {
        match self {
            ExchangeStage::Asking(ServerSearch { first: Some((turn, Some(asked))), .. }) => {
                Some((turn, asked))
            }
            _ => None,
        }
    }
}

fn accept(
    passing: &mut Passing<'_>,
    (turn, asked): (Turn, Asked),
    head: &ResponseHead,
    now: Instant,
) -> ExchangeStage {
    passing.note_head(&asked.connection, head, now);
    let mut answered = Answered::of(passing, asked.connection, turn, head);
    answered.heed(passing, head);
    let Some(client) = passing.client.take() else { return ExchangeStage::Ended(Proxied::Done) };
    match Transfer::begin(passing, client, answered, head) {
        Ok(Some(transfer)) => ExchangeStage::Body(transfer),
        Ok(None) => ExchangeStage::Flushing,
        Err(unmet) => ExchangeStage::Ended(Proxied::Unmet(unmet)),
    }
}
