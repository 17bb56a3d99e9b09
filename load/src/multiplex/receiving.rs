//! What comes on a connection: frames become events, or show that the server breaks the rules.
//!
//! Which streams there are decides what a frame means. A head whose block is octet for octet the one before, and depends on no
//! table, means the same and is not decoded again.

use super::{HALF, Multiplex, Table, Told};
use crate::exchange::{Broken, Came, Event, Fault, HEAD};
use millstream_wire::Method;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h2::block::{BadBlock, Block};
use millstream_wire::h2::error_code::ErrorCode::{self, FlowControlError, ProtocolError};
use millstream_wire::h2::field_rules::{FieldsError, decode_trailers};
use millstream_wire::h2::frame::{Frame, FrameHead, HEAD_LENGTH};
use millstream_wire::h2::read::{FrameError, read};
use millstream_wire::h2::response::decode_response;
use millstream_wire::h2::settings::{DEFAULT_MAX_FRAME_SIZE, SettingsPayload, Side};
use millstream_wire::h2::write;

/// Octets of a header block.
const BLOCK: usize = 128 * 1024;

impl Multiplex {
    pub(super) fn frames(&mut self, bytes: &[u8], now: u64) -> Came {
        // What a server says that does not speak HTTP/2.
        if !self.is_greeted && bytes.starts_with(b"HTTP/1.") {
            return Err(Broken(ErrorCode::Http11Required, "an HTTP/1 response"));
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let (length, event) = if !self.kept.is_empty() {
                self.go_on_frame(rest, now)?
            } else if let Some(whole) = self.first_frame(rest, now)? {
                whole
            } else {
                // Its head was judged: it is no longer than a frame may be.
                self.kept.extend_from_slice(rest);
                (rest.len(), None)
            };
            at += length;
            if event.is_some() {
                return Ok((at, event));
            }
        }
        Ok((at, None))
    }

    /// The frame that these bytes begin with, if it is whole: its length, and what comes of it. One that is wrong by itself may
    /// concern its stream alone.
    #[inline]
    fn first_frame(&mut self, bytes: &[u8], now: u64) -> Result<Option<(usize, Option<Event>)>, Broken> {
        match read(bytes, DEFAULT_MAX_FRAME_SIZE) {
            Ok(None) => Ok(None),
            Ok(Some((frame, length))) => Ok(Some((length, self.frame(frame, now)?))),
            Err(FrameError::Stream { stream, code, what, consumed })
                if self.is_greeted && !self.blocks.has_begun() =>
            {
                let place = self.place(stream);
                Ok(Some((consumed, place.map_or(Ok(None), |place| self.malformed(place, code, what))?)))
            }
            Err(FrameError::Connection(code, what) | FrameError::Stream { code, what, .. }) => {
                Err(Broken(code, what))
            }
        }
    }

    fn go_on_frame(&mut self, bytes: &[u8], now: u64) -> Came {
        let mut kept = std::mem::take(&mut self.kept);
        let length = FrameHead::peek(&kept).map_or(0, |head| head.length as usize);
        let taken = bytes.len().min((HEAD_LENGTH + length).saturating_sub(kept.len()));
        kept.extend_from_slice(&bytes[..taken]);
        let whole = self.first_frame(&kept, now)?;
        if whole.is_some() {
            kept.clear();
        }
        self.kept = kept;
        Ok((taken, whole.and_then(|(_, event)| event)))
    }

    #[inline]
    fn frame(&mut self, frame: Frame<'_>, now: u64) -> Told {
        let block = self.blocks.take(&frame, BLOCK).map_err(|BadBlock(code, what)| Broken(code, what))?;
        match frame {
            // RFC 9113 §3.4: SETTINGS come first.
            Frame::Settings { ack: false, payload } => self.settings(payload),
            _ if !self.is_greeted => Err(Broken(ProtocolError, "another frame before SETTINGS")),
            Frame::Data { stream, data, flow, end } => self.data(stream, data, flow, end),
            Frame::Headers { .. } | Frame::Continuation { .. } => match block {
                Some(Block { stream, octets, end }) => self.headers(stream, &octets, end, now),
                None => Ok(None),
            },
            Frame::WindowUpdate { stream, increment } => self.window_update(stream, increment),
            Frame::Reset { stream, code } => {
                let Some(place) = self.opened(stream)? else { return Ok(None) };
                self.remove(place);
                Ok(Some(Event::Failed(place, Fault::Reset(code))))
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
            Frame::PushPromise { .. } => Err(Broken(ProtocolError, "a push that was not requested")),
            Frame::Settings { .. }
            | Frame::Ping { .. }
            | Frame::Priority { .. }
            | Frame::PriorityUpdate { .. }
            | Frame::Unknown { .. } => Ok(None),
        }
    }

    fn settings(&mut self, payload: SettingsPayload<'_>) -> Told {
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
        let is_first = !std::mem::replace(&mut self.is_greeted, true);
        Ok(is_first.then_some(Event::Greeted(self.server.max_concurrent_streams)))
    }

    /// The place of a stream, if it is still there; one that was never opened is an error of the connection (RFC 9113 §5.1).
    #[inline]
    fn opened(&self, stream: u32) -> Result<Option<usize>, Broken> {
        if stream >= self.next || stream.is_multiple_of(2) {
            return Err(Broken(ProtocolError, "a frame on a stream that is not open"));
        }
        Ok(self.place(stream))
    }

    #[inline]
    fn data(&mut self, stream: u32, data: &[u8], flow: u32, end: bool) -> Told {
        let place = self.opened(stream)?;
        self.received += flow;
        if self.received > HALF {
            write::window_update(&mut self.out, 0, self.received);
            self.received = 0;
        }
        let Some(place) = place else { return Ok(None) };
        let (out, open) = (&mut self.out, &mut self.streams[place]);
        if open.coming.status == 0 {
            return self.malformed(place, ProtocolError, "a body without a head");
        }
        open.received += flow;
        if open.received > HALF && !end {
            write::window_update(out, stream, open.received);
            open.received = 0;
        }
        open.coming.data(data);
        if let Some(kept) = &mut self.kept_answer {
            kept.data(data);
        }
        if open.announced.is_some_and(|announced| open.coming.body > announced) {
            return self.malformed(place, ProtocolError, "a body longer than announced");
        }
        Ok(if end { self.ended(place) } else { None })
    }

    fn malformed(&mut self, place: usize, code: ErrorCode, what: &'static str) -> Told {
        if let Some(stream) = self.remove(place) {
            write::reset(&mut self.out, stream.number, code);
        }
        Ok(Some(Event::Failed(place, Fault::Malformed(what))))
    }

    fn window_update(&mut self, stream: u32, increment: u32) -> Told {
        const LARGE: &str = "a window that is too large";
        if stream == 0 {
            let told = self.window.increase(increment);
            return told.map(|()| None).map_err(|_| Broken(FlowControlError, LARGE));
        }
        let Some(place) = self.opened(stream)? else { return Ok(None) };
        if self.streams[place].window.increase(increment).is_err() {
            return self.malformed(place, FlowControlError, LARGE);
        }
        Ok(None)
    }

    #[inline]
    fn ended(&mut self, place: usize) -> Option<Event> {
        let stream = self.remove(place)?;
        if !stream.is_sent {
            // The rest of the request is of no use to anybody (RFC 9113 §8.1).
            write::reset(&mut self.out, stream.number, ErrorCode::NoError);
        }
        if stream.announced.is_some_and(|announced| stream.coming.body < announced) {
            return Some(Event::Failed(place, Fault::ShortBody));
        }
        Some(Event::Answered(place, stream.coming.whole(true)))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct HeadMeaning {
    status: u16,
    announced: Option<u64>,
}

impl Multiplex {
    #[inline]
    fn headers(&mut self, stream: u32, block: &[u8], end: bool, now: u64) -> Told {
        let place = self.opened(stream)?;
        if place.is_some_and(|place| self.streams[place].coming.status != 0) {
            return self.trailers(place, block, end);
        }
        // Also of a stream that is gone: the table has to follow (RFC 9113 §4.3).
        let meaning = match self.meaning(block) {
            Ok(meaning) => meaning,
            Err(error) => return self.bad_fields(place, error),
        };
        let Some(place) = place else { return Ok(None) };
        let open = &mut self.streams[place];
        match (meaning.status, end) {
            // Interim ones are passed over (RFC 9110 §15.2); 101 is none of HTTP/2 (RFC 9113 §8.6).
            (100 | 102..=199, false) => return Ok(None),
            (100..=199, _) => return self.malformed(place, ProtocolError, "an invalid interim response"),
            _ => {}
        }
        (open.coming.status, open.coming.first_byte) = (meaning.status, now);
        open.announced = meaning.announced.filter(|_| !open.coming.is_head);
        if let Some(kept) = &mut self.kept_answer {
            kept.head(self.fields.view(), open.announced);
        }
        Ok(if end { self.ended(place) } else { None })
    }

    fn trailers(&mut self, place: Option<usize>, block: &[u8], end: bool) -> Told {
        self.last_meaning = None;
        if let Err(error) = decode_trailers(&mut self.decoder, block, &HEAD) {
            return self.bad_fields(place, error);
        }
        let Some(place) = place else { return Ok(None) };
        if !end {
            return self.malformed(place, ProtocolError, "trailers before the end");
        }
        Ok(self.ended(place))
    }

    #[inline]
    fn meaning(&mut self, block: &[u8]) -> Result<HeadMeaning, FieldsError> {
        if let Some(meaning) = self.last_meaning
            && self.last == block
        {
            return Ok(meaning);
        }
        let was_empty = self.decoder.table_size() == 0;
        self.last_meaning = None;
        let status = decode_response(&mut self.decoder, block, &mut self.fields, &HEAD)?;
        // As a body of CGI one of HTTP/2 ends with its stream, or where its length says so.
        let framing = framing::cgi(Method::Get, status, self.fields.view());
        let framing = framing.map_err(|error| FieldsError::Malformed(error.what()))?;
        let announced = if let Framing::Length(length) = framing { Some(length) } else { None };
        let meaning = HeadMeaning { status, announced };
        if was_empty && self.decoder.table_size() == 0 {
            self.last.clear();
            self.last.extend_from_slice(block);
            self.last_meaning = Some(meaning);
        }
        Ok(meaning)
    }

    fn bad_fields(&mut self, place: Option<usize>, error: FieldsError) -> Told {
        let what = match error {
            FieldsError::Compression(what) => return Err(Broken(ErrorCode::CompressionError, what)),
            FieldsError::Malformed(what) => what,
            FieldsError::TooLarge => "a head that is too large",
        };
        place.map_or(Ok(None), |place| self.malformed(place, ProtocolError, what))
    }
}
