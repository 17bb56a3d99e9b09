//! An accepted connection, whatever is spoken on it: where it came to, the configuration that serves it, how its requests begin and end,
//! and how both are counted.
//!
//! It reads and writes nothing. Next: `opening`, which makes one; `h1` and `h2`, which speak.

use super::spare;
use crate::access_log;
use crate::counting;
use crate::generation::Generation;
use crate::loop_lag;
use crate::request::{ConnectionFacts, Request};
use crate::tracing;
use crate::worker::Worker;
use millstream_conf::model::{ListenAddress, Server, Settings};
use millstream_net::clock;
use millstream_net::timer::within;
use millstream_telemetry::log_writer::Ticket;
use millstream_telemetry::metrics::{Counter, Gauge, WorkerMetrics};
use millstream_wire::h1::head::{HeadLimits, RequestHead};
use millstream_wire::{FieldId, host};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time that a connection stays open for its line to be logged.
const LOG_WAIT: Duration = Duration::from_millis(250);

/// A graceful stop, or a reload without its listener, keeps an idle connection this long after its last use:
/// the next request may be on its way.
pub(super) const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// The same if the client owes something: a connection's first request, or the response to a PING (RFC 9113
/// §6.8). It may be far away, or busy.
pub(super) const DRAIN_PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Accepted {
    pub(super) worker: Rc<Worker>,
    pub(super) facts: Rc<ConnectionFacts>,
    pub(super) address: Rc<ListenAddress>,
    /// The newest configuration that listens on `address`; used for the next request.
    pub(super) generation: Rc<Generation>,
    /// A reload removed the listener: what is on its way is served, nothing after it.
    pub(super) is_leaving: bool,
    pub(super) last_used: Instant,
    pub(super) counted: Counted,
    ticket: Option<Ticket>,
}

impl Accepted {
    pub(super) fn new(
        worker: Rc<Worker>,
        facts: Rc<ConnectionFacts>,
        address: Rc<ListenAddress>,
        generation: Rc<Generation>,
    ) -> Accepted {
        let (counted, last_used) = (Counted::new(worker.metrics.clone()), clock::now());
        Accepted { worker, facts, address, generation, is_leaving: false, last_used, counted, ticket: None }
    }

    /// Switches to the configuration in force, unless it no longer listens on this address.
    pub(super) fn follow_generation(&mut self) {
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

    pub(super) fn server(&self) -> &Server {
        let http = self.generation.http();
        http.server(http.listeners[self.facts.listener.get()].default_server)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.generation.http().location(self.server().own).settings
    }

    pub(super) fn head_limits(&self) -> HeadLimits {
        limits_of(self.server())
    }

    /// If the server named in an incomplete head allows more, as in nginx.
    pub(super) fn wider_limits(&self, head: &RequestHead, bytes: &[u8]) -> Option<HeadLimits> {
        let field = head.fields.iter().find(|field| field.id == FieldId::Host)?;
        let host = host::validate(field.value.of(bytes)).ok()?.host.to_ascii_lowercase();
        let hosts = &self.generation.shared.hosts[self.facts.listener.get()];
        let (server, _) = hosts.find(host.strip_suffix(b".").unwrap_or(&host)).ok()?;
        let (own, named) = (self.head_limits(), limits_of(self.generation.http().server(server)));
        let wider = HeadLimits {
            line: own.line.max(named.line),
            total: own.total.max(named.total),
            fields: own.fields.max(named.fields),
        };
        (wider != own).then_some(wider)
    }

    pub(super) fn new_request(&mut self) -> Box<Request> {
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
        request.route.server = http.listeners[self.facts.listener.get()].default_server;
        request.route.location = http.server(request.route.server).own;
        request
    }

    pub(super) fn record(&mut self, mut request: Box<Request>, now: Instant) {
        self.worker.metrics.add(Counter::Requests, 1);
        counting::finished(&request, now);
        if request.identity.trace.get().is_some() {
            tracing::end(&request);
        }
        if let Some(ticket) = access_log::write(&request, now) {
            self.ticket = Some(ticket);
        }
        self.last_used = now;
        // What follows on the connection is not held up by what this one counts for, nor does its body stay with it.
        (request.received.body, request.received.body_file) = (Default::default(), None);
        request.limited.under_way.clear();
        spare::keep(request);
    }

    /// Waits until the last unbuffered line is written, at most [`LOG_WAIT`].
    pub(super) async fn until_logged(&self) {
        let Some(ticket) = self.ticket else { return };
        let log_writer = self.worker.log_writer.clone();
        if within(LOG_WAIT, log_writer.written(ticket)).await.is_err() {
            log_writer.stop_waiting();
        }
    }
}

fn limits_of(server: &Server) -> HeadLimits {
    let settings = &server.settings.client_header;
    let (number, size) = settings.large_buffers;
    HeadLimits { line: size, total: number.saturating_mul(size), fields: settings.max_fields }
}

/// Counts the connection until dropped, by a panic too.
pub(super) struct Counted {
    metrics: Arc<WorkerMetrics>,
    /// `None`: idle.
    state: Option<Gauge>,
    processing: Option<Processing>,
}

impl Counted {
    fn new(metrics: Arc<WorkerMetrics>) -> Counted {
        metrics.gauge_add(Gauge::ConnectionsActive, 1);
        Counted { metrics, state: None, processing: None }
    }

    /// A request that waits for its response, in its zones.
    pub(super) fn answers(&mut self, zones: (u32, u32)) {
        self.is(None);
        self.is(Some(Gauge::ConnectionsWriting));
        self.processing = Some(Processing::of(self.metrics.clone(), zones));
    }

    pub(super) fn is(&mut self, state: Option<Gauge>) {
        if self.state == state {
            return;
        }
        self.processing = None;
        for (gauge, change) in [(self.state, -1), (state, 1)] {
            gauge.into_iter().for_each(|gauge| self.metrics.gauge_add(gauge, change));
        }
        self.state = state;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.is(None);
        self.metrics.gauge_add(Gauge::ConnectionsActive, -1);
    }
}

/// Counts a waiting request until dropped, by a panic too.
pub(super) struct Processing {
    metrics: Arc<WorkerMetrics>,
    zones: (u32, u32),
}

impl Processing {
    pub(super) fn of(metrics: Arc<WorkerMetrics>, zones: (u32, u32)) -> Processing {
        metrics.processing(zones, 1);
        Processing { metrics, zones }
    }
}

impl Drop for Processing {
    fn drop(&mut self) {
        self.metrics.processing(self.zones, -1);
    }
}
