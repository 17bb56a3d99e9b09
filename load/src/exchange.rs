//! What a client's connection of HTTP/1 and one of HTTP/2 have in common: pure, no sockets, no clock.
//!
//! ```text
//!  open ──▶ unsent ──▶ (the socket)         (the socket) ──▶ read ──▶ Event
//! ```
//! Requests are known by their place: the oldest one without an answer is 0, so that whoever keeps a list of what it asked keeps
//! the same order. Next: `pipeline` and `multiplex`, the two that there are; `probe` and `drive`, which use them.

use crate::plan::Target;
use millstream_wire::Fields;
use millstream_wire::h1::head::HeadLimits;
use millstream_wire::h2::error_code::ErrorCode;
use std::sync::Arc;

/// How large an answer's head may be. More than servers send; less than would hurt.
pub const HEAD: HeadLimits = HeadLimits { line: 64 * 1024, total: 128 * 1024, fields: 1000 };

/// Whoever owns the requests of a connection: what the one at a place asks for.
pub trait Asked<'a>: Fn(usize) -> &'a Target {}

impl<'a, Of: Fn(usize) -> &'a Target> Asked<'a> for Of {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub is_persistent: bool,
    /// Whether its body is the expected one; true where any will do.
    pub is_body_right: bool,
    pub body: u64,
    /// When it began, interim ones not counted (RFC 9110 §15.2).
    pub first_byte: u64,
}

/// What came of the bytes. A request that has an answer, or will have none, is gone, and those behind it move up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// HTTP/2: the server's first SETTINGS, and how many requests it allows at once. They can be sent.
    Greeted(u32),
    Answered(usize, Answer),
    Failed(usize, Fault),
    /// GOAWAY of HTTP/2: no more requests can be sent, and the newest ones will have no answer (RFC 9113 §6.8).
    GoneAway {
        unanswered: usize,
        /// The server had not said so before.
        is_first: bool,
    },
    /// HTTP/1: more came than was asked for, be it body, answer, or a farewell such as 408 (RFC 9112 §9.2).
    Surplus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Reset(ErrorCode),
    /// What came is no answer: the server sent this.
    Malformed(&'static str),
    ShortBody,
}

/// The server broke a rule of the connection, which is of no use any more; what it sent stands behind "the server sent ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken(pub ErrorCode, pub &'static str);

pub type Came = Result<(usize, Option<Event>), Broken>;

pub trait Exchange: Default + Send {
    /// Whether the connection goes on when one of its requests is given up.
    const HAS_STREAMS: bool;
    type Room: Default + Send;

    /// Says what stands before the first request, if it was not said yet. Whether requests can be sent already.
    fn greet(&mut self) -> bool {
        true
    }
    /// Whether another request may be on its way where this side wants so many at once.
    fn has_room(&self, wanted: u32) -> bool;
    fn open(&mut self, number: u32, target: &Target);
    fn unsent<'s, 'a: 's>(&'s mut self, asked: &impl Asked<'a>, room: &'s mut Self::Room) -> &'s [u8];
    /// So many bytes of it were sent. Returns how many requests have gone out whole with them, the last of [`Exchange::gone_out`].
    fn sent<'a>(&mut self, count: usize, asked: &impl Asked<'a>) -> usize;
    /// Whether something waits that the socket did not take.
    fn is_held_up(&self) -> bool;
    /// How many requests, the oldest, have gone out whole.
    fn gone_out(&self) -> usize;
    /// Reads on, up to the next event; without one all bytes are consumed. `now` is when they came. Errors: the connection
    /// is broken; what is to be said to the server is in [`Exchange::unsent`].
    fn read<'a>(&mut self, bytes: &[u8], asked: &impl Asked<'a>, room: &mut Self::Room, now: u64) -> Came;
    /// The connection ended in order: the answer to the oldest request that is whole with that.
    fn end(&mut self) -> Option<Answer> {
        None
    }
    /// Whether the answer at a place has a head, and its end has not come.
    fn has_begun(&self, place: usize) -> bool;
    /// Nobody waits for the answer at a place any longer. The places behind it move up.
    fn cancel(&mut self, place: usize);
    fn is_ending(&self) -> bool {
        false
    }
    /// Where the answer that ended last leads; none where it is no redirect, or does not say.
    fn take_location(&mut self) -> Option<Arc<str>> {
        None
    }
    fn kept(&mut self) -> &mut Option<Box<Collected>>;
}

#[derive(Debug, Default)]
pub struct Collected {
    /// Its fields in order, bytes that are no UTF-8 replaced.
    pub fields: Vec<(String, String)>,
    pub announced: Option<u64>,
    /// Its body, transfer coding taken off, up to `most` bytes and one read more.
    pub body: Vec<u8>,
    pub most: usize,
}

impl Collected {
    pub(crate) fn head(&mut self, fields: Fields<'_>, announced: Option<u64>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.fields = fields.iter().map(|(_, name, value)| (text(name), text(value))).collect();
        self.announced = announced;
    }

    pub(crate) fn data(&mut self, data: &[u8]) {
        if self.body.len() <= self.most {
            self.body.extend_from_slice(data);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Coming {
    /// 0: no head but interim ones has come.
    pub(crate) status: u16,
    pub(crate) first_byte: u64,
    pub(crate) body: u64,
    pub(crate) is_head: bool,
    expected: Option<Arc<[u8]>>,
    is_wrong: bool,
}

impl Coming {
    #[inline]
    pub(crate) fn to(target: &Target) -> Coming {
        Coming { is_head: target.is_head, expected: target.expect.body.clone(), ..Coming::default() }
    }

    #[inline]
    pub(crate) fn data(&mut self, data: &[u8]) {
        if let Some(expected) = &self.expected
            && !self.is_wrong
        {
            let from = usize::try_from(self.body).unwrap_or(usize::MAX);
            let right = from.checked_add(data.len()).and_then(|to| expected.get(from..to));
            self.is_wrong = right != Some(data);
        }
        self.body += data.len() as u64;
    }

    #[inline]
    pub(crate) fn whole(self, is_persistent: bool) -> Answer {
        let Coming { status, first_byte, body, is_head, expected, is_wrong } = self;
        // An answer without a body on purpose (HEAD, 304) has none to be wrong.
        let has_body = !is_head && status != 304;
        let is_cut = has_body && expected.is_some_and(|expected| expected.len() as u64 != body);
        Answer { status, is_persistent, is_body_right: !is_wrong && !is_cut, body, first_byte }
    }
}
