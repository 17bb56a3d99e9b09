//! One connection of HTTP/2 as a client has it (RFC 9113): pure, no sockets, no clock.
//!
//! ```text
//!  open ──▶ out ──▶ (the socket)         (the socket) ──▶ read ──▶ Event
//! ```
//! Streams are known by their place: the oldest open one is 0, so that whoever keeps a list of what it asked keeps the same
//! order. `out` gathers what is to be sent; bodies go into it as the server's windows allow. Nothing is kept of what comes but a
//! frame that is cut off and a header block. Never panics, whatever comes. Next: `multiplex::receiving`; `drive`, `probe`.

mod receiving;
#[cfg(test)]
mod tests;

use crate::exchange::{Asked, Broken, Came, Collected, Coming, Event, Exchange};
use crate::http2_request::Http2Request;
use crate::plan::Target;
use millstream_wire::Headers;
use millstream_wire::h2::block::Blocks;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::hpack::{HpackDecoder, encoder};
use millstream_wire::h2::settings::{self, PeerSettings};
use millstream_wire::h2::window::{LARGEST, Window};
use millstream_wire::h2::{PREFACE, write};
use std::collections::VecDeque;

/// Octets that the server may send on a stream, and on the connection, before it is told that there is room for more: as large as
/// h2load's, so that nobody waits for a window.
const WINDOW: u32 = (1 << 30) - 1;
/// Octets of a window after which it is opened again.
const HALF: u32 = WINDOW / 2;
/// Octets of bodies that wait to be sent at the most.
const GATHERED: usize = 128 * 1024;
/// Octets of the server's table that are used: what it has before it says something (RFC 9113 §6.5.2).
const TABLE: u32 = 4096;
/// The highest number of a stream behind which a new connection is opened.
const LAST_STREAM: u32 = LARGEST - 2;

type Told = Result<Option<Event>, Broken>;

#[derive(Debug)]
struct OpenStream {
    number: u32,
    coming: Coming,
    announced: Option<u64>,
    /// Octets that came since its window was opened.
    received: u32,
    sent: usize,
    is_sent: bool,
    window: Window,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Table {
    #[default]
    Empty,
    Has(u32),
    Off,
}

#[derive(Default)]
pub struct Multiplex {
    out: Vec<u8>,
    /// Of `out`: what the socket has taken.
    out_from: usize,
    streams: VecDeque<OpenStream>,
    /// The number of the next stream; 0: nothing was said yet.
    next: u32,
    /// Streams whose requests are not whole.
    unsent: usize,
    /// Streams, the newest, of which nobody was told that they have gone out.
    fresh: usize,
    server: PeerSettings,
    is_greeted: bool,
    /// Octets of bodies that may be sent, all streams together.
    window: Window,
    /// Octets that came since the connection's window was opened.
    received: u32,
    /// No streams are opened any more: GOAWAY, or numbers ran out.
    is_ending: bool,
    is_leaving: bool,
    table: Table,
    table_size: u32,
    is_table_changed: bool,
    decoder: HpackDecoder,
    fields: Headers,
    /// A frame that is cut off.
    kept: Vec<u8>,
    blocks: Blocks,
    /// The block that came last, and what it says, where that depends on no table.
    last: Vec<u8>,
    last_meaning: Option<receiving::HeadMeaning>,
    kept_answer: Option<Box<Collected>>,
}

impl Exchange for Multiplex {
    const HAS_STREAMS: bool = true;
    type Room = ();

    fn greet(&mut self) -> bool {
        if self.next == 0 {
            (self.next, self.table_size) = (1, TABLE);
            self.window = Window::new(settings::DEFAULT_WINDOW);
            self.out.extend_from_slice(PREFACE);
            let own = [(settings::ENABLE_PUSH, 0), (settings::INITIAL_WINDOW_SIZE, WINDOW)];
            write::settings(&mut self.out, &own);
            write::window_update(&mut self.out, 0, WINDOW - settings::DEFAULT_WINDOW);
        }
        self.is_greeted
    }

    #[inline]
    fn has_room(&self, wanted: u32) -> bool {
        let most = wanted.min(self.server.max_concurrent_streams) as usize;
        self.is_greeted && !self.is_ending && self.streams.len() < most
    }

    #[inline]
    fn open(&mut self, number: u32, target: &Target) {
        let (request, stream) = (request(target), self.next);
        self.next += 2;
        self.is_ending |= stream >= LAST_STREAM;
        let is_whole = request.body().is_empty();
        self.head(number, request, stream, is_whole);
        self.unsent += usize::from(!is_whole);
        self.fresh += 1;
        self.streams.push_back(OpenStream {
            number: stream,
            coming: Coming::to(target),
            announced: None,
            received: 0,
            sent: 0,
            is_sent: is_whole,
            window: Window::new(self.server.initial_window_size),
        });
    }

    #[inline]
    fn unsent<'s, 'a: 's>(&'s mut self, asked: &impl Asked<'a>, _room: &'s mut ()) -> &'s [u8] {
        if self.unsent > 0 {
            self.bodies(asked);
        }
        &self.out[self.out_from..]
    }

    #[inline]
    fn sent<'a>(&mut self, count: usize, _asked: &impl Asked<'a>) -> usize {
        self.out_from = (self.out_from + count).min(self.out.len());
        if self.out_from == self.out.len() {
            self.out.clear();
            self.out_from = 0;
        } else if self.out_from > GATHERED {
            self.out.drain(..self.out_from);
            self.out_from = 0;
        }
        std::mem::take(&mut self.fresh).min(self.streams.len())
    }

    fn is_held_up(&self) -> bool {
        self.out_from < self.out.len()
    }

    #[inline]
    fn gone_out(&self) -> usize {
        self.streams.len()
    }

    #[inline]
    fn read<'a>(&mut self, bytes: &[u8], _asked: &impl Asked<'a>, _room: &mut (), now: u64) -> Came {
        self.frames(bytes, now).inspect_err(|Broken(code, what)| {
            write::goaway(&mut self.out, 0, *code, what.as_bytes());
        })
    }

    fn has_begun(&self, place: usize) -> bool {
        self.streams.get(place).is_some_and(|stream| stream.coming.status != 0)
    }

    fn cancel(&mut self, place: usize) {
        if let Some(stream) = self.remove(place) {
            write::reset(&mut self.out, stream.number, ErrorCode::Cancel);
        }
    }

    #[inline]
    fn is_ending(&self) -> bool {
        self.is_ending
    }

    fn kept(&mut self) -> &mut Option<Box<Collected>> {
        &mut self.kept_answer
    }
}

fn request(target: &Target) -> &Http2Request {
    target.http2.as_ref().expect("a plan is checked to speak HTTP/2 to every target or to none")
}

impl Multiplex {
    #[inline]
    fn head(&mut self, target: u32, request: &Http2Request, number: u32, is_whole: bool) {
        let block = match self.table {
            Table::Has(own) if own == target => &request.filled,
            Table::Empty if request.table <= self.table_size as usize => {
                self.table = Table::Has(target);
                &request.filling
            }
            _ => &request.plain,
        };
        let most = self.server.max_frame_size;
        if !self.is_table_changed {
            return write::headers(&mut self.out, number, block, is_whole, most);
        }
        // RFC 9113 §4.3.1: the block behind the acknowledgement begins with the new size.
        self.is_table_changed = false;
        let mut changed = Vec::new();
        encoder::size_update(&mut changed, self.table_size as usize);
        changed.extend_from_slice(block);
        write::headers(&mut self.out, number, &changed, is_whole, most);
    }

    /// Puts of the requests' bodies into what is to be sent what the windows and the room there allow.
    fn bodies<'a>(&mut self, asked: &impl Asked<'a>) {
        for (place, stream) in self.streams.iter_mut().enumerate() {
            let waiting = self.out.len() - self.out_from;
            if self.unsent == 0 || waiting >= GATHERED || self.window.available() == 0 {
                return;
            }
            let body = request(asked(place)).body();
            while !stream.is_sent && self.out.len() - self.out_from < GATHERED {
                let rest = body.get(stream.sent..).unwrap_or_default();
                let windows = self.window.available().min(stream.window.available());
                let length = rest.len().min(windows.min(self.server.max_frame_size) as usize);
                if length == 0 {
                    break;
                }
                let is_last = length == rest.len();
                write::data_head(&mut self.out, stream.number, length as u32, is_last);
                self.out.extend_from_slice(&rest[..length]);
                stream.sent += length;
                // Both have at least so much.
                _ = (self.window.consume(length as u32), stream.window.consume(length as u32));
                if is_last {
                    stream.is_sent = true;
                    self.unsent -= 1;
                }
            }
        }
    }

    #[inline]
    fn remove(&mut self, place: usize) -> Option<OpenStream> {
        let stream = self.streams.remove(place)?;
        self.unsent -= usize::from(!stream.is_sent);
        Some(stream)
    }

    /// The place of a stream's number; the oldest one is the most likely.
    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        if self.streams.front()?.number == number {
            return Some(0);
        }
        self.streams.binary_search_by_key(&number, |stream| stream.number).ok()
    }
}
