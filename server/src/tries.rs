//! The upstream servers that were asked for one request: the `$upstream_*` variables read it.

use millstream_telemetry::metrics::{PeerCells, PeerTiming};
use millstream_traces::id::SpanId;
use millstream_wire::Headers;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request to an upstream server; durations are `None` until known.
#[derive(Debug, Clone)]
pub struct Try {
    /// As in `$upstream_addr`.
    pub peer: Rc<str>,
    /// The start of all durations.
    pub asked_at: Instant,
    pub span: Option<SpanId>,
    /// 0 before a head arrived; 502 or 504 after a failure.
    pub status: u16,
    pub connect_time: Option<Duration>,
    pub header_time: Option<Duration>,
    pub response_time: Option<Duration>,
    pub response_length: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// This worker's counters for the server; `None` if there was no server.
    pub counts: Option<Arc<PeerCells>>,
}

impl Try {
    pub fn of(peer: Rc<str>, counts: Option<Arc<PeerCells>>, asked_at: Instant) -> Try {
        Try {
            peer,
            asked_at,
            span: None,
            status: 0,
            connect_time: None,
            header_time: None,
            response_time: None,
            response_length: 0,
            bytes_sent: 0,
            bytes_received: 0,
            counts,
        }
    }

    /// `time` counts only for a new connection.
    pub fn connected(&mut self, time: Duration, is_new: bool) {
        self.connect_time = Some(time);
        if let Some(counts) = self.counts.as_ref().filter(|_| is_new) {
            counts.took(PeerTiming::Connect, time);
        }
    }

    pub fn answered(&mut self, status: u16, time: Duration) {
        self.status = status;
        self.header_time = Some(time);
        if let Some(counts) = &self.counts {
            counts.answered(status);
            counts.took(PeerTiming::Header, time);
        }
    }

    /// Bytes of the body, and of all, received and sent.
    pub fn ended(&mut self, time: Duration, length: u64, (received, sent): (u64, u64)) {
        self.response_time = Some(time);
        self.response_length = length;
        (self.bytes_received, self.bytes_sent) = (received, sent);
        if let Some(counts) = &self.counts {
            counts.passed(received, sent);
            counts.took(PeerTiming::Response, time);
        }
    }
}

#[derive(Debug, Default, Clone)]
pub struct Tries {
    pub list: Vec<Try>,
    /// Indices at which another location started, after an internal redirect.
    breaks: Vec<usize>,
    /// Of the last response; for a hit the stored ones, `None` until a template reads them.
    pub headers: Option<Rc<Headers>>,
    /// Of a response passed on as it arrived.
    pub trailers: Option<Headers>,
    /// For a hit, if a template reads it.
    pub cached: Option<CachedFacts>,
}

/// `$upstream_cache_*`.
#[derive(Debug, Clone, Copy)]
pub struct CachedFacts {
    /// In seconds.
    pub age: u64,
    /// Seconds since 1970.
    pub last_modified: Option<i64>,
}

impl Tries {
    pub fn begin(&mut self) {
        if !self.list.is_empty() {
            self.breaks.push(self.list.len());
        }
    }

    /// Precedes a try in variables: nothing, a comma, or a colon where another location started.
    pub fn separator(&self, index: usize) -> &'static [u8] {
        match index {
            0 => b"",
            _ if self.breaks.contains(&index) => b" : ",
            _ => b", ",
        }
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.breaks.clear();
        self.headers = None;
        self.trailers = None;
        self.cached = None;
    }
}
