//! Answers on their way in: reading, settling, and what an ended connection means.

use super::Worker;
use crate::drive::connection::{Connection, Hop, Sent};
use crate::drive::{RunShared, is_open};
use crate::exchange::{Answer, Awaited, End};
use crate::plan::Target;
use crate::tally::{Failure, Moments};
use crate::target::{is_redirect, redirected};
use std::io::ErrorKind;
use std::sync::Arc;

/// Reads of one connection in one turn; a body without an end must not starve the others.
const READS: usize = 16;

/// What an answer to this target is read against.
pub(super) fn awaited(target: &Target) -> Awaited<'_> {
    Awaited { is_head: target.is_head, body: target.expect.body.as_deref() }
}

impl Worker {
    /// Reads what has come and does what follows from it. `is_ending`: the end is in the socket too, and no further
    /// event will tell.
    pub(super) fn receive(&mut self, run: &RunShared<'_>, number: usize, is_ending: bool) {
        for _ in 0..READS {
            let connection = &mut self.connections[number];
            let Some(stream) = &mut connection.stream else { return };
            match stream.receive(&mut self.buffer) {
                Ok(0) => return self.ended(run, number, true),
                Ok(length) => {
                    let may_have_more = is_ending || stream.may_have_more(length, self.buffer.len());
                    let now = run.now();
                    self.tally.counts.bytes_read += length as u64;
                    if !self.take(run, number, length, now) {
                        return;
                    }
                    self.go_on(run, number, now);
                    if self.is_http2 && !self.flush(run, number) {
                        return;
                    }
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

    /// The connection has room again: the next request, or a place among the free.
    #[inline]
    pub(super) fn go_on(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        if !is_open(run.plan) && self.connections[number].next_hop().is_none() {
            return self.fill(run, number, now);
        }
        let connection = &mut self.connections[number];
        if let Some(hop) = connection.next_hop() {
            let due = hop.due;
            return self.send_one(run, number, due, now);
        }
        if !connection.is_listed && connection.has_room(run.plan) {
            connection.free_since = now;
            let lane = connection.lane as usize;
            self.list(number);
            self.dispatch(run, lane);
        }
    }

    /// Takes the buffer's bytes as answers; whether the connection goes on.
    #[inline]
    fn take(&mut self, run: &RunShared<'_>, number: usize, length: usize, now: u64) -> bool {
        if self.is_http2 {
            return self.take_frames(run, number, length, now);
        }
        let mut at = 0;
        while at < length {
            let connection = &mut self.connections[number];
            let Some(oldest) = connection.sent.front_mut() else {
                // Nobody asked: more body than was announced, a second answer, a farewell such as 408, or no HTTP at all.
                // No request was lost, but the connection is (RFC 9112 §9.2).
                self.tally.counts.surplus += 1;
                self.lose(run, number, Failure::Malformed);
                self.start(run, number, now);
                return false;
            };
            // Nobody holds it but this request.
            let hop = connection.hop.clone();
            let target = Connection::target(hop.as_deref(), run.plan, oldest.target);
            match connection.reader.read(&self.buffer[at..length], awaited(target), &mut self.heads) {
                Ok((read, None)) => {
                    at += read;
                    if connection.reader.passed_interim() {
                        oldest.first_byte = 0;
                    }
                    if oldest.first_byte == 0 && connection.reader.has_begun() {
                        oldest.first_byte = now;
                    }
                }
                Ok((read, Some(answer))) => {
                    at += read;
                    let mut sent = *oldest;
                    if connection.reader.passed_interim() || sent.first_byte == 0 {
                        sent.first_byte = now;
                    }
                    connection.sent.pop_front();
                    // An answer to a request that is still being sent ends the connection (RFC 9112 §9.3).
                    let is_early = connection.unsent as usize > connection.sent.len();
                    let goes_on = answer.is_persistent && run.plan.keep_alive && !is_early;
                    if !self.follow(run, number, sent, answer) {
                        self.settle(
                            run,
                            target,
                            Sent { sent: hop.as_ref().map_or(sent.sent, |hop| hop.sent), ..sent },
                            answer,
                            now,
                        );
                    }
                    if !goes_on {
                        self.close(run, number);
                        self.start(run, number, now);
                        return false;
                    }
                }
                Err(_) => {
                    self.lose(run, number, Failure::Malformed);
                    self.start(run, number, now);
                    return false;
                }
            }
        }
        true
    }

    /// A whole answer: as expected or not.
    #[inline]
    pub(super) fn settle(
        &mut self,
        run: &RunShared<'_>,
        target: &Target,
        sent: Sent,
        answer: Answer,
        now: u64,
    ) {
        if !self.counts(run, sent.due) {
            return;
        }
        self.tally.arrived(answer.status, answer.body);
        let wrong = if !target.expect.allows(answer.status) {
            Some(Failure::Status)
        } else if !answer.is_body_right {
            Some(Failure::Body)
        } else {
            None
        };
        if let Some(how) = wrong {
            self.fail_sent(run, sent, how);
            return;
        }
        let Sent { due, sent, first_byte, target, .. } = sent;
        self.tally.answered(Moments { due, sent, first_byte, end: now });
        self.by_url.answered(target, now.saturating_sub(due));
        self.finished();
    }

    /// A redirect that is followed, or cannot be: then the request has failed. `false`: it is an answer like any other.
    fn follow(&mut self, run: &RunShared<'_>, number: usize, sent: Sent, answer: Answer) -> bool {
        let connection = &mut self.connections[number];
        let hop = connection.hop.take();
        if run.plan.redirects == 0 || !is_redirect(answer.status) {
            return false;
        }
        let Some(location) = connection.reader.take_location() else { return false };
        let count = hop.as_ref().map_or(0, |hop| hop.count) + 1;
        let from = Connection::target(hop.as_deref(), run.plan, sent.target);
        let to =
            if count > run.plan.redirects { None } else { redirected(from, answer.status, &location).ok() };
        let counts = self.counts(run, sent.due);
        if counts {
            self.tally.arrived(answer.status, answer.body);
            self.tally.counts.redirects += 1;
        }
        match to {
            None => _ = self.fail_sent(run, sent, Failure::Redirect),
            Some(target) => {
                let first_sent = hop.map_or(sent.sent, |hop| hop.sent);
                let hop = Hop { target, place: sent.target, count, due: sent.due, sent: first_sent };
                self.connections[number].hop = Some(Arc::new(hop));
            }
        }
        true
    }

    /// A request on its way came to nothing good; whether that counts.
    pub(super) fn fail_sent(&mut self, run: &RunShared<'_>, sent: Sent, how: Failure) -> bool {
        let counts = self.fail(run, sent.due, how);
        if counts {
            self.by_url.failed(sent.target);
        }
        counts
    }

    /// A request that nobody has promised to answer is sent again elsewhere. One that has not gone out whole was not sent yet.
    pub(super) fn ask_again(&mut self, run: &RunShared<'_>, lane: usize, sent: Sent, has_gone_out: bool) {
        self.tally.counts.resent += u64::from(has_gone_out && self.counts(run, sent.due));
        if is_open(run.plan) {
            self.lanes[lane].returned.push_back(sent.due);
            if sent.due < run.begin {
                return;
            }
        }
        self.give_back();
    }

    /// The connection has ended; `is_orderly`: the server closed it and did not break it.
    fn ended(&mut self, run: &RunShared<'_>, number: usize, is_orderly: bool) {
        let now = run.now();
        if self.is_http2 && !self.connections[number].sent.is_empty() {
            return self.lose_streams(run, number, now);
        }
        let connection = &mut self.connections[number];
        let Some(oldest) = connection.sent.front().copied() else {
            // Closed while free, as servers do after a while. Closed before anything was sent, it is as good as refused.
            if connection.is_used {
                self.lose(run, number, Failure::Closed);
                self.start(run, number, now);
            } else {
                self.connect_failed(run, number, Failure::Closed, now);
            }
            return;
        };
        let hop = connection.hop.clone();
        let target = Connection::target(hop.as_deref(), run.plan, oldest.target);
        match connection.reader.end(awaited(target)) {
            End::BeforeAnswer => self.lose(run, number, Failure::Closed),
            End::Answered(answer) if is_orderly => {
                connection.sent.pop_front();
                if !self.follow(run, number, oldest, answer) {
                    self.settle(run, target, oldest, answer, now);
                }
                self.close(run, number);
            }
            End::Answered(_) | End::ShortBody => self.lose(run, number, Failure::ShortBody),
        }
        self.start(run, number, now);
    }

    /// Closes a connection behind an answer that was to be its last. What was pipelined behind it nobody has promised to
    /// answer: it is sent again elsewhere (RFC 9112 §9.3.2).
    pub(super) fn close(&mut self, run: &RunShared<'_>, number: usize) {
        let lane = self.connections[number].lane as usize;
        let mut gone_out = self.connections[number].gone_out();
        while let Some(sent) = self.connections[number].sent.pop_front() {
            self.ask_again(run, lane, sent, gone_out > 0);
            gone_out = gone_out.saturating_sub(1);
        }
        self.connections[number].reset();
    }

    /// Closes a connection. The oldest request on its way fails as `how` says, those behind it for want of a connection.
    pub(super) fn lose(&mut self, run: &RunShared<'_>, number: usize, how: Failure) {
        let mut how = how;
        while let Some(sent) = self.connections[number].sent.pop_front() {
            self.fail_sent(run, sent, how);
            how = Failure::Closed;
        }
        self.connections[number].hop = None;
        self.connections[number].reset();
    }
}
