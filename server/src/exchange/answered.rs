//! What is done with an answer whose head has come: put aside for a page, taken for what is stored, kept, or passed on.
//!
//! Nothing was sent to the client yet. Before: `attempt`; next: `judging`, what it is good for; `filling`, `transfer`, `tunnel` and
//! `combining`, the ways of its body.

use super::attempt::AcceptedAnswer;
use super::{Filling, Passing, Proxied, alone, answer_head, combining};
use crate::caching::invalidation;
use crate::filter::charset;
use crate::intercepted;
use crate::limits;
use millstream_cache::policy::{self, Reason};
use millstream_cache::{Fill, FillPermit, Now, StoredHead};
use millstream_conf::model::{RequestSize, Store};
use millstream_upstream::{Condition, Connection, Turn};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Headers};

impl Passing<'_> {
    pub(super) async fn answered(
        &mut self,
        AcceptedAnswer { mut connection, turn }: AcceptedAnswer,
        filling: Filling,
        head: &mut ResponseHead,
    ) -> Proxied {
        if let Some(report) = &mut self.request.cache.report {
            report.forward_status = Some(head.status);
        }
        if self.caching
            && let Some(client) = self.client.as_deref_mut()
            && client.has_left().await
        {
            // The answer is stored all the same.
            self.client = None;
            self.left = true;
        }
        self.report_tls(&connection, head.status);
        if head.status == 101 {
            // It lives as long as the client likes, and nobody else can have it.
            alone(filling, None);
            return Box::pin(self.tunnel(connection, turn, head)).await;
        }
        let filling = match (filling, self.rest.take()) {
            (Filling::Permit(permit), Some(rest)) if matches!(head.status, 206 | 416) => {
                return Box::pin(self.combine(connection, turn, head, permit, rest)).await;
            }
            (filling, _) => filling,
        };
        self.take_limit_rate(head.view(connection.head_bytes()));
        charset::take(self.request, head.view(connection.head_bytes()));
        self.limit_rate(&mut connection);
        if let Some(outcome) = self.set_aside(&connection, head) {
            // What the request has done is done, whatever the client is answered.
            let fields = head.view(connection.head_bytes());
            let rewritten = answer_head::rewritten(self.request, self.proxy, fields).ok().flatten();
            let fields = rewritten.as_ref().map_or(fields, Headers::view);
            Box::pin(invalidation::after(self.request, head.status, fields, None)).await;
            match outcome {
                Proxied::Redirect(_) => answer_head::hand_on(self.request, fields),
                Proxied::Intercepted(status) => intercepted::keep_beside_page(self.request, status, fields),
                _ => {}
            }
            match outcome {
                Proxied::Intercepted(_) if self.client.is_some() => {
                    self.keep_behind_page(connection, turn, head, filling);
                    return outcome;
                }
                Proxied::Intercepted(..500) | Proxied::Redirect(_) => alone(filling, None),
                // The stale entry stands in, as it does after any other failure.
                _ => self.failed(filling, Condition::Status(head.status)),
            }
            self.discard(connection, turn);
            return outcome;
        }
        if head.status == 304
            && let Some(stale) = self.stale.clone()
            && self.revalidates()
        {
            let outcome = self.confirmed(filling, &stale, head.view(connection.head_bytes()));
            self.discard(connection, turn);
            return outcome;
        }
        // To who asked by CONNECT any success says that the other protocol is spoken (RFC 8441 §5).
        if self.request.is_extended_connect() && matches!(head.status, 200..=299) {
            self.report_no_websocket(&connection, head.status);
            return self.withheld(filling, connection, turn, 502);
        }
        self.pass(connection, turn, head, filling).await
    }

    /// `X-Accel-Limit-Rate`, also with `X-Accel-Redirect`.
    pub(super) fn take_limit_rate(&mut self, fields: Fields<'_>) {
        if let Some(rate) = answer_head::limit_rate(&self.proxy.exchange, fields) {
            self.request.reply.limit_rate = Some(rate);
        }
    }

    /// `proxy_limit_rate`; as in nginx only for buffered responses.
    pub(super) fn limit_rate(&self, connection: &mut Connection) {
        let exchange = &self.proxy.exchange;
        if exchange.buffering && exchange.limit_rate != RequestSize::Fixed(0) {
            let rate = limits::limit_rate::bytes(&exchange.limit_rate, self.request);
            if rate > 0 {
                connection.limit_rate(rate);
            }
        }
    }

    async fn pass(
        &mut self,
        connection: Box<Connection>,
        turn: Turn,
        head: &mut ResponseHead,
        filling: Filling,
    ) -> Proxied {
        // A slow client must not hold it.
        let had_stale = self.stale.take().is_some();
        if let Filling::Along(permit) = filling {
            return Box::pin(self.along(connection, turn, head, Some(permit), None)).await;
        }
        let fields = head.view(connection.head_bytes());
        let rewritten = match answer_head::rewritten(self.request, self.proxy, fields) {
            Ok(rewritten) => rewritten,
            Err(status) => return self.withheld(filling, connection, turn, status),
        };
        let fields = rewritten.as_ref().map_or(fields, Headers::view);
        let as_asked = matches!(filling, Filling::Part(_));
        let mut permit = self.permit(filling, head.status, fields);
        if policy::invalidates(self.request.method, head.status) {
            // Before the client hears of it: its next request must not find what is no longer true.
            Box::pin(invalidation::after(self.request, head.status, fields, permit.as_mut())).await;
        }
        self.learn(head.status, fields);
        if let (Some(permit), Some(cache)) = (permit, &self.proxy.cache) {
            let now = Now::read();
            let part = combining::part(head.status, fields, connection.remaining())
                .filter(|_| as_asked || self.request.cache.slice.is_some());
            let terms = if self.request.cache.slice.is_some() && combining::fits_nothing(part, fields) {
                Err(Reason::NoValidator)
            } else {
                self.terms(cache, (head.status, part.is_some()), fields, now)
            };
            match terms {
                Ok(terms) => {
                    if StoredHead::leaves_out(fields) {
                        let visible = answer_head::visible(&self.proxy.exchange, fields);
                        let own = Headers::copied_from(Fields::new(fields.bytes(), &visible), |_, _, _| true);
                        self.request.reply.own_head = Some(Box::new(own));
                    }
                    let answer = (head.status, fields, connection.remaining(), part);
                    let fill = self.begin_fill(permit, terms, answer, now);
                    return Box::pin(self.fill(connection, turn, fill, None)).await;
                }
                Err(reason) => {
                    self.report_not_stored(reason);
                    if self.tap.is_some() {
                        return Box::pin(self.along(connection, turn, head, Some(permit), Some(reason)))
                            .await;
                    }
                    // Of a part nobody waits for another, and the next waiter may find a failing upstream well again;
                    // any other answer says that waiting is no use.
                    match head.status {
                        500.. => self.failed(Filling::Permit(permit), Condition::Status(head.status)),
                        _ if as_asked => drop(permit),
                        status if had_stale && cache.credentials.is_public() && reason.replaces(status) => {
                            permit.replaced(reason, now);
                        }
                        _ => permit.uncacheable(Some(reason), now),
                    }
                }
            }
        }
        if self.is_opened(head.status) {
            return Box::pin(self.along(connection, turn, head, None, None)).await;
        }
        self.watch();
        self.transfer(connection, turn, head).await
    }

    /// Whether the response to a waiting client is read through a fill: it is the requested slice.
    fn is_opened(&self, status: u16) -> bool {
        self.tap.is_some() && (self.client.is_none() || status == 206 && self.request.cache.names_slice.get())
    }

    /// From here only this client reads the response: if it leaves, the upstream is released.
    fn watch(&mut self) {
        self.watching = !self.proxy.exchange.ignore_client_abort && self.proxy.store.place == Store::Off;
    }

    fn withheld(
        &mut self,
        filling: Filling,
        connection: Box<Connection>,
        turn: Turn,
        status: u16,
    ) -> Proxied {
        self.failed(filling, Condition::Status(status));
        self.discard(connection, turn);
        Proxied::Failed(status)
    }

    /// Passes an unstored response to the reader of its fill; `reason` is why it is not stored.
    async fn along(
        &mut self,
        connection: Box<Connection>,
        turn: Turn,
        head: &ResponseHead,
        permit: Option<FillPermit>,
        reason: Option<Reason>,
    ) -> Proxied {
        let fields = head.view(connection.head_bytes());
        let rewritten = match answer_head::rewritten(self.request, self.proxy, fields) {
            Ok(rewritten) => rewritten,
            Err(status) => {
                let filling = permit.map_or(Filling::No, Filling::Permit);
                return self.withheld(filling, connection, turn, status);
            }
        };
        let (fields, now) = (rewritten.as_ref().map_or(fields, Headers::view), Now::read());
        if let Some(permit) = permit {
            permit.uncacheable(reason, now);
        }
        let fill = Fill::along(head.status, fields, connection.remaining(), now);
        self.fill(connection, turn, fill, None).await
    }
}
