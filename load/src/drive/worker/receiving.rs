//! Answers on their way in: reading, settling, and what an ended connection means.
//!
//! Over HTTP/2 a connection carries streams up to the plan's number or the server's, and is opened anew behind a GOAWAY. What a
//! server has promised not to answer, or answers no more, is asked again without being an error; one that ends one connection
//! after the other without an answer has refused. Next: `crate::exchange`, which says what came.

use super::Worker;
use crate::drive::RunShared;
use crate::drive::connection::{Connection, Hop, Stage, asked};
use crate::exchange::{Answer, Broken, Event, Exchange, Fault};
use crate::plan::Target;
use crate::tally::{Failure, Sent};
use crate::target::{is_redirect, redirected};
use millstream_wire::h2::error_code::ErrorCode;
use std::io::ErrorKind;

/// Reads of one connection in one turn; a body without an end must not starve the others.
const READS: usize = 16;

/// Connections in a row that a server may end without an answer: a reload can meet a new one.
const FRUITLESS: u32 = 3;

impl<Protocol: Exchange> Worker<Protocol> {
    /// Reads what has come and does what follows from it. `is_ending`: the end is in the socket too, and no further
    /// event will tell.
    pub(super) fn receive(&mut self, run: &RunShared<'_>, number: usize, is_ending: bool) {
        for _ in 0..READS {
            let Some(stream) = &mut self.connections[number].stream else { return };
            match stream.receive(&mut self.buffer) {
                Ok(0) => return self.ended(run, number, true),
                Ok(length) => {
                    let may_have_more = is_ending || stream.may_have_more(length, self.buffer.len());
                    let now = run.now();
                    let oldest = self.connections[number].sent.front();
                    let is_counted = oldest.is_none_or(|sent| self.counts(run, sent.due));
                    self.tally.counts.bytes_read += if is_counted { length as u64 } else { 0 };
                    if !self.take(run, number, length, now) {
                        return;
                    }
                    self.go_on(run, number, now);
                    if !may_have_more {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.ended(run, number, false),
            }
        }
        self.again.push(number as u32);
    }

    #[inline]
    fn take(&mut self, run: &RunShared<'_>, number: usize, length: usize, now: u64) -> bool {
        let mut at = 0;
        while at < length {
            let Connection { exchange, sent, hop, .. } = &mut self.connections[number];
            let bytes = &self.buffer[at..length];
            let came = exchange.read(bytes, &asked(run.plan, sent, hop.as_deref()), &mut self.room, now);
            match came {
                Ok((read, None)) => at += read,
                Ok((read, Some(event))) => {
                    at += read;
                    if !self.happened(run, number, event, now) {
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

    #[inline]
    fn happened(&mut self, run: &RunShared<'_>, number: usize, event: Event, now: u64) -> bool {
        let connection = &mut self.connections[number];
        match event {
            Event::Answered(place, answer) => {
                self.answered(run, number, place, answer, now);
                if !answer.is_persistent || !run.plan.keep_alive {
                    self.close(run, number, now);
                    return false;
                }
            }
            Event::Greeted(allowed) => {
                if allowed < run.plan.pipeline {
                    let least = &mut self.tally.http2.allowed;
                    *least = Some(least.unwrap_or(u32::MAX).min(allowed));
                }
                if allowed > 0 {
                    self.opened(run, number, now);
                }
            }
            Event::Failed(place, fault) => {
                let how = match fault {
                    Fault::Reset(ErrorCode::RefusedStream) => Failure::Refused,
                    Fault::Reset(_) => Failure::Reset,
                    Fault::Malformed(_) => Failure::Malformed,
                    Fault::ShortBody => Failure::ShortBody,
                };
                let counts = self.fail_at(run, number, place, how);
                let http2 = &mut self.tally.http2;
                match fault {
                    Fault::Reset(code) if counts => {
                        *http2.resets.entry(code.name().to_owned()).or_default() += 1
                    }
                    Fault::Malformed(what) => _ = http2.broken.get_or_insert_with(|| what.to_owned()),
                    _ => {}
                }
            }
            Event::GoneAway { unanswered, is_first } => {
                self.tally.http2.going_away += u64::from(is_first);
                let from = connection.sent.len().saturating_sub(unanswered);
                self.ask_again(run, number, from, usize::MAX);
            }
            Event::Surplus => {
                // No request was lost, but the connection is (RFC 9112 §9.2).
                self.tally.counts.surplus += 1;
                self.lose(run, number, None, now);
                return false;
            }
        }
        self.is_staying(run, number, now)
    }

    #[inline]
    fn answered(&mut self, run: &RunShared<'_>, number: usize, place: usize, answer: Answer, now: u64) {
        let connection = &mut self.connections[number];
        let Some(sent) = connection.sent.remove(place) else { return };
        (connection.is_answered, connection.fruitless) = (true, 0);
        let hop = connection.hop.take();
        let (target, first, count) = match &hop {
            None => (&run.plan.targets[sent.target as usize], sent, 0),
            Some(hop) => (&hop.target, hop.first, hop.count),
        };
        let is_followed = run.plan.redirects > 0 && is_redirect(answer.status);
        let location = if is_followed { connection.exchange.take_location() } else { None };
        let Some(location) = location else { return self.settle(run, target, first, answer, now) };
        if self.counts(run, first.due) {
            self.tally.arrived(answer.status, answer.body);
            self.tally.counts.redirects += 1;
        }
        match redirected(target, answer.status, &location) {
            Ok(target) if count < run.plan.redirects => {
                self.connections[number].hop = Some(Box::new(Hop { target, count: count + 1, first }));
            }
            _ => _ = self.fail(run, first.due, Some(first.target), Failure::Redirect),
        }
    }

    #[inline]
    fn settle(&mut self, run: &RunShared<'_>, target: &Target, sent: Sent, answer: Answer, now: u64) {
        if !self.counts(run, sent.due) {
            return;
        }
        self.tally.arrived(answer.status, answer.body);
        let failure = match answer.is_body_right {
            _ if !target.expect.allows(answer.status) => Failure::Status,
            false => Failure::Body,
            true => {
                self.tally.answered(sent, answer.first_byte, now);
                self.to_finish = self.to_finish.saturating_sub(1);
                return;
            }
        };
        self.tally.unexpected(now.saturating_sub(sent.due));
        self.fail(run, sent.due, Some(sent.target), failure);
    }

    fn fail_at(&mut self, run: &RunShared<'_>, number: usize, place: usize, how: Failure) -> bool {
        let sent = self.connections[number].sent.remove(place);
        sent.is_some_and(|sent| self.fail(run, sent.due, Some(sent.target), how))
    }

    /// Requests from this place on that nobody has promised to answer are sent again elsewhere (RFC 9112 §9.3.2, RFC 9113 §6.8).
    /// Behind the first `gone_out` they have not gone out whole, so they were not sent yet.
    fn ask_again(&mut self, run: &RunShared<'_>, number: usize, from: usize, gone_out: usize) {
        let lane = self.connections[number].lane as usize;
        for place in from.. {
            let Some(sent) = self.connections[number].sent.remove(from) else { return };
            self.tally.counts.resent += u64::from(place < gone_out && self.counts(run, sent.due));
            if run.plan.is_open() {
                self.lanes[lane].returned.push_back(sent.due);
            }
            // What was sent before measuring is of nobody's number.
            if sent.due >= run.begin {
                self.to_send = self.to_send.saturating_add(1);
            }
        }
    }

    fn close(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let gone_out = self.connections[number].exchange.gone_out();
        self.ask_again(run, number, 0, gone_out);
        self.connections[number].reset();
        self.start(run, number, now);
    }

    /// Closes a connection that has failed. The oldest request on its way fails as `how` says, the others for want of a
    /// connection.
    pub(super) fn lose(&mut self, run: &RunShared<'_>, number: usize, how: Option<Failure>, now: u64) {
        let mut first = how;
        for place in 0..self.connections[number].sent.len() {
            let is_cut = self.connections[number].exchange.has_begun(place);
            let cut = if is_cut { Failure::ShortBody } else { Failure::Closed };
            self.fail_at(run, number, 0, first.take().unwrap_or(cut));
        }
        self.connections[number].hop = None;
        self.connections[number].reset();
        self.start(run, number, now);
    }

    fn broken(&mut self, run: &RunShared<'_>, number: usize, Broken(_, what): Broken, now: u64) {
        self.tally.http2.broken.get_or_insert_with(|| what.to_owned());
        // The server is told why; that it arrives is not promised.
        self.flush(run, number);
        match self.connections[number].stage {
            Stage::Opening(_) => self.connect_failed(run, number, Failure::Malformed, now),
            _ => self.lose(run, number, Some(Failure::Malformed), now),
        }
    }

    /// The connection has ended; `is_orderly`: the server closed it and did not break it.
    fn ended(&mut self, run: &RunShared<'_>, number: usize, is_orderly: bool) {
        let now = run.now();
        let connection = &mut self.connections[number];
        if !connection.is_used {
            // Closed before anything was sent, it is as good as refused.
            return self.connect_failed(run, number, Failure::Closed, now);
        }
        let whole = if is_orderly { connection.exchange.end() } else { None };
        match whole {
            Some(answer) => _ = self.happened(run, number, Event::Answered(0, answer), now),
            None => self.lose(run, number, None, now),
        }
    }

    /// Ends a connection that has nothing on its way and takes nothing more; whether it stays.
    #[inline]
    fn is_staying(&mut self, run: &RunShared<'_>, number: usize, now: u64) -> bool {
        let connection = &mut self.connections[number];
        if !connection.sent.is_empty() || !connection.exchange.is_ending() {
            return true;
        }
        connection.fruitless += u32::from(!connection.is_answered);
        if connection.fruitless >= FRUITLESS {
            connection.fruitless = 0;
            self.connect_failed(run, number, Failure::Refused, now);
            return false;
        }
        let claim = connection.claim;
        connection.reset();
        match claim {
            Some(_) => {
                connection.claim = claim;
                self.open(run, number, now);
            }
            None => self.start(run, number, now),
        }
        false
    }

    /// Requests whose answers are overdue fail. Streams end alone; a connection of HTTP/1 ends with the first, and one of HTTP/2
    /// that the server does not even read from.
    pub(super) fn give_up_overdue(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let ends = !Protocol::HAS_STREAMS || self.connections[number].exchange.is_held_up();
        while let Some(oldest) = self.connections[number].sent.front().copied()
            && oldest.sent + self.timeout <= now
        {
            self.give_up(run, Some(oldest.due), now);
            self.fail_at(run, number, 0, Failure::Timeout);
            self.connections[number].exchange.cancel(0);
        }
        if ends {
            self.lose(run, number, None, now);
        } else if self.is_staying(run, number, now) {
            self.go_on(run, number, now);
        }
    }
}
