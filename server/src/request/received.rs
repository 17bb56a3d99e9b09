//! What came: the head with its bytes, the body, and when.

use super::{BodyFile, ClientAddress, KeptBody};
use millstream_wire::h1::framing::Framing;
use millstream_wire::h1::head::RequestHead;
use millstream_wire::{Field, FieldId, Span};
use std::time::Instant;

pub struct Received {
    pub bytes: Vec<u8>,
    /// Spans point into `bytes`.
    pub head: RequestHead,
    pub framing: Framing,
    /// The client by `realip`, if not the peer.
    pub client: Option<ClientAddress>,
    /// Time of its first byte.
    pub started: Instant,
    /// Whether it waited in the buffer behind another request.
    pub pipelined: bool,
    pub body: KeptBody,
    pub body_file: Option<Box<BodyFile>>,
    /// Bytes of the body as received, chunk framing included.
    pub body_received: u64,
    /// Bytes of the body so far without its framing; for a subrequest, the length that its parent knew.
    pub body_octets: u64,
}

impl Received {
    pub(super) fn at(now: Instant) -> Received {
        Received {
            bytes: Vec::new(),
            head: RequestHead::default(),
            framing: Framing::None,
            client: None,
            started: now,
            pipelined: false,
            body: KeptBody::Unread,
            body_file: None,
            body_received: 0,
            body_octets: 0,
        }
    }

    /// Adds a field of ours behind those that came; returns where in `bytes` its value begins.
    pub fn append_field(&mut self, name: &[u8], value: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let (id, end) = (FieldId::of(name), self.bytes.len());
        self.head.fields.push(Field::new(id, Span::new(start, middle), Span::new(middle, end)));
        middle
    }

    /// Bytes of the body as far as they are known: announced, come so far in chunks, or come whole on a stream.
    /// 0 if nothing is known.
    pub fn known_length(&self) -> u64 {
        match self.framing {
            Framing::Length(length) => length,
            Framing::Chunked | Framing::None => self.body_octets,
            Framing::Close => self.body.held(),
        }
    }

    pub(super) fn clear(&mut self, now: Instant) {
        self.bytes.clear();
        self.head.clear();
        let (bytes, head) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.head));
        *self = Received { bytes, head, ..Received::at(now) };
    }
}
