//! HTTP/2: what becomes of streams, and of a connection that its server wants to end.
//!
//! A connection is greeted, carries streams up to the plan's number or the server's, and is opened anew behind a GOAWAY. What the
//! server promised not to answer is asked again without being an error; a server that ends one connection after the other
//! without an answer has refused. Next: `crate::multiplex`, which knows frames.

use super::Worker;
use super::receiving::awaited;
use crate::drive::RunShared;
use crate::drive::connection::{Connection, Sent, Stage};
use crate::exchange::Awaited;
use crate::http2_request::Http2Request;
use crate::multiplex::{Asked, Broken, Event, Multiplex};
use crate::plan::Plan;
use crate::tally::Failure;
use millstream_wire::h2::error_code::ErrorCode;
use std::collections::VecDeque;
use std::io::ErrorKind;

/// Connections in a row that a server may end without an answer: a reload can meet a new one.
const FRUITLESS: u32 = 3;

/// The requests on their way on one connection.
struct OnTheirWay<'a> {
    plan: &'a Plan,
    sent: &'a VecDeque<Sent>,
}

impl Asked for OnTheirWay<'_> {
    #[inline]
    fn request(&self, place: usize) -> &Http2Request {
        let target = &self.plan.targets[self.sent[place].target as usize];
        target.http2.as_ref().expect("a plan is checked to speak HTTP/2 to every target or to none")
    }

    #[inline]
    fn awaited(&self, place: usize) -> Awaited<'_> {
        awaited(&self.plan.targets[self.sent[place].target as usize])
    }
}

impl Worker {
    /// Says first what a client says first.
    pub(super) fn greet(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        if !connection.stream.as_ref().is_some_and(crate::stream::Stream::is_http2) {
            return self.connect_failed(run, number, Failure::Tls, now);
        }
        connection.http2 = Some(Box::new(Multiplex::new()));
        connection.stage = Stage::Greeting(now);
        self.flush_streams(run, number);
    }

    /// Takes the buffer's bytes as frames; whether the connection goes on.
    pub(super) fn take_frames(
        &mut self,
        run: &RunShared<'_>,
        number: usize,
        length: usize,
        now: u64,
    ) -> bool {
        let mut at = 0;
        while at < length {
            let Connection { http2, sent, .. } = &mut self.connections[number];
            let Some(streams) = http2 else { return false };
            let asked = OnTheirWay { plan: run.plan, sent };
            match streams.read(&self.buffer[at..length], &asked, now) {
                Ok((read, event)) => {
                    at += read;
                    if let Some(event) = event
                        && !self.happened(run, number, event, now)
                    {
                        return false;
                    }
                }
                Err(broken) => {
                    self.broken(run, number, broken, now);
                    return false;
                }
            }
        }
        true
    }

    /// The server broke a rule of the connection.
    fn broken(&mut self, run: &RunShared<'_>, number: usize, Broken(_, what): Broken, now: u64) {
        self.http2.broken.get_or_insert_with(|| what.to_owned());
        // The server is told why; that it arrives is not promised.
        self.flush_streams(run, number);
        if matches!(self.connections[number].stage, Stage::Greeting(_)) {
            return self.connect_failed(run, number, Failure::Malformed, now);
        }
        self.lose(run, number, Failure::Malformed);
        self.start(run, number, now);
    }

    /// What follows from an event; whether the connection goes on.
    fn happened(&mut self, run: &RunShared<'_>, number: usize, event: Event, now: u64) -> bool {
        let connection = &mut self.connections[number];
        match event {
            Event::Greeted => {
                let allowed = connection.http2.as_ref().map_or(u32::MAX, |streams| streams.allowed());
                if allowed < run.plan.pipeline {
                    self.http2.allowed = Some(self.http2.allowed.unwrap_or(u32::MAX).min(allowed));
                }
                if allowed > 0 {
                    self.opened(run, number, now);
                }
            }
            Event::Answered { place, answer, first_byte } => {
                let Some(sent) = connection.sent.remove(place) else { return true };
                (connection.is_answered, connection.fruitless) = (true, 0);
                let target = &run.plan.targets[sent.target as usize];
                self.settle(run, target, Sent { first_byte, ..sent }, answer, now);
                if !run.plan.keep_alive {
                    self.close(run, number);
                    self.start(run, number, now);
                    return false;
                }
            }
            Event::Reset { place, code } => {
                let how = if code == ErrorCode::RefusedStream { Failure::Refused } else { Failure::Reset };
                if self.fail_stream(run, number, place, how) {
                    *self.http2.resets.entry(code.name().to_owned()).or_default() += 1;
                }
            }
            Event::Malformed { place, what } => {
                self.http2.broken.get_or_insert_with(|| what.to_owned());
                self.fail_stream(run, number, place, Failure::Malformed);
            }
            Event::ShortBody { place } => {
                self.fail_stream(run, number, place, Failure::ShortBody);
            }
            Event::GoneAway { unanswered, is_first } => {
                self.http2.going_away += u64::from(is_first);
                self.take_back(run, number, unanswered);
            }
        }
        self.is_staying(run, number, now)
    }

    /// Ends a connection that has nothing on its way and takes nothing more; whether it stays.
    fn is_staying(&mut self, run: &RunShared<'_>, number: usize, now: u64) -> bool {
        let connection = &mut self.connections[number];
        if !connection.sent.is_empty()
            || !connection.http2.as_ref().is_some_and(|streams| streams.is_ending())
        {
            return true;
        }
        let claim = connection.claim;
        connection.fruitless += u32::from(!connection.is_answered);
        if connection.fruitless >= FRUITLESS {
            connection.fruitless = 0;
            self.connect_failed(run, number, Failure::Refused, now);
            return false;
        }
        connection.reset();
        match claim {
            Some(due) => {
                connection.claim = Some(due);
                self.open(run, number, now);
            }
            None => self.start(run, number, now),
        }
        false
    }

    /// A stream came to nothing good; whether that counts.
    fn fail_stream(&mut self, run: &RunShared<'_>, number: usize, place: usize, how: Failure) -> bool {
        let sent = self.connections[number].sent.remove(place);
        sent.is_some_and(|sent| self.fail_sent(run, sent, how))
    }

    /// The newest requests that the server promised not to answer: they are asked again elsewhere (RFC 9113 §6.8).
    fn take_back(&mut self, run: &RunShared<'_>, number: usize, unanswered: usize) {
        let connection = &mut self.connections[number];
        let (lane, from) = (connection.lane as usize, connection.sent.len().saturating_sub(unanswered));
        for sent in connection.sent.split_off(from) {
            self.ask_again(run, lane, sent, true);
        }
    }

    /// Sends what waits; whether the connection is still there. A connection that cannot be written to is read to its end first:
    /// what the server said before it closed is still to come.
    pub(super) fn flush_streams(&mut self, run: &RunShared<'_>, number: usize) -> bool {
        loop {
            let Connection { http2, sent, stream, .. } = &mut self.connections[number];
            let (Some(streams), Some(stream)) = (http2, stream) else { return false };
            let bytes = streams.unsent(&OnTheirWay { plan: run.plan, sent });
            let sent = if bytes.is_empty() {
                // TLS may hold the end of what it has taken.
                match stream.flush() {
                    Ok(_) => return true,
                    Err(error) => Err(error),
                }
            } else {
                stream.send(bytes)
            };
            match sent {
                Ok(count) => {
                    streams.sent(count);
                    self.tally.counts.bytes_written += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => {
                    self.again.push(number as u32);
                    return true;
                }
            }
        }
    }

    /// The connection has ended under its streams.
    pub(super) fn lose_streams(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let Connection { http2, sent, .. } = &self.connections[number];
        let has_begun = |place| http2.as_ref().is_some_and(|streams| streams.has_begun(place));
        let begun: Vec<bool> = (0..sent.len()).map(has_begun).collect();
        for has_begun in begun {
            let how = if has_begun { Failure::ShortBody } else { Failure::Closed };
            self.fail_stream(run, number, 0, how);
        }
        self.connections[number].reset();
        self.start(run, number, now);
    }

    /// Streams whose answers are overdue end; the connection goes on with the others. One that the server does not even read
    /// from ends as a whole.
    pub(super) fn give_up_streams(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let is_held_up = self.connections[number].http2.as_ref().is_some_and(|streams| streams.is_held_up());
        while let Some(oldest) = self.connections[number].sent.front().copied()
            && (is_held_up || oldest.sent + self.timeout <= now)
        {
            self.give_up(run, Some(oldest.due), now);
            self.fail_stream(run, number, 0, Failure::Timeout);
            if let Some(streams) = &mut self.connections[number].http2 {
                streams.cancel(0);
            }
        }
        if is_held_up {
            self.connections[number].reset();
            return self.start(run, number, now);
        }
        if self.is_staying(run, number, now) {
            self.go_on(run, number, now);
            self.flush_streams(run, number);
        }
    }
}
