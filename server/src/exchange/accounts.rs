//! What is recorded of an exchange: its [`Try`], counters, and the lines of the error log. It decides nothing.

use super::broken::ExchangeFailure;
use super::sticky::learn_session;
use super::{Passing, report};
use crate::tries::Try;
use millstream_conf::model::Level;
use millstream_net::clock;
use millstream_telemetry::metrics::{Counter, Timing};
use millstream_upstream::retry::is_peer_failure;
use millstream_upstream::{Condition, Connection, ExchangeError, Peer, Turn};
use millstream_wire::Headers;
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::other_protocol::asks_for_tls;
use std::fmt::Arguments;
use std::rc::Rc;
use std::time::{Duration, Instant};

impl Passing<'_> {
    pub(super) fn note_head(&mut self, connection: &Connection, head: &ResponseHead, now: Instant) {
        let elapsed = now.saturating_duration_since(self.terms.asked_at);
        let Some(last) = self.request.tries.list.last_mut() else { return };
        last.answered(head.status, elapsed);
        self.request.worker.metrics.observe(Timing::UpstreamHeader, elapsed);
        if self.request.generation.shared.reads.upstream_heads {
            let fields = head.view(connection.head_bytes());
            self.request.tries.headers = Some(Rc::new(Headers::from(fields)));
        }
    }

    pub(super) fn accepted(&self, turn: &mut Turn) {
        learn_session(self, turn);
        let Some(last) = self.request.tries.list.last() else { return };
        turn.judged(Some(last.status));
        if let Some(time) = last.header_time {
            turn.answered(self.terms.asked_at + time);
        }
    }

    pub(super) fn nobody(&mut self, group: &str) {
        self.count(Counter::UpstreamNoPeers, 1);
        self.log(Level::Error, group, format_args!("no live upstreams while connecting to upstream"));
        let nobody = Try::of(group.into(), None, clock::now());
        let response_time = Some(Duration::ZERO);
        self.request.tries.list.push(Try { status: 502, response_time, ..nobody });
    }

    pub(super) fn report_failure(&mut self, peer: &Peer, failure: &ExchangeFailure) {
        let condition = failure.error.condition();
        self.count(
            match condition {
                Condition::Timeout => Counter::UpstreamTimeouts,
                Condition::InvalidHeader => Counter::UpstreamInvalidHeaders,
                Condition::Error | Condition::Status(_) => Counter::UpstreamErrors,
            },
            1,
        );
        self.note_failure(condition);
        let hint = report::hint(self.proxy, &failure.error);
        self.log(Level::Error, &peer.name, format_args!("{} {}{hint}", failure.error, failure.doing));
    }

    pub(super) fn note_failure(&mut self, condition: Condition) {
        if let Some(last) = self.request.tries.list.last_mut() {
            last.status = condition.status();
        }
    }

    /// `max_fails` failures make the server unavailable; 403 and 404 do not count.
    pub(super) fn hold_against(&mut self, turn: Turn, condition: Condition, now: Instant) {
        turn.judged(match condition {
            Condition::Status(status) => Some(status),
            Condition::Error | Condition::Timeout | Condition::InvalidHeader => None,
        });
        if let Condition::Status(status) = condition
            && !is_peer_failure(&self.proxy.exchange.next_upstream, status)
        {
            return;
        }
        let name = turn.peer().name.clone();
        if turn.failed(now) {
            self.count(Counter::UpstreamPeersFailed, 1);
            let what = format_args!("upstream server temporarily disabled while connecting to upstream");
            self.log(Level::Warn, &name, what);
        }
    }

    pub(super) fn count(&self, counter: Counter, by: u64) {
        self.request.worker.metrics.add(counter, by);
    }

    pub(super) fn report_leftover(&mut self, connection: &Connection) {
        if connection.has_leftover() {
            let what =
                format_args!("upstream sent data after the end of the response while reading upstream");
            self.log(Level::Warn, connection.peer_name(), what);
        }
    }

    /// Logs that the upstream speaks TLS on this port.
    pub(super) fn report_tls(&self, connection: &Connection, status: u16) {
        if self.proxy.tls().is_some() || !asks_for_tls(status, connection.read_ahead()) {
            return;
        }
        let hint = report::asks_for_tls(self.proxy);
        let what =
            format_args!("upstream responded with 400 while reading response header from upstream{hint}");
        self.log(Level::Error, connection.peer_name(), what);
    }

    /// Logs that the upstream ignored the upgrade to WebSocket.
    pub(super) fn report_no_websocket(&self, connection: &Connection, status: u16) {
        let what = format_args!(
            "upstream responded with {status} instead of \"101 Switching Protocols\" to a WebSocket request while \
             reading response header from upstream"
        );
        self.log(Level::Error, connection.peer_name(), what);
    }

    pub(super) fn note_end(&mut self, connection: &Connection, length: u64, now: Instant) {
        self.note_traffic(connection.traffic(), length, now);
    }

    pub(super) fn note_traffic(&mut self, (received, sent): (u64, u64), length: u64, now: Instant) {
        self.count(Counter::UpstreamBytesReceived, received);
        self.count(Counter::UpstreamBytesSent, sent);
        if let Some(last) = self.request.tries.list.last_mut() {
            last.ended(now.saturating_duration_since(self.terms.asked_at), length, (received, sent));
        }
    }

    /// Logs a truncated body; the client will see the cut.
    pub(super) fn broke_off(&mut self, connection: &Connection, error: &ExchangeError, length: u64) {
        self.note_end(connection, length, clock::now());
        let timed_out = error.condition() == Condition::Timeout;
        self.count(if timed_out { Counter::UpstreamTimeouts } else { Counter::UpstreamErrors }, 1);
        self.log(Level::Error, connection.peer_name(), format_args!("{error} while reading upstream"));
    }

    /// With the URL by which `server` was asked.
    pub(super) fn log(&self, level: Level, server: &str, what: Arguments<'_>) {
        let url = report::url(self.request, self.proxy, server, self.destination.uri.as_deref());
        report::write(self.request, level, what, Some(&url));
    }
}
