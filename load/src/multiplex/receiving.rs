//! What comes on a connection: frames become events, or show that the server breaks the rules.
//!
//! Which streams there are decides what a frame means. Next: `heads`, for header blocks.

use super::heads::Block;
use super::{Asked, HALF, Multiplex, OpenStream, Table};
use crate::exchange::Answer;
use millstream_wire::h2::error_code::ErrorCode::{self, FlowControlError, ProtocolError};
use millstream_wire::h2::frame::{Frame, FrameHead, HEAD_LENGTH};
use millstream_wire::h2::read::{FrameError, read};
use millstream_wire::h2::settings::{DEFAULT_MAX_FRAME_SIZE, SettingsPayload, Side};
use millstream_wire::h2::write;

/// The server broke a rule of the connection, which is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken(pub ErrorCode, pub &'static str);

/// What came of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The server's first SETTINGS: requests can be sent.
    Greeted,
    /// A whole answer. The stream at this place is gone, and those behind it move up.
    Answered {
        /// Where it was.
        place: usize,
        /// What it was.
        answer: Answer,
        /// When it began.
        first_byte: u64,
    },
    /// The server ended the stream at this place, which is gone.
    Reset {
        /// Where it was.
        place: usize,
        /// Why, in the server's words.
        code: ErrorCode,
    },
    /// The answer at this place is none, which ends its stream.
    Malformed {
        /// Where it was.
        place: usize,
        /// What is wrong, to stand behind "the server sent ".
        what: &'static str,
    },
    /// The answer at this place had not the length that it announced.
    ShortBody {
        /// Where it was.
        place: usize,
    },
    /// GOAWAY: no more streams can be opened, and the newest ones will have no answer (RFC 9113 §6.8). They are gone.
    GoneAway {
        /// How many.
        unanswered: usize,
        /// The server had not said so before.
        is_first: bool,
    },
}

impl From<FrameError> for Broken {
    fn from(error: FrameError) -> Broken {
        match error {
            FrameError::Connection(code, what) | FrameError::Stream { code, what, .. } => Broken(code, what),
        }
    }
}

impl Multiplex {
    /// Reads on, up to the next event: how many bytes are consumed, and the event that comes of them. Without one all are. `now` is
    /// when they came.
    ///
    /// # Errors
    /// The connection is broken; what is to be said to the server is in [`Multiplex::unsent`].
    #[inline]
    pub fn read(
        &mut self,
        bytes: &[u8],
        asked: &impl Asked,
        now: u64,
    ) -> Result<(usize, Option<Event>), Broken> {
        self.frames(bytes, asked, now).inspect_err(|Broken(code, what)| {
            write::goaway(&mut self.out, 0, *code, what.as_bytes());
        })
    }

    fn frames(
        &mut self,
        bytes: &[u8],
        asked: &impl Asked,
        now: u64,
    ) -> Result<(usize, Option<Event>), Broken> {
        // What a server says that does not speak HTTP/2.
        if !self.is_greeted && bytes.starts_with(b"HTTP/1.") {
            return Err(Broken(ErrorCode::Http11Required, "an answer in HTTP/1"));
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if !self.kept.is_empty() {
                let (taken, event) = self.frame_in_parts(rest, asked, now)?;
                at += taken;
                if event.is_some() {
                    return Ok((at, event));
                }
                continue;
            }
            match read(rest, DEFAULT_MAX_FRAME_SIZE) {
                Ok(Some((frame, length))) => {
                    at += length;
                    let event = self.frame(frame, asked, now)?;
                    if event.is_some() {
                        return Ok((at, event));
                    }
                }
                // Its head was judged: it is no longer than a frame may be.
                Ok(None) => {
                    self.kept.extend_from_slice(rest);
                    at = bytes.len();
                }
                Err(error) => {
                    let (length, event) = self.bad_frame(error)?;
                    at += length;
                    if event.is_some() {
                        return Ok((at, event));
                    }
                }
            }
        }
        Ok((at, None))
    }

    /// Goes on with a frame whose beginning came before.
    fn frame_in_parts(
        &mut self,
        bytes: &[u8],
        asked: &impl Asked,
        now: u64,
    ) -> Result<(usize, Option<Event>), Broken> {
        let mut kept = std::mem::take(&mut self.kept);
        let length = FrameHead::peek(&kept).map_or(0, |head| head.length as usize);
        let taken = bytes.len().min((HEAD_LENGTH + length).saturating_sub(kept.len()));
        kept.extend_from_slice(&bytes[..taken]);
        let event = match read(&kept, DEFAULT_MAX_FRAME_SIZE) {
            Ok(Some((frame, _))) => self.frame(frame, asked, now)?,
            Ok(None) => {
                self.kept = kept;
                return Ok((taken, None));
            }
            Err(error) => self.bad_frame(error)?.1,
        };
        kept.clear();
        self.kept = kept;
        Ok((taken, event))
    }

    /// A frame that is wrong by itself: the octets to go past, and what comes of it where only its stream is concerned.
    fn bad_frame(&mut self, error: FrameError) -> Result<(usize, Option<Event>), Broken> {
        match error {
            FrameError::Stream { stream, code, what, consumed }
                if self.is_greeted && self.block.is_none() =>
            {
                let Some(place) = self.place(stream) else { return Ok((consumed, None)) };
                Ok((consumed, Some(self.malformed(place, code, what))))
            }
            error => Err(error.into()),
        }
    }

    #[inline]
    fn frame(&mut self, frame: Frame<'_>, asked: &impl Asked, now: u64) -> Result<Option<Event>, Broken> {
        if self.block.is_some() && !matches!(frame, Frame::Continuation { .. }) {
            return Err(Broken(ProtocolError, "another frame within a header block"));
        }
        match frame {
            // RFC 9113 §3.4: SETTINGS come first.
            Frame::Settings { ack: false, payload } => self.settings(payload),
            _ if !self.is_greeted => Err(Broken(ProtocolError, "another frame before SETTINGS")),
            Frame::Data { stream, data, flow, end } => self.data(stream, data, flow, end, asked),
            Frame::Headers { stream, fragment, end_headers: true, end, .. } => {
                self.headers(stream, fragment, end, asked, now)
            }
            Frame::Headers { stream, fragment, end, .. } => {
                self.check_number(stream)?;
                self.block = Some(Block { stream, octets: fragment.to_vec(), end });
                Ok(None)
            }
            Frame::Continuation { stream, fragment, end_headers } => {
                self.continuation(stream, fragment, end_headers, asked, now)
            }
            Frame::WindowUpdate { stream, increment } => self.window_update(stream, increment),
            Frame::Reset { stream, code } => {
                self.check_number(stream)?;
                let Some(place) = self.place(stream) else { return Ok(None) };
                self.remove(place);
                Ok(Some(Event::Reset { place, code }))
            }
            Frame::Ping { ack: false, payload } => {
                write::ping(&mut self.out, true, payload);
                Ok(None)
            }
            Frame::GoAway { last, .. } => {
                let is_first = !std::mem::replace(&mut self.is_leaving, true);
                self.is_ending = true;
                let answered = self.streams.partition_point(|stream| stream.number <= last);
                let unanswered = self.streams.len() - answered;
                while self.streams.len() > answered {
                    self.remove(self.streams.len() - 1);
                }
                Ok(Some(Event::GoneAway { unanswered, is_first }))
            }
            Frame::PushPromise { .. } => Err(Broken(ProtocolError, "a push that nobody takes")),
            Frame::Settings { .. }
            | Frame::Ping { .. }
            | Frame::Priority { .. }
            | Frame::PriorityUpdate { .. }
            | Frame::Unknown { .. } => Ok(None),
        }
    }

    fn settings(&mut self, payload: SettingsPayload<'_>) -> Result<Option<Event>, Broken> {
        let shift = self.server.apply(payload, Side::Server).map_err(|error| Broken(error.0, error.1))?;
        for stream in &mut self.streams {
            stream.window.shift(shift).map_err(|_| Broken(FlowControlError, "a window that is too large"))?;
        }
        write::settings_ack(&mut self.out);
        if self.server.header_table_size < self.table_size {
            (self.table_size, self.is_table_changed) = (self.server.header_table_size, true);
            // Which lines stay depends on their sizes; it is not worth knowing.
            if self.table != Table::Empty {
                self.table = Table::Off;
            }
        }
        // Nothing can be asked here for now, and nobody says for how long.
        self.is_ending |= self.server.max_concurrent_streams == 0;
        Ok((!std::mem::replace(&mut self.is_greeted, true)).then_some(Event::Greeted))
    }

    /// A stream that was never opened is an error of the connection (RFC 9113 §5.1).
    #[inline]
    pub(super) fn check_number(&self, stream: u32) -> Result<(), Broken> {
        if stream < self.next && stream % 2 == 1 {
            Ok(())
        } else {
            Err(Broken(ProtocolError, "a frame on a stream that nobody opened"))
        }
    }

    #[inline]
    fn data(
        &mut self,
        stream: u32,
        data: &[u8],
        flow: u32,
        end: bool,
        asked: &impl Asked,
    ) -> Result<Option<Event>, Broken> {
        self.check_number(stream)?;
        self.received += flow;
        if self.received > HALF {
            write::window_update(&mut self.out, 0, self.received);
            self.received = 0;
        }
        let Some(place) = self.place(stream) else { return Ok(None) };
        let (out, open) = (&mut self.out, &mut self.streams[place]);
        if open.status == 0 {
            return Ok(Some(self.malformed(place, ProtocolError, "a body without a head")));
        }
        open.received += flow;
        if open.received > HALF && !end {
            write::window_update(out, stream, open.received);
            open.received = 0;
        }
        if let Some(expected) = asked.awaited(place).body
            && open.is_body_right
        {
            let from = usize::try_from(open.body).unwrap_or(usize::MAX);
            open.is_body_right =
                from.checked_add(data.len()).and_then(|to| expected.get(from..to)) == Some(data);
        }
        open.body += data.len() as u64;
        if let Some((body, most)) = &mut self.collected
            && body.len() <= *most
        {
            body.extend_from_slice(data);
        }
        if open.announced.is_some_and(|announced| open.body > announced) {
            return Ok(Some(self.malformed(place, ProtocolError, "a body longer than announced")));
        }
        Ok(if end { self.ended(place, asked) } else { None })
    }

    pub(super) fn malformed(&mut self, place: usize, code: ErrorCode, what: &'static str) -> Event {
        if let Some(stream) = self.remove(place) {
            write::reset(&mut self.out, stream.number, code);
        }
        Event::Malformed { place, what }
    }

    fn window_update(&mut self, stream: u32, increment: u32) -> Result<Option<Event>, Broken> {
        const LARGE: &str = "a window that is too large";
        if stream == 0 {
            return match self.window.increase(increment) {
                Ok(()) => Ok(None),
                Err(_) => Err(Broken(FlowControlError, LARGE)),
            };
        }
        self.check_number(stream)?;
        let Some(place) = self.place(stream) else { return Ok(None) };
        if self.streams[place].window.increase(increment).is_err() {
            return Ok(Some(self.malformed(place, FlowControlError, LARGE)));
        }
        Ok(None)
    }

    /// The answer at a place is whole.
    #[inline]
    pub(super) fn ended(&mut self, place: usize, asked: &impl Asked) -> Option<Event> {
        let awaited = asked.awaited(place);
        let stream = self.remove(place)?;
        let OpenStream { status, announced, is_body_right, body, first_byte, .. } = stream;
        if !stream.is_sent {
            // The rest of the request is of no use to anybody (RFC 9113 §8.1).
            write::reset(&mut self.out, stream.number, ErrorCode::NoError);
        }
        if announced.is_some_and(|announced| body < announced) {
            return Some(Event::ShortBody { place });
        }
        let is_length_right = awaited.is_head
            || status == 304
            || awaited.body.is_none_or(|expected| expected.len() as u64 == body);
        let is_body_right = is_body_right && is_length_right;
        Some(Event::Answered {
            place,
            answer: Answer { status, is_persistent: true, is_body_right, body },
            first_byte,
        })
    }
}
