//! An answer passed to the client as it comes, stored nowhere.
//!
//! A small answer is framed whole into the client's buffer and leaves in one write. With buffering on, the upstream is
//! read ahead of a slow client: `proxy_buffer_size` and `proxy_buffers` bytes in memory, the rest in a file (`spill`), so
//! that it is soon free again. With buffering off each piece goes out before the next is read.

use super::answer_head::{announced, buffering, rewritten, visible, visible_behind};
use super::request_body::RequestBody;
use super::request_head::is_condition;
use super::spill::{self, Exchange};
use super::upward::{Stuck, Upward};
use super::{Passing, Proxied, report};
use crate::client::{AnswerHead, Client, ClientFailure};
use crate::grpc_status;
use crate::representation::chosen::{self, Chosen, Extent, Offer, Unmet, forced};
use crate::request::Request;
use millstream_conf::model::{Level, Store};
use millstream_net::clock;
use millstream_upstream::{Connection, ExchangeError, Part, Turn};
use millstream_wire::conditional::Validators;
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Headers};
use std::future::poll_fn;
use std::io;
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

pub(super) enum Follows {
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
    pub(super) connection: Box<Connection>,
    pub(super) turn: Turn,
    /// Bytes framed and not yet written.
    bound: usize,
    /// Whether a full buffer ends the transfer, to go on through a file.
    spills: bool,
    /// Whether a client that leaves ends it while the upstream is silent.
    watching: bool,
    timeout: Duration,
    /// The rest of the request's body, if sent during the response, and the upstream's timeout for it.
    upward: Option<Box<Upward>>,
    send_timeout: Duration,
    pub(super) length: u64,
    /// Where the part that the client wants ends, however long the rest takes.
    wanted: u64,
}

impl<'a> Passing<'a> {
    pub(super) async fn transfer(
        &mut self,
        connection: Box<Connection>,
        turn: Turn,
        head: &mut ResponseHead,
    ) -> Proxied {
        let keeping = match self.proxy.store.place {
            Store::Off => None,
            _ => Box::pin(self.keeps(head, &connection)).await,
        };
        let Some(client) = self.client.take() else {
            // A refresh whose answer may not be stored.
            self.note_end(&connection, 0, clock::now());
            return Proxied::Done;
        };
        let follows = match self.begin(client, &connection, head) {
            Ok(follows) => follows,
            Err(unmet) => {
                self.discard(connection, turn);
                return Proxied::Unmet(unmet);
            }
        };
        if let Some(keeping) = keeping {
            return Box::pin(self.keep(client, connection, turn, keeping)).await;
        }
        let Follows::Body { buffered, wanted } = follows else {
            client.end(self.request, None);
            self.discard(connection, turn);
            return flushed(client, self.request).await;
        };
        let transfer = self.body_on_its_way(client, (connection, turn), buffered, wanted);
        self.pass_body(client, transfer).await
    }

    pub(super) fn body_on_its_way(
        &self,
        client: &mut Client,
        (connection, turn): Exchange,
        buffered: bool,
        wanted: u64,
    ) -> Transfer {
        if !buffered {
            client.unbuffered();
        }
        let exchange = &self.proxy.exchange;
        let (count, size) = exchange.buffers;
        let is_streamed = matches!(self.body, RequestBody::Stream { .. });
        let upward = (is_streamed && connection.is_both_ways()).then(Box::<Upward>::default);
        Transfer {
            connection,
            turn,
            bound: if buffered { exchange.buffer_size + count * size } else { 1 },
            spills: buffered && exchange.max_temp_file_size > 0 && upward.is_none(),
            watching: self.watching,
            timeout: exchange.read_timeout,
            upward,
            send_timeout: exchange.send_timeout,
            length: 0,
            wanted,
        }
    }

    pub(super) async fn pass_body(&mut self, client: &mut Client, mut transfer: Transfer) -> Proxied {
        let moved = poll_fn(|context| transfer.poll(context, client, self.request)).await;
        self.moved(client, transfer, moved).await
    }

    pub(super) async fn moved(&mut self, client: &mut Client, transfer: Transfer, moved: Moved) -> Proxied {
        let length = transfer.length;
        match moved {
            Moved::Whole => {
                self.ended(client, transfer, clock::now());
                flushed(client, self.request).await
            }
            Moved::Enough => {
                client.end(self.request, None);
                self.part_with(transfer.connection, transfer.turn, length);
                flushed(client, self.request).await
            }
            Moved::Full => Box::pin(self.spill(client, transfer)).await,
            Moved::Upstream(error) => {
                self.broke_off(&transfer.connection, &error, length);
                let has_length = transfer.connection.remaining().is_some();
                drop(transfer);
                // A caller of gRPC is told by trailers, which may stand behind any part of an answer.
                match grpc_status::behind(self.request, error.condition().status()).filter(|_| !has_length) {
                    Some(trailers) => {
                        client.end(self.request, Some(trailers.view()));
                        flushed(client, self.request).await
                    }
                    None => cut(client, self.request).await,
                }
            }
            Moved::Client(failure) => {
                self.note_end(&transfer.connection, length, clock::now());
                Proxied::ClientFailed(failure)
            }
        }
    }

    pub(super) fn ended(&mut self, client: &mut Client, transfer: Transfer, now: Instant) {
        let Transfer { connection, turn, length, .. } = transfer;
        let trailers = connection.trailers().filter(|trailers| !trailers.is_empty());
        if let Some(trailers) = trailers {
            self.request.tries.trailers = Some(Headers::copied_from(trailers, |_, _, _| true));
        }
        let passed = trailers.filter(|_| self.proxy.passes_trailers());
        let passed = passed
            .map(|all| visible_behind(&self.proxy.exchange, all))
            .filter(|some| !some.view().is_empty());
        client.end(self.request, passed.as_ref().map(Headers::view));
        self.finished(connection, turn, length, now);
    }

    pub(super) fn begin(
        &mut self,
        client: &mut Client,
        connection: &Connection,
        head: &ResponseHead,
    ) -> Result<Follows, Unmet> {
        let fields = head.view(connection.head_bytes());
        let buffered = buffering(&self.proxy.exchange, fields);
        // Where it cannot be told, nobody comes here.
        let changed = rewritten(self.request, self.proxy, fields).ok().flatten();
        let fields = changed.as_ref().map_or(fields, Headers::view);
        let visible = visible(&self.proxy.exchange, fields);
        let has_body = self.request.gets_body(head.status);
        let length = match head.status {
            // An upstream's answer without a body says nothing of the length that one has in its place (RFC 9110 §8.6).
            204 => None,
            304 if self.request.outgoing(304) != 304 => None,
            304 => announced(fields),
            _ if !self.request.wants_body() => announced(fields),
            _ => connection.remaining(),
        };
        let fields = Fields::new(fields.bytes(), &visible);
        let withheld = self.withheld_conditions();
        if head.status == 200 && (withheld || forced(self.request)) {
            let validators = Validators::of(fields);
            let offer = Offer { status: 200, fields, validators, length, is_stream: true };
            let chosen = match withheld {
                true => chosen::choose(self.request, &offer),
                false => chosen::choose_range(self.request, &offer),
            };
            return Ok(match self.begin_chosen(client, chosen, &offer)? {
                Extent::Nothing => Follows::Nothing,
                Extent::Part(part) => Follows::Body { buffered, wanted: part.end },
                Extent::Whole | Extent::Parts(_) => Follows::Body { buffered, wanted: u64::MAX },
            });
        }
        let status = head.status;
        client.begin(self.request, AnswerHead { status, fields, length, age: None });
        Ok(match has_body {
            true => Follows::Body { buffered, wanted: u64::MAX },
            false => Follows::Nothing,
        })
    }

    /// Whether the client asked for less than the whole that was requested for the cache.
    fn withheld_conditions(&self) -> bool {
        self.caching && self.request.received.head.fields.iter().any(|field| is_condition(field.id))
    }

    fn begin_chosen(
        &mut self,
        client: &mut Client,
        chosen: Chosen,
        offer: &Offer<'_>,
    ) -> Result<Extent, Unmet> {
        let headers = Headers::copied_from(offer.fields, |_, _, _| true);
        let shape = chosen.shape(self.request, headers, 200, offer.length)?;
        shape.begin(self.request, client, None);
        if let Extent::Part(part) = &shape.extent {
            client.skip(part.start);
        }
        Ok(shape.extent)
    }

    pub(super) fn discard(&mut self, connection: Box<Connection>, turn: Turn) {
        self.part_with(connection, turn, 0);
    }

    /// Drops the body beyond this length. The connection is kept if the rest has arrived.
    fn part_with(&mut self, mut connection: Box<Connection>, turn: Turn, length: u64) {
        connection.pass_over();
        self.finished(connection, turn, length, clock::now());
    }

    /// Continues through a file, once the client is too slow for the memory of one response.
    async fn spill(&mut self, client: &mut Client, transfer: Transfer) -> Proxied {
        let Transfer { connection, turn, length, bound, watching, timeout, send_timeout, wanted, .. } =
            transfer;
        let (pool, proxy) = (&self.destination.pool, self.proxy);
        let exchange = (connection, turn);
        let moved =
            spill::through_file(client, self.request, exchange, wanted.saturating_sub(length), proxy, pool)
                .await;
        let length = length + moved.length;
        match moved.ending {
            spill::SpillEnd::Whole => {
                if let Some(last) = self.request.tries.list.last_mut() {
                    let time = moved.ended.saturating_duration_since(self.asked_at);
                    last.ended(time, length, moved.traffic);
                }
                client.end(self.request, None);
                flushed(client, self.request).await
            }
            spill::SpillEnd::Upstream(error, connection) => {
                self.broke_off(&connection, &error, length);
                cut(client, self.request).await
            }
            spill::SpillEnd::Client(failure) => Proxied::ClientFailed(failure),
            spill::SpillEnd::NoFile(error, (connection, turn), piece) => {
                self.complain_of_file(&error);
                client.push(self.request, &piece);
                let rest = Transfer {
                    connection,
                    turn,
                    bound,
                    spills: false,
                    watching,
                    timeout,
                    upward: None,
                    send_timeout,
                    length,
                    wanted,
                };
                self.pass_body(client, rest).await
            }
            spill::SpillEnd::Unreadable(error) => {
                self.complain_of_file(&error);
                cut(client, self.request).await
            }
        }
    }

    fn complain_of_file(&self, error: &io::Error) {
        let folder = self.proxy.exchange.temp_path.path.display();
        let what = format_args!("temporary file in \"{folder}\" failed: {error}");
        report::write(self.request, Level::Crit, what, None);
    }
}

impl Transfer {
    /// Do not call it after it was ready.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Client,
        request: &mut Request,
    ) -> Poll<Moved> {
        if let Some(upward) = &mut self.upward {
            match upward.poll(context, (client, request), &mut self.connection, self.send_timeout) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.upward = None,
                Poll::Ready(Err(Stuck::Client(failure))) => return Poll::Ready(Moved::Client(failure)),
                Poll::Ready(Err(Stuck::Upstream(error))) => return Poll::Ready(Moved::Upstream(error)),
            }
        }
        loop {
            while client.queued() < self.bound {
                match self.connection.next_part() {
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
                match self.connection.poll_fill_body(context, self.timeout) {
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

pub(super) async fn flushed(client: &mut Client, request: &mut Request) -> Proxied {
    match client.flush(request).await {
        Ok(()) => Proxied::Done,
        Err(failure) => Proxied::ClientFailed(failure),
    }
}

pub(super) async fn cut(client: &mut Client, request: &mut Request) -> Proxied {
    client.abandon();
    request.keep_alive = false;
    flushed(client, request).await
}
