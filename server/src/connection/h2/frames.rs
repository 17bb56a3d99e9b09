//! What each frame means to the connection (RFC 9113 §5.1, §6).
//!
//! `millstream-wire` has judged each by itself; here is judged whether it may come now. What is one stream's fault ends that stream, what
//! makes the rest unreadable ends the connection. Next: `heads`, for header blocks.

use super::departure::{Departure, FAREWELL};
use super::ended::Past;
use super::heads::Place;
use super::patience::{Overdrawn, TINY, Work};
use super::{Fate, Http2Connection, Preamble};
use crate::worker::idle_since;
use millstream_net::clock;
use millstream_net::streams::{BadBody, Http2Stream};
use millstream_telemetry::metrics::Counter;
use millstream_wire::h2::PREFACE;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::{Frame, FrameHead, kind};
use millstream_wire::h2::priority::Priority;
use millstream_wire::h2::read::{self, FrameError};
use millstream_wire::h2::settings::{BadSetting, DEFAULT_MAX_FRAME_SIZE, SettingsPayload, Side};
use millstream_wire::h2::window::BadWindow;
use millstream_wire::h2::write;
use std::rc::Rc;

struct DataFrame<'a> {
    stream: u32,
    data: &'a [u8],
    /// Bytes it counts in windows, padding included.
    flow: u32,
    is_last: bool,
}

impl Http2Connection {
    pub(super) fn take_frames(&mut self) -> Result<(), Fate> {
        if self.input.is_empty() {
            return Ok(());
        }
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        let outcome = self.take_from(&input, &mut at);
        self.input = input;
        if at == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..at);
        }
        outcome
    }

    fn take_from(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fate> {
        if let Preamble::Preface(seen) = self.preamble {
            *at = self.take_preface(input, seen)?;
        }
        while !self.is_clogged() && self.turn.goes_on() {
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
                    self.check_block_is_over(None)?;
                    self.break_stream(stream, code)?;
                }
            }
        }
        Ok(())
    }

    fn take_preface(&mut self, input: &[u8], seen: usize) -> Result<usize, Fate> {
        let count = input.len().min(PREFACE.len() - seen);
        if input[..count] != PREFACE[seen..seen + count] {
            return Err(Fate::Broken(ErrorCode::ProtocolError, "an invalid preface"));
        }
        let seen = seen + count;
        self.preamble = if seen == PREFACE.len() { Preamble::Settings } else { Preamble::Preface(seen) };
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
        self.check_block_is_over(continued)?;
        match frame {
            Frame::Data { stream, data, flow, end } => {
                self.take_data(&DataFrame { stream, data, flow, is_last: end })
            }
            Frame::Headers { stream, fragment, end_headers, end, depends_on_itself } => {
                let flaw = depends_on_itself.then_some(ErrorCode::ProtocolError);
                self.check_opening(stream)?;
                self.begin_block(Place { stream, has_ended: end, flaw }, fragment, end_headers)
            }
            Frame::Continuation { stream, fragment, end_headers } => {
                self.go_on_block(stream, fragment, end_headers)
            }
            Frame::WindowUpdate { stream, increment } => self.widen(stream, increment),
            Frame::Settings { ack: true, .. } => {
                self.granted.is_known = true;
                self.charge(Work::Control)
            }
            Frame::Settings { payload, .. } => self.take_settings(payload),
            Frame::Ping { ack: true, payload } => {
                if payload == FAREWELL && matches!(self.departure, Departure::Announced(_)) {
                    self.say_farewell();
                }
                self.charge(Work::Control)
            }
            Frame::Ping { payload, .. } => {
                self.carrier.frame(|out| write::ping(out, true, payload));
                self.charge(Work::Control)
            }
            Frame::Reset { stream, .. } => self.take_reset(stream),
            Frame::PriorityUpdate { stream, value } => self.prioritise(stream, Priority::of(value)),
            Frame::PushPromise { .. } => Err(Fate::Broken(ErrorCode::ProtocolError, "a PUSH_PROMISE frame")),
            // A client that will open no streams of ours any more may still open its own, and there never were any of ours.
            Frame::GoAway { .. } | Frame::Priority { .. } | Frame::Unknown { .. } => {
                self.charge(Work::Control)
            }
        }
    }

    /// Only CONTINUATION may come between a block's frames (RFC 9113 §4.3).
    fn check_block_is_over(&self, continued: Option<u32>) -> Result<(), Fate> {
        match &self.block {
            Some(block) if continued != Some(block.stream) => {
                Err(Fate::Broken(ErrorCode::ProtocolError, "a frame in the middle of a header block"))
            }
            _ => Ok(()),
        }
    }

    fn check_opening(&mut self, stream: u32) -> Result<(), Fate> {
        if stream.is_multiple_of(2) {
            return Err(Fate::Broken(ErrorCode::ProtocolError, "a request on a server-initiated stream"));
        }
        if stream > self.last {
            return Ok(());
        }
        match self.stream(stream) {
            Some(open) if open.has_all() && !open.is_spoiled() || open.is_left() => {
                Err(Fate::Broken(ErrorCode::StreamClosed, "a HEADERS frame on a half-closed stream"))
            }
            Some(_) => Ok(()),
            None => match self.ended.past(stream) {
                Past::GivenUp => Ok(()),
                Past::Closed => {
                    Err(Fate::Broken(ErrorCode::StreamClosed, "a HEADERS frame on a closed stream"))
                }
                Past::Unknown => {
                    Err(Fate::Broken(ErrorCode::ProtocolError, "a stream with a lower number than the last"))
                }
            },
        }
    }

    fn take_data(&mut self, piece: &DataFrame<'_>) -> Result<(), Fate> {
        let open = self.stream(piece.stream).filter(|stream| !stream.is_left());
        let Some(stream) = open.cloned() else {
            self.check_is_no_idle(piece.stream)?;
            self.carrier.received(piece.flow, 0).map_err(overfull)?;
            if self.ended.past(piece.stream) != Past::GivenUp {
                self.reset(piece.stream, ErrorCode::StreamClosed);
            }
            return self.charge(Work::Control);
        };
        let outcome = stream.receive(piece.data, piece.flow, piece.is_last).map_err(overfull)?;
        if let Err(refused) = outcome {
            return self.refuse_body(piece.stream, refused);
        }
        self.client_due_since =
            self.client_due_since.map(|since| idle_since(since, piece.data.len(), clock::now()));
        match piece.data.len() {
            _ if piece.is_last => Ok(()),
            0 => self.charge(Work::Empty),
            length if (length as u32) < TINY => self.charge(Work::Tiny),
            _ => Ok(()),
        }
    }

    pub(super) fn refuse_body(&mut self, stream: u32, refused: BadBody) -> Result<(), Fate> {
        match refused {
            BadBody::Ended => self.break_stream(stream, ErrorCode::StreamClosed),
            BadBody::Flow => self.break_stream(stream, ErrorCode::FlowControlError),
            // The request is told so before its stream ends.
            BadBody::Length => self.charge(Work::Refused),
        }
    }

    fn widen(&mut self, stream: u32, increment: u32) -> Result<(), Fate> {
        if stream == 0 {
            self.carrier.widen(increment).map_err(overfull)?;
        } else if let Some(open) = self.stream(stream) {
            if open.widen(increment) == Err(BadWindow) {
                return self.break_stream(stream, ErrorCode::FlowControlError);
            }
        } else {
            self.check_is_no_idle(stream)?;
            return self.charge(Work::Tiny);
        }
        if increment < TINY { self.charge(Work::Tiny) } else { Ok(()) }
    }

    /// Also for a stream that is not open yet (RFC 9218 §7.1).
    fn prioritise(&mut self, stream: u32, priority: Priority) -> Result<(), Fate> {
        if stream.is_multiple_of(2) {
            return Err(Fate::Broken(ErrorCode::ProtocolError, "a priority for a server-initiated stream"));
        }
        if let Some(open) = self.stream(stream) {
            open.reprioritise(priority);
        } else if stream > self.last {
            self.early.add(stream, priority, self.granted.streams as usize);
        }
        self.charge(Work::Control)
    }

    fn take_settings(&mut self, payload: SettingsPayload<'_>) -> Result<(), Fate> {
        let mut peer = self.carrier.peer();
        let shift =
            peer.apply(payload, Side::Client).map_err(|BadSetting(code, what)| Fate::Broken(code, what))?;
        self.carrier.set_peer(peer);
        for stream in &self.streams {
            stream.shift(shift).map_err(overfull)?;
        }
        self.carrier.frame(write::settings_ack);
        self.charge(Work::Control)
    }

    fn take_reset(&mut self, stream: u32) -> Result<(), Fate> {
        self.check_is_no_idle(stream)?;
        if let Some(open) = self.stream(stream) {
            open.leave();
            self.accepted.worker.metrics.add(Counter::Http2StreamsReset, 1);
        }
        self.charge(Work::Reset)
    }

    /// An error for a stream that was never opened (RFC 9113 §5.1, "idle").
    fn check_is_no_idle(&self, stream: u32) -> Result<(), Fate> {
        match stream > self.last || stream.is_multiple_of(2) {
            true => Err(Fate::Broken(ErrorCode::ProtocolError, "a frame on a stream that is not open")),
            false => Ok(()),
        }
    }

    pub(super) fn stream(&self, id: u32) -> Option<&Rc<Http2Stream>> {
        let at = self.streams.binary_search_by_key(&id, |stream| stream.id()).ok()?;
        Some(&self.streams[at])
    }

    /// Resets a stream for a client's error. Charged like a client's reset if an upstream was involved
    /// (CVE-2025-8671).
    fn break_stream(&mut self, id: u32, code: ErrorCode) -> Result<(), Fate> {
        match self.stream(id) {
            Some(stream) => {
                stream.reset(code);
                self.charge(Work::Abandoned)?;
            }
            None => self.reset(id, code),
        }
        self.charge(Work::Refused)
    }

    pub(super) fn reset(&mut self, id: u32, code: ErrorCode) {
        self.carrier.frame(|out| write::reset(out, id, code));
        self.ended.give_up(id, self.granted.streams);
    }

    pub(super) fn charge(&mut self, work: Work) -> Result<(), Fate> {
        self.patience.charge(work, clock::now()).map_err(|Overdrawn| {
            Fate::Broken(ErrorCode::EnhanceYourCalm, "too many frames that cause useless work")
        })
    }
}

fn overfull(BadWindow: BadWindow) -> Fate {
    Fate::Broken(ErrorCode::FlowControlError, "a frame that violates flow control")
}
