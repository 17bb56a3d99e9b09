//! The upstream servers that were asked for one request: the `$upstream_*` variables read it.

use millstream_telemetry::metrics::{PeerCells, PeerTiming};
use millstream_traces::id::SpanId;
use millstream_wire::Headers;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One upstream server asked; durations are `None` until known.
#[derive(Debug, Clone)]
pub struct Try {
    /// Its name as `$upstream_addr` gives it.
    pub peer: Rc<str>,
    /// When it was asked, which the times below are counted from.
    pub asked_at: Instant,
    /// The span that is made of it, where it was told of one.
    pub span: Option<SpanId>,
    /// Its answer's status; 0 before a head came (502 or 504 once it failed).
    pub status: u16,
    /// Time to connect.
    pub connect_time: Option<Duration>,
    /// Time to the head.
    pub header_time: Option<Duration>,
    /// Time to the end.
    pub response_time: Option<Duration>,
    /// Body bytes received.
    pub response_length: u64,
    /// Bytes sent to it.
    pub bytes_sent: u64,
    /// Bytes received from it.
    pub bytes_received: u64,
    /// Where this worker counts what becomes of it; `None` where there was no server to ask.
    pub counts: Option<Arc<PeerCells>>,
}

impl Try {
    /// One that has just begun.
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

    /// The connection is there, after this time where it was made for it.
    pub fn connected(&mut self, time: Duration, is_new: bool) {
        self.connect_time = Some(time);
        if let Some(counts) = self.counts.as_ref().filter(|_| is_new) {
            counts.took(PeerTiming::Connect, time);
        }
    }

    /// A final head has come.
    pub fn answered(&mut self, status: u16, time: Duration) {
        self.status = status;
        self.header_time = Some(time);
        if let Some(counts) = &self.counts {
            counts.answered(status);
            counts.took(PeerTiming::Header, time);
        }
    }

    /// It is over, with so many bytes of a body and of all, received and sent.
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

/// All tries of a request, in order, and the fields of the last answer.
#[derive(Debug, Default, Clone)]
pub struct Tries {
    /// In order; empty where no upstream was asked.
    pub list: Vec<Try>,
    /// Where in the list tries begin that another location made, after an answer that only said which it is.
    breaks: Vec<usize>,
    /// Fields of the last answer's head (of the stored answer on a cache hit: `None` until a template reads it).
    pub headers: Option<Rc<Headers>>,
    /// Trailer fields of an answer that was passed on as it came.
    pub trailers: Option<Headers>,
    /// The stored answer, where there is one and a template reads it.
    pub cached: Option<CachedFacts>,
}

/// What the `$upstream_cache_*` variables say of a stored answer.
#[derive(Debug, Clone, Copy)]
pub struct CachedFacts {
    /// Its age in seconds.
    pub age: u64,
    /// Its Last-Modified in seconds since 1970.
    pub last_modified: Option<i64>,
}

impl Tries {
    /// A location begins to ask.
    pub fn begin(&mut self) {
        if !self.list.is_empty() {
            self.breaks.push(self.list.len());
        }
    }

    /// What stands in front of a try in the values of variables: nothing, a comma, or a colon where another location began.
    pub fn separator(&self, index: usize) -> &'static [u8] {
        match index {
            0 => b"",
            _ if self.breaks.contains(&index) => b" : ",
            _ => b", ",
        }
    }

    /// Forgets all tries; the list keeps its room.
    pub fn clear(&mut self) {
        self.list.clear();
        self.breaks.clear();
        self.headers = None;
        self.trailers = None;
        self.cached = None;
    }
}
