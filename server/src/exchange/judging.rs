//! What an answer is good for: whether it goes on as it is, whether the stale entry stands in for it, whether it may be
//! stored and on which terms. Nothing is sent or stored here.

use super::answered::Answered;
use super::{Filling, Passing, Proxied, answer_head, learning, request_head, unkeyed};
use crate::caching::{keyed, tagged};
use crate::counting;
use crate::intercepted;
use crate::shows::Shows;
use crate::variables::any_holds;
use millstream_cache::policy::{self, Lifetime, Reason, RequestFacts, Storable};
use millstream_cache::{Hit, Now, StaleCause, Tags};
use millstream_conf::model::ProxyCache;
use millstream_telemetry::metrics::Cause;
use millstream_upstream::Connection;
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{FieldId, Fields, Headers, Method};
use std::rc::Rc;

impl Passing<'_> {
    pub(super) fn stale_covers(&self, cause: StaleCause) -> bool {
        match (&self.terms.cache.stale, &self.proxy.cache) {
            (Some(stale), Some(cache)) => {
                let now = Now::read();
                !self.request.is_cut_off(cache, now) && stale.entry.may_serve_stale(cause, cache, now)
            }
            _ => false,
        }
    }

    pub(super) fn set_aside(&self, connection: &Connection, head: &ResponseHead) -> Option<Proxied> {
        let status = head.status;
        if status >= 400 && self.stale_covers(StaleCause::Status(status)) {
            return Some(Proxied::Stale(status));
        }
        if self.is_read() && intercepted::gets_page(self.request, status) {
            return Some(Proxied::Intercepted(status));
        }
        let redirect = head.view(connection.head_bytes()).get(FieldId::XAccelRedirect);
        match redirect {
            // Also if nobody reads it: its own body is never a response, so it must not be stored.
            Some(uri) if !self.proxy.exchange.ignore_headers.x_accel_redirect => {
                Some(Proxied::Redirect(uri.to_vec()))
            }
            _ => None,
        }
    }

    /// Whether anyone reads the response besides the cache.
    fn is_read(&self) -> bool {
        self.client.is_some() || self.terms.cache.tap.is_some()
    }

    /// Whether the response to a waiting client is read through a fill: it is the requested slice.
    pub(super) fn is_opened(&self, status: u16) -> bool {
        self.terms.cache.tap.is_some()
            && (self.client.is_none() || status == 206 && self.request.cache.names_slice.get())
    }

    /// Whether the response needs no special handling.
    pub(super) fn is_plain(&self, connection: &Connection, head: &ResponseHead) -> bool {
        let fields = head.view(connection.head_bytes());
        matches!(head.status, 200..400)
            // To CONNECT a success says more than the response means (RFC 8441 §5).
            && !self.request.is_extended_connect()
            && !policy::invalidates(self.request.method, head.status)
            && !answer_head::may_be_rewritten(self.proxy, fields)
            && self.set_aside(connection, head).is_none()
    }

    /// Whether to revalidate the stale entry. A 304 means 200 (RFC 9110 §13.1.3), so it cannot confirm a
    /// stored 404.
    pub(super) fn revalidates(&self) -> bool {
        self.terms.cache.stale.as_ref().is_some_and(|stale| matches!(stale.entry.head().status, 200 | 206))
            && self.proxy.cache.as_ref().is_some_and(|cache| cache.revalidate)
    }

    /// After a 304 to our condition: updates the entry's fields (RFC 9111 §4.3.4), if the 304 refers to it.
    pub(super) fn confirmed(&mut self, filling: Filling, stale: &Rc<Hit>, fields: Fields<'_>) -> Proxied {
        let entry = &stale.entry;
        if !learning::confirms(entry, fields) {
            // Of something else than what is stored: nothing here is what the upstream has now.
            return Proxied::Again(filling);
        }
        let (Filling::Permit(permit), Some(cache)) = (filling, &self.proxy.cache) else {
            return Proxied::Revalidated(entry.clone());
        };
        let now = Now::read();
        let headers: Headers = entry.head().updated(fields);
        let as_stored = (entry.head().status, entry.head().part.is_some());
        match self.storable_as(cache, self.asked_method(), as_stored, headers.view(), now) {
            Storable::Yes(lifetime) => {
                self.report_stored(&lifetime, now);
                Proxied::Revalidated(permit.refresh(entry, headers, lifetime, now))
            }
            Storable::No(reason) => {
                self.report_not_stored(reason);
                let replaces = cache.credentials.is_public() && reason.replaces(as_stored.0);
                Proxied::Revalidated(permit.spent(entry, headers, (reason, replaces), now))
            }
        }
    }

    pub(super) fn terms_of(
        &self,
        answered: &Answered,
        cache: &ProxyCache,
        answer: (u16, bool),
        fields: Fields<'_>,
        now: Now,
    ) -> Result<(Lifetime, Tags), Reason> {
        if answered.needs_client() {
            return Err(Reason::RequestBody);
        }
        match self.storable_as(cache, self.asked_method(), answer, fields, now) {
            Storable::Yes(_) if unkeyed::asks_for_unnamed_form(self.request.fields(), cache, fields) => {
                Err(Reason::Unnamed)
            }
            Storable::Yes(lifetime) => {
                let tags = tagged::tags(self.request, cache, fields).ok_or(Reason::TooManyTags)?;
                Ok((lifetime, tags))
            }
            Storable::No(reason) => Err(reason),
        }
    }

    fn asked_method(&self) -> Method {
        if self.terms.cache.caching && self.request.method == Method::Head {
            Method::Get
        } else {
            self.request.method
        }
    }

    /// For this method; the flag is a 206 with a known range.
    pub(super) fn storable_as(
        &self,
        cache: &ProxyCache,
        method: Method,
        (status, partial): (u16, bool),
        fields: Fields<'_>,
        now: Now,
    ) -> Storable {
        let facts = RequestFacts {
            method,
            has_authorization: request_head::has_credential(self.request, self.proxy)
                && !cache.key_names_credential
                || keyed::hands_on_authorization(self.request, cache),
            asker: self.request.cache.asker,
            chosen_by_address: cache.vary.address && keyed::is_chosen(self.request, cache, Shows::ADDRESS),
            delay: millstream_net::clock::now().saturating_duration_since(self.terms.asked_at),
            partial,
            is_of_target: learning::is_of_target(self, fields),
        };
        let no_cache = any_holds(&cache.no_cache, self.request);
        policy::storable(cache, &self.proxy.exchange.ignore_headers, &facts, status, fields, now, no_cache)
    }

    pub(super) fn report_stored(&mut self, lifetime: &Lifetime, now: Now) {
        if let Some(report) = &mut self.request.cache.report {
            report.stored = true;
            report.note_lifetime(lifetime, now);
        }
    }

    pub(super) fn report_not_stored(&mut self, reason: Reason) {
        if let Some(cause) = Cause::not_stored(reason.name()) {
            counting::not_stored(self.request, cause);
        }
        if let Some(report) = &mut self.request.cache.report {
            report.detail = Some(reason.name());
        }
    }
}
