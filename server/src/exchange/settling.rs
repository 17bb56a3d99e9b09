//! What is done with a response whose head has come: put aside for a page, taken for what is stored, kept, or passed on.
//!
//! Nothing was sent to the client yet. Next: `judging`, what it is good for; `filling`, `transfer`, `tunnel` and `combining`, the
//! ways of its body.

use super::answered::Answered;
use super::filling::{begun, fill, keep_behind_page};
use super::learning::{learn, permit};
use super::{Filling, Passing, Proxied, alone, answer_head, combining, transfer, tunnel};
use crate::caching::invalidation;
use crate::intercepted;
use millstream_cache::policy::{self, Reason};
use millstream_cache::{Fill, FillPermit, Now, StoredHead};
use millstream_conf::model::Store;
use millstream_upstream::Condition;
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{Fields, Headers};

impl Answered {
    pub(super) async fn settle(
        mut self,
        passing: &mut Passing<'_>,
        filling: Filling,
        head: &mut ResponseHead,
    ) -> Proxied {
        if let Some(report) = &mut passing.request.cache.report {
            report.forward_status = Some(head.status);
        }
        if passing.terms.cache.caching
            && let Some(client) = passing.client.as_deref_mut()
            && client.has_left().await
        {
            // The response is stored all the same.
            passing.client = None;
            passing.terms.left = true;
        }
        passing.report_tls(&self.connection, head.status);
        if head.status == 101 {
            // It lives as long as the client likes, and nobody else can have it.
            alone(filling, None);
            return Box::pin(tunnel::open(passing, self, head)).await;
        }
        let filling = match (filling, passing.terms.cache.rest.take()) {
            (Filling::Permit(permit), Some(rest)) if matches!(head.status, 206 | 416) => {
                return Box::pin(combining::combine(passing, self, head, permit, rest)).await;
            }
            (filling, _) => filling,
        };
        self.heed(passing, head);
        if let Some(outcome) = passing.set_aside(&self.connection, head) {
            return self.put_aside(passing, filling, head, outcome).await;
        }
        if head.status == 304
            && let Some(stale) = passing.terms.cache.stale.clone()
            && passing.revalidates()
        {
            let outcome = passing.confirmed(filling, &stale, self.fields(head));
            self.discard(passing);
            return outcome;
        }
        // To who asked by CONNECT any success says that the other protocol is spoken (RFC 8441 §5).
        if passing.request.is_extended_connect() && matches!(head.status, 200..=299) {
            passing.report_no_websocket(&self.connection, head.status);
            return self.withhold(passing, filling, 502);
        }
        self.pass(passing, head, filling).await
    }

    async fn put_aside(
        self,
        passing: &mut Passing<'_>,
        filling: Filling,
        head: &ResponseHead,
        outcome: Proxied,
    ) -> Proxied {
        // What the request has done is done, whatever the client is answered.
        let fields = self.fields(head);
        let rewritten = answer_head::rewritten(passing.request, passing.proxy, fields).ok().flatten();
        let fields = rewritten.as_ref().map_or(fields, Headers::view);
        Box::pin(invalidation::after(passing.request, head.status, fields, None)).await;
        match outcome {
            Proxied::Redirect(_) => answer_head::hand_on(passing.request, fields),
            Proxied::Intercepted(status) => intercepted::keep_beside_page(passing.request, status, fields),
            _ => {}
        }
        match outcome {
            Proxied::Intercepted(_) if passing.client.is_some() => {
                keep_behind_page(passing, self, head, filling);
                return outcome;
            }
            Proxied::Intercepted(..500) | Proxied::Redirect(_) => alone(filling, None),
            // The stale entry stands in, as it does after any other failure.
            _ => passing.failed(filling, Condition::Status(head.status)),
        }
        self.discard(passing);
        outcome
    }

    async fn pass(self, passing: &mut Passing<'_>, head: &mut ResponseHead, filling: Filling) -> Proxied {
        // A slow client must not hold it.
        let had_stale = passing.terms.cache.stale.take().is_some();
        let filling = match filling {
            Filling::Along(permit) => {
                return Box::pin(self.along(passing, head, Some(permit), None)).await;
            }
            Filling::Check(_) => return Box::pin(self.along(passing, head, None, None)).await,
            filling => filling,
        };
        let rewritten = match answer_head::rewritten(passing.request, passing.proxy, self.fields(head)) {
            Ok(rewritten) => rewritten,
            Err(status) => return self.withhold(passing, filling, status),
        };
        let fields = rewritten.as_ref().map_or(self.fields(head), Headers::view);
        let as_asked = matches!(filling, Filling::Part(_));
        let mut permit = permit(passing, filling, head.status, fields);
        if policy::invalidates(passing.request.method, head.status) {
            // Before the client hears of it: its next request must not find what is no longer true.
            Box::pin(invalidation::after(passing.request, head.status, fields, permit.as_mut())).await;
        }
        learn(passing, head.status, fields);
        if let (Some(permit), Some(cache)) = (permit, &passing.proxy.cache) {
            let now = Now::read();
            let part = combining::part(head.status, fields, self.connection.remaining())
                .filter(|_| as_asked || passing.request.cache.slice.is_some());
            let terms = if passing.request.cache.slice.is_some() && combining::fits_nothing(part, fields) {
                Err(Reason::NoValidator)
            } else {
                passing.terms_of(&self, cache, (head.status, part.is_some()), fields, now)
            };
            match terms {
                Ok(terms) => {
                    if StoredHead::leaves_out(fields) {
                        let visible = answer_head::visible(&passing.proxy.exchange, fields);
                        let own = Headers::from(Fields::new(fields.bytes(), &visible));
                        passing.request.reply.own_head = Some(Box::new(own));
                    }
                    let answer = (head.status, fields, self.connection.remaining(), part);
                    let begun = begun(passing, permit, terms, answer, now);
                    return Box::pin(fill(passing, self, begun, None)).await;
                }
                Err(reason) => {
                    passing.report_not_stored(reason);
                    if passing.terms.cache.tap.is_some() {
                        return Box::pin(self.along(passing, head, Some(permit), Some(reason))).await;
                    }
                    // Of a part nobody waits for another, and the next waiter may find a failing upstream well again;
                    // any other answer says that waiting is no use.
                    match head.status {
                        500.. => passing.failed(Filling::Permit(permit), Condition::Status(head.status)),
                        _ if as_asked => drop(permit),
                        status if had_stale && cache.credentials.is_public() && reason.replaces(status) => {
                            permit.replaced(reason, now);
                        }
                        _ => permit.uncacheable(Some(reason), now),
                    }
                }
            }
        }
        if passing.is_opened(head.status) {
            return Box::pin(self.along(passing, head, None, None)).await;
        }
        // From here only this client reads the response: if it leaves, the upstream is released.
        let proxy = passing.proxy;
        passing.terms.watching = !proxy.exchange.ignore_client_abort && proxy.store.place == Store::Off;
        transfer::pass_on(passing, self, head).await
    }

    fn withhold(self, passing: &mut Passing<'_>, filling: Filling, status: u16) -> Proxied {
        passing.failed(filling, Condition::Status(status));
        self.discard(passing);
        Proxied::Failed(status)
    }

    /// Passes an unstored response to the reader of its fill; `reason` is why it is not stored.
    async fn along(
        self,
        passing: &mut Passing<'_>,
        head: &ResponseHead,
        permit: Option<FillPermit>,
        reason: Option<Reason>,
    ) -> Proxied {
        let rewritten = match answer_head::rewritten(passing.request, passing.proxy, self.fields(head)) {
            Ok(rewritten) => rewritten,
            Err(status) => {
                let filling = permit.map_or(Filling::No, Filling::Permit);
                return self.withhold(passing, filling, status);
            }
        };
        let (fields, now) = (rewritten.as_ref().map_or(self.fields(head), Headers::view), Now::read());
        if let Some(permit) = permit {
            permit.uncacheable(reason, now);
        }
        let begun = Fill::along(head.status, fields, self.connection.remaining(), now);
        fill(passing, self, begun, None).await
    }
}
