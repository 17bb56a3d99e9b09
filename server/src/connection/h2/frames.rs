//! What each frame means to the connection (RFC 9113 §5.1, §6).
//!
//! `millstream-wire` has judged each by itself; here is judged whether it may come now. What is one stream's fault ends that stream, what
//! makes the rest unreadable ends the connection. Next: `heads`, for header blocks.

use super::departure::FAREWELL;
use super::heads::{self, Come, Place};
use super::patience::{TINY, Work};
use super::{Fate, Http2Connection, Preamble};
use millstream_net::streams::BadBody;
use millstream_telemetry::metrics::Counter;
use millstream_wire::FieldId;
use millstream_wire::h2::PREFACE;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::extra::ConnectProtocol;
use millstream_wire::h2::frame::{Frame, FrameHead, kind};
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::read::{self, FrameError};
use millstream_wire::h2::settings::{BadSetting, DEFAULT_MAX_FRAME_SIZE, SettingsPayload, Side};
use millstream_wire::h2::window::BadWindow;
use millstream_wire::h2::write;

struct DataFrame<'a> {
    stream: u32,
    data: &'a [u8],
    /// Bytes it counts in windows, padding included.
    flow: u32,
    is_last: bool,
}

impl Http2Connection {
    pub(super) fn take_frames(&mut self) -> Result<(), Fate> {
        if self.framed.input.is_empty() {
            return Ok(());
        }
        let input = std::mem::take(&mut self.framed.input);
        let mut at = 0;
        let outcome = self.take_from(&input, &mut at);
        self.framed.input = input;
        if at == self.framed.input.len() {
            self.framed.input.clear();
        } else {
            self.framed.input.drain(..at);
        }
        outcome
    }

    fn take_from(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fate> {
        if let Preamble::Preface(seen) = self.preamble {
            *at = self.take_preface(input, seen)?;
        }
        while !self.framed.is_clogged() && !self.framed.is_full() && self.turn.goes_on() {
            match read::read(&input[*at..], DEFAULT_MAX_FRAME_SIZE) {
                // A client has nothing to promise, so the rest need not be read.
                Ok(None) => match FrameHead::peek(&input[*at..]) {
                    Some(head) if head.kind == kind::PUSH_PROMISE => {
                        return Err(Fate::Broken(ErrorCode::ProtocolError, "a PUSH_PROMISE frame"));
                    }
                    _ => break,
                },
                Ok(Some((frame, length))) => {
                    *at += length;
                    self.turn.take(length);
                    self.take(frame)?;
                }
                Err(FrameError::Connection(code, what)) => return Err(Fate::Broken(code, what)),
                Err(FrameError::Stream { stream, code, consumed, .. }) => {
                    *at += consumed;
                    self.blocks.check_is_over(None)?;
                    self.break_stream(stream, code)?;
                }
            }
        }
        Ok(())
    }

    fn take_preface(&mut self, input: &[u8], seen: u8) -> Result<usize, Fate> {
        let rest = &PREFACE[usize::from(seen)..];
        let count = input.len().min(rest.len());
        if input[..count] != rest[..count] {
            return Err(Fate::Broken(ErrorCode::ProtocolError, "an invalid preface"));
        }
        let is_whole = count == rest.len();
        self.preamble = if is_whole { Preamble::Settings } else { Preamble::Preface(seen + count as u8) };
        Ok(count)
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<(), Fate> {
        if self.preamble == Preamble::Settings {
            // Who is quick to acknowledge ours says its own a little later.
            if !matches!(frame, Frame::Settings { .. }) {
                return Err(Fate::Broken(ErrorCode::ProtocolError, "no SETTINGS frame after the preface"));
            }
            self.preamble = Preamble::Done;
        }
        let continued = match frame {
            Frame::Continuation { stream, .. } => Some(stream),
            _ => None,
        };
        self.blocks.check_is_over(continued)?;
        match frame {
            Frame::Data { stream, data, flow, end } => {
                self.take_data(&DataFrame { stream, data, flow, is_last: end })
            }
            Frame::Headers { stream, fragment, end_headers, end, depends_on_itself } => {
                let flaw = depends_on_itself.then_some(ErrorCode::ProtocolError);
                self.streams.check_opening(stream)?;
                let place = Place { stream, has_ended: end, flaw };
                if end_headers {
                    return self.take_block(place, fragment);
                }
                let work = self.blocks.begin(place, fragment, self.accepted.head_limits().total)?;
                self.charge(work)
            }
            Frame::Continuation { stream, fragment, end_headers: true } => {
                let block = self.blocks.end(stream, fragment)?;
                self.take_block(block.place, &block.bytes)
            }
            Frame::Continuation { stream, fragment, .. } => {
                let work = self.blocks.go_on(stream, fragment, self.accepted.head_limits().total)?;
                self.charge(work)
            }
            Frame::WindowUpdate { stream, increment } => self.widen(stream, increment),
            Frame::Settings { ack: true, .. } => {
                self.streams.settings_are_known();
                self.charge(Work::Control)
            }
            Frame::Settings { payload, .. } => self.take_settings(payload),
            Frame::Ping { ack: true, payload } => {
                if payload == FAREWELL && self.departure.is_announced() {
                    self.departure.say_farewell(self.streams.last(), &self.framed.carrier);
                }
                self.charge(Work::Control)
            }
            Frame::Ping { payload, .. } => {
                self.framed.carrier.frame(|out| write::ping(out, true, payload));
                self.charge(Work::Control)
            }
            Frame::Reset { stream, .. } => self.take_reset(stream),
            Frame::PriorityUpdate { stream, value } => {
                self.streams.prioritise(stream, Priority::of(value))?;
                self.charge(Work::Control)
            }
            Frame::PushPromise { .. } => Err(Fate::Broken(ErrorCode::ProtocolError, "a PUSH_PROMISE frame")),
            // A client that will open no streams of ours any more may still open its own, and there never were any of ours.
            Frame::GoAway { .. } | Frame::Priority { .. } | Frame::Unknown { .. } => {
                self.charge(Work::Control)
            }
        }
    }

    fn take_block(&mut self, place: Place, block: &[u8]) -> Result<(), Fate> {
        let Place { stream, has_ended, .. } = place;
        if stream <= self.streams.last() {
            return self.take_trailers(place, block);
        }
        let early = self.streams.begin(stream);
        let (mut request, decoded) = self.blocks.decode(block, &mut self.accepted)?;
        if decoded.is_err() {
            self.charge(Work::Block(block.len()))?;
        }
        if self.departure.is_closing() {
            // The client was told that this one counts for nothing.
            return self.charge(Work::Control);
        }
        if self.streams.is_full() {
            self.accepted.worker.metrics.add(Counter::Http2StreamsRefused, 1);
            self.reset(stream, ErrorCode::RefusedStream);
            return self.charge(Work::Refused);
        }
        if let Some(code) = place.flaw {
            self.reset(stream, code);
            return self.charge(Work::Refused);
        }
        match decoded {
            Ok(extra) => {
                request.method = request.received.head.method;
                match extra.protocol {
                    None => {}
                    Some(ConnectProtocol::WebSocket) => heads::as_upgrade(&mut request),
                    Some(ConnectProtocol::Other) => {
                        self.refuse(place, request, 501, "a CONNECT for an unknown protocol", None);
                        return Ok(());
                    }
                }
                request.received.head.length = block.len();
                let asked = || request.field(FieldId::Priority).map(Priority::of);
                let priority = early.or_else(asked).unwrap_or_default();
                self.answer(Come { stream, request, has_ended, priority });
            }
            Err(error) => {
                let (status, flaw) = heads::refusal_of(&error, &mut request);
                self.refuse(place, request, status, error.what(), flaw);
            }
        }
        Ok(())
    }

    fn take_trailers(&mut self, place: Place, block: &[u8]) -> Result<(), Fate> {
        let is_sound = self.blocks.decode_trailers(block, &self.accepted.head_limits())?;
        if !is_sound {
            self.charge(Work::Block(block.len()))?;
        }
        let Some(stream) = self.streams.get(place.stream) else { return self.charge(Work::Control) };
        // What ends nothing is no trailer section (RFC 9113 §8.1).
        let outcome = stream.receive_end(place.has_ended && is_sound);
        outcome.or_else(|refused| self.refuse_body(place.stream, refused))
    }

    fn take_data(&mut self, piece: &DataFrame<'_>) -> Result<(), Fate> {
        let open = self.streams.get(piece.stream).filter(|stream| !stream.is_left());
        let Some(stream) = open.cloned() else {
            self.streams.check_is_no_idle(piece.stream)?;
            self.framed.carrier.received(piece.flow, 0).map_err(overfull)?;
            if !self.streams.is_given_up(piece.stream) {
                self.reset(piece.stream, ErrorCode::StreamClosed);
            }
            return self.charge(Work::Control);
        };
        let outcome = stream.receive(piece.data, piece.flow, piece.is_last).map_err(overfull)?;
        if let Err(refused) = outcome {
            return self.refuse_body(piece.stream, refused);
        }
        self.due.moved(piece.data.len());
        match piece.data.len() {
            _ if piece.is_last => Ok(()),
            0 => self.charge(Work::Empty),
            length if (length as u32) < TINY => self.charge(Work::Tiny),
            _ => Ok(()),
        }
    }

    fn refuse_body(&mut self, stream: u32, refused: BadBody) -> Result<(), Fate> {
        match refused {
            BadBody::Ended => self.break_stream(stream, ErrorCode::StreamClosed),
            BadBody::Flow => self.break_stream(stream, ErrorCode::FlowControlError),
            // The request is told so before its stream ends.
            BadBody::Length => self.charge(Work::Refused),
        }
    }

    fn widen(&mut self, stream: u32, increment: u32) -> Result<(), Fate> {
        if stream == 0 {
            self.framed.carrier.widen(increment).map_err(overfull)?;
        } else if let Some(open) = self.streams.get(stream) {
            if open.widen(increment) == Err(BadWindow) {
                return self.break_stream(stream, ErrorCode::FlowControlError);
            }
        } else {
            self.streams.check_is_no_idle(stream)?;
            return self.charge(Work::Tiny);
        }
        if increment < TINY { self.charge(Work::Tiny) } else { Ok(()) }
    }

    fn take_settings(&mut self, payload: SettingsPayload<'_>) -> Result<(), Fate> {
        let mut peer = self.framed.carrier.peer();
        let shift =
            peer.apply(payload, Side::Client).map_err(|BadSetting(code, what)| Fate::Broken(code, what))?;
        self.framed.carrier.set_peer(peer);
        self.streams.shift(shift).map_err(overfull)?;
        self.framed.carrier.frame(write::settings_ack);
        self.charge(Work::Control)
    }

    fn take_reset(&mut self, stream: u32) -> Result<(), Fate> {
        self.streams.check_is_no_idle(stream)?;
        if let Some(open) = self.streams.get(stream) {
            open.leave();
            self.accepted.worker.metrics.add(Counter::Http2StreamsReset, 1);
        }
        self.charge(Work::Reset)
    }

    /// Resets a stream for a client's error. Charged like a client's reset if an upstream was involved
    /// (CVE-2025-8671).
    fn break_stream(&mut self, id: u32, code: ErrorCode) -> Result<(), Fate> {
        match self.streams.get(id) {
            Some(stream) => {
                stream.reset(code);
                self.charge(Work::Abandoned)?;
            }
            None => self.reset(id, code),
        }
        self.charge(Work::Refused)
    }

    fn reset(&mut self, id: u32, code: ErrorCode) {
        self.framed.carrier.frame(|out| write::reset(out, id, code));
        self.streams.give_up(id);
    }
}

fn overfull(BadWindow: BadWindow) -> Fate {
    Fate::Broken(ErrorCode::FlowControlError, "a frame that violates flow control")
}
