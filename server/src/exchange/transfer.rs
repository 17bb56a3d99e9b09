//! An answer passed to the client as it comes, stored nowhere.
//!
//! A small answer is framed whole into the client's buffer and leaves in one write. With buffering on, the upstream is
//! read ahead of a slow client: `proxy_buffer_size` and `proxy_buffers` bytes in memory, the rest in a file (`spill`), so
//! that it is soon free again. With buffering off each piece goes out before the next is read.

use super::answer_head::{announced, buffering, passed_trailers, rewritten, visible};
use super::answered::Answered;
use super::request_head::is_condition;
use super::spill::{self, SpillEnd};
use super::storing::Keeping;
use super::upward::Stuck;
use super::{Passing, Proxied, report};
use crate::client::{AnswerHead, Client, ClientFailure};
use crate::grpc_status;
use crate::representation::chosen::{self, Chosen, Extent, Offer, Unmet, forced};
use crate::request::Request;
use millstream_conf::model::Store;
use millstream_net::clock;
use millstream_upstream::{Connection, ExchangeError, Part};
use millstream_wire::conditional::Validators;
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Headers};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub(super) enum Moved {
    /// The last bytes may still be in the client's buffer.
    Whole,
    /// The client has all it wants, and the upstream has not ended.
    Enough,
    Full,
    Upstream(ExchangeError),
    Client(ClientFailure),
}

enum Follows {
    Body {
        /// Whether to read from the upstream as much as there is room for.
        buffered: bool,
        wanted: u64,
    },
    /// The client has the body, or does not want it.
    Nothing,
}

/// A body from the upstream into the client's buffer.
pub(super) struct Transfer {
    answered: Answered,
    /// Bytes framed and not yet written.
    bound: usize,
    /// Whether a full buffer ends the transfer, to go on through a file.
    spills: bool,
    /// Whether a client that leaves ends it while the upstream is silent.
    watching: bool,
    timeout: Duration,
    length: u64,
    /// Where the part that the client wants ends, however long the rest takes.
    wanted: u64,
}

/// For the client that asked, and for a file where `proxy_store` wants it.
pub(super) async fn pass_on(passing: &mut Passing<'_>, answered: Answered, head: &ResponseHead) -> Proxied {
    let keeping = match passing.proxy.store.place {
        Store::Off => None,
        _ if answered.needs_client() => None,
        _ => Box::pin(Keeping::begin(passing, head, &answered.connection)).await,
    };
    let Some(client) = passing.client.take() else {
        // A refresh whose response may not be stored.
        passing.note_end(&answered.connection, 0, clock::now());
        return Proxied::Done;
    };
    if let Some(keeping) = keeping {
        return match begin(passing, client, &answered.connection, head) {
            Ok(_) => Box::pin(keeping.keep(passing, client, answered)).await,
            Err(unmet) => {
                answered.discard(passing);
                Proxied::Unmet(unmet)
            }
        };
    }
    match Transfer::begin(passing, client, answered, head) {
        Ok(Some(transfer)) => transfer.finish(passing, client).await,
        Ok(None) => client.flush(passing.request).await.into(),
        Err(unmet) => Proxied::Unmet(unmet),
    }
}

fn begin(
    passing: &mut Passing<'_>,
    client: &mut Client,
    connection: &Connection,
    head: &ResponseHead,
) -> Result<Follows, Unmet> {
    let fields = head.view(connection.head_bytes());
    let buffered = buffering(&passing.proxy.exchange, fields);
    // Where it cannot be told, nobody comes here.
    let changed = rewritten(passing.request, passing.proxy, fields).ok().flatten();
    let fields = changed.as_ref().map_or(fields, Headers::view);
    let visible = visible(&passing.proxy.exchange, fields);
    let has_body = passing.request.gets_body(head.status);
    let length = match head.status {
        // An upstream's answer without a body says nothing of the length that one has in its place (RFC 9110 §8.6).
        204 => None,
        304 if passing.request.outgoing(304) != 304 => None,
        304 => announced(fields),
        _ if !passing.request.wants_body() => announced(fields),
        _ => connection.remaining(),
    };
    let fields = Fields::new(fields.bytes(), &visible);
    let withheld = withheld_conditions(passing);
    if head.status == 200 && (withheld || forced(passing.request)) {
        let validators = Validators::of(fields);
        let offer = Offer { status: 200, fields, validators, length, is_stream: true };
        let chosen = match withheld {
            true => chosen::choose(passing.request, &offer),
            false => chosen::choose_range(passing.request, &offer),
        };
        return Ok(match begin_chosen(passing, client, chosen, &offer)? {
            Extent::Nothing => Follows::Nothing,
            Extent::Part(part) => Follows::Body { buffered, wanted: part.end },
            Extent::Whole | Extent::Parts(_) => Follows::Body { buffered, wanted: u64::MAX },
        });
    }
    let status = head.status;
    client.begin(passing.request, AnswerHead { status, fields, length, age: None });
    Ok(match has_body {
        true => Follows::Body { buffered, wanted: u64::MAX },
        false => Follows::Nothing,
    })
}

/// Whether the client asked for less than the whole that was requested for the cache.
fn withheld_conditions(passing: &Passing<'_>) -> bool {
    passing.terms.cache.caching
        && passing.request.received.head.fields.iter().any(|field| is_condition(field.id))
}

fn begin_chosen(
    passing: &mut Passing<'_>,
    client: &mut Client,
    chosen: Chosen,
    offer: &Offer<'_>,
) -> Result<Extent, Unmet> {
    let headers = Headers::from(offer.fields);
    let shape = chosen.shape(passing.request, headers, 200, offer.length)?;
    shape.begin(passing.request, client, None);
    if let Extent::Part(part) = &shape.extent {
        client.skip(part.start);
    }
    Ok(shape.extent)
}

impl Transfer {
    /// `None`: the client has the body, or does not want it.
    pub(super) fn begin(
        passing: &mut Passing<'_>,
        client: &mut Client,
        answered: Answered,
        head: &ResponseHead,
    ) -> Result<Option<Transfer>, Unmet> {
        match begin(passing, client, &answered.connection, head) {
            Ok(Follows::Body { buffered, wanted }) => {
                Ok(Some(Transfer::of(passing, client, answered, buffered, wanted)))
            }
            Ok(Follows::Nothing) => {
                client.end(passing.request, None);
                answered.discard(passing);
                Ok(None)
            }
            Err(unmet) => {
                answered.discard(passing);
                Err(unmet)
            }
        }
    }

    fn of(
        passing: &Passing<'_>,
        client: &mut Client,
        answered: Answered,
        buffered: bool,
        wanted: u64,
    ) -> Transfer {
        if !buffered {
            client.unbuffered();
        }
        let exchange = &passing.proxy.exchange;
        let (count, size) = exchange.buffers;
        Transfer {
            bound: if buffered { exchange.buffer_size + count * size } else { 1 },
            spills: buffered && exchange.max_temp_file_size > 0 && answered.upward.is_none(),
            watching: passing.terms.watching,
            timeout: exchange.read_timeout,
            answered,
            length: 0,
            wanted,
        }
    }

    pub(super) async fn finish(mut self, passing: &mut Passing<'_>, client: &mut Client) -> Proxied {
        let moved = poll_fn(|context| self.poll(context, client, passing.request)).await;
        self.moved(passing, client, moved).await
    }

    pub(super) async fn moved(self, passing: &mut Passing<'_>, client: &mut Client, moved: Moved) -> Proxied {
        let length = self.length;
        match moved {
            Moved::Whole => {
                self.ended(passing, client, clock::now());
                client.flush(passing.request).await.into()
            }
            Moved::Enough => {
                client.end(passing.request, None);
                self.answered.part(passing, length);
                client.flush(passing.request).await.into()
            }
            Moved::Full => Box::pin(self.spill(passing, client)).await,
            Moved::Upstream(error) => {
                passing.broke_off(&self.answered.connection, &error, length);
                let has_length = self.answered.connection.remaining().is_some();
                drop(self);
                // A caller of gRPC is told by trailers, which may stand behind any part of a response.
                match grpc_status::behind(passing.request, error.condition().status()).filter(|_| !has_length)
                {
                    Some(trailers) => client.finish(passing.request, Some(trailers.view())).await,
                    None => client.cut(passing.request).await,
                }
                .into()
            }
            Moved::Client(failure) => {
                passing.note_end(&self.answered.connection, length, clock::now());
                Proxied::ClientFailed(failure)
            }
        }
    }

    pub(super) fn ended(self, passing: &mut Passing<'_>, client: &mut Client, now: Instant) {
        let passed = passed_trailers(passing.proxy, passing.request, self.answered.connection.trailers());
        client.end(passing.request, passed.as_ref().map(Headers::view));
        self.answered.finish(passing, self.length, now);
    }

    /// Continues through a file, once the client is too slow for the memory of one response.
    async fn spill(self, passing: &mut Passing<'_>, client: &mut Client) -> Proxied {
        let (pool, proxy) = (&passing.destination.pool, passing.proxy);
        let left = self.wanted.saturating_sub(self.length);
        let (watching, answered) = (self.watching, self.answered);
        let (ending, moved) =
            spill::through_file(client, passing.request, answered, left, watching, proxy, pool).await;
        let length = self.length + moved.length.get();
        let (traffic, ended) = (moved.traffic.get(), moved.ended.get().unwrap_or_else(clock::now));
        match ending {
            SpillEnd::Whole => {
                passing.note_traffic(traffic, length, ended);
                let trailers = moved.trailers.take();
                let trailers = trailers.as_ref().map(Headers::view);
                // Those of the whole are not a part's.
                let passed = passed_trailers(passing.proxy, passing.request, trailers)
                    .filter(|_| self.wanted == u64::MAX);
                client.finish(passing.request, passed.as_ref().map(Headers::view)).await.into()
            }
            SpillEnd::Upstream(error, connection) => {
                passing.broke_off(&connection, &error, length);
                client.cut(passing.request).await.into()
            }
            SpillEnd::Client(failure) => {
                passing.note_traffic(traffic, length, ended);
                Proxied::ClientFailed(failure)
            }
            SpillEnd::NoFile(error, answered, piece) => {
                report::lost_file(passing.request, &proxy.exchange.temp_path.path, &error);
                client.push(passing.request, &piece);
                let rest = Transfer { answered, spills: false, length, ..self };
                rest.finish(passing, client).await
            }
            SpillEnd::Unreadable(error) => {
                report::lost_file(passing.request, &proxy.exchange.temp_path.path, &error);
                client.cut(passing.request).await.into()
            }
        }
    }

    /// Do not call it after it was ready.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Client,
        request: &mut Request,
    ) -> Poll<Moved> {
        match self.answered.send_on(context, Some((&mut *client, &mut *request))) {
            Ok(()) => {}
            Err(Stuck::Client(failure)) => return Poll::Ready(Moved::Client(failure)),
            Err(Stuck::Upstream(error)) => return Poll::Ready(Moved::Upstream(error)),
        }
        loop {
            while client.queued() < self.bound {
                match self.answered.next_part() {
                    Ok(Part::Data(piece)) => {
                        self.length += piece.len() as u64;
                        client.push(request, piece);
                        if self.length >= self.wanted {
                            return Poll::Ready(Moved::Enough);
                        }
                    }
                    Ok(Part::Empty) => break,
                    Ok(Part::End) => return Poll::Ready(Moved::Whole),
                    Err(error) => return Poll::Ready(Moved::Upstream(error)),
                }
            }
            let full = client.queued() >= self.bound;
            if !full {
                match self.answered.connection.poll_fill_body(context, self.timeout) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(error)) => return Poll::Ready(Moved::Upstream(error)),
                    Poll::Pending => client.pause(),
                }
            }
            match client.poll_flush(context, request) {
                Poll::Ready(Ok(())) if full => {}
                Poll::Ready(Ok(())) if self.watching => {
                    return client.poll_gone(context).map(|()| Moved::Client(ClientFailure::Gone));
                }
                Poll::Ready(Ok(())) => return Poll::Pending,
                Poll::Ready(Err(failure)) => return Poll::Ready(Moved::Client(failure)),
                Poll::Pending if full && self.spills && !client.is_at_work() => {
                    return Poll::Ready(Moved::Full);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
