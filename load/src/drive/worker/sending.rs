//! Requests on their way out: when a connection gets one, and what does not fit its socket.

use super::Worker;
use crate::drive::connection::{Sent, Stage};
use crate::drive::{Run, is_open};
use std::io::ErrorKind;

impl Worker {
    /// Closed loop: as many requests as the connection has room for.
    #[inline]
    pub(super) fn fill(&mut self, run: &Run<'_>, number: usize, now: u64) {
        if run.plan.pipeline == 1 {
            if self.connections[number].sent.is_empty() && self.may_send() {
                self.send_one(run, number, now, now);
            }
            return;
        }
        let room = (run.plan.pipeline as usize).saturating_sub(self.connections[number].sent.len());
        let mut added = 0;
        while added < room && self.may_send() {
            let connection = &mut self.connections[number];
            let target = self.lanes[connection.lane as usize].target();
            connection.sent.push_back(Sent { target, due: now, sent: now, first_byte: 0 });
            connection.unsent.extend_from_slice(&run.plan.targets[target as usize].request);
            connection.unsent_requests += 1;
            added += 1;
        }
        if added > 0 {
            self.connections[number].is_used = true;
            self.flush(run, number);
        }
    }

    /// Open loop: gives requests that are due to connections that are free, oldest due first.
    pub(super) fn dispatch(&mut self, run: &Run<'_>, lane: usize) {
        loop {
            let Some(due) = self.lanes[lane].pace.as_ref().map(|pace| pace.due()) else { return };
            if self.lanes[lane].free.is_empty() {
                return;
            }
            // A moment of its own for each: the lag of a late one is not lent to the next.
            let now = run.now();
            if due > now || run.end.is_some_and(|end| due >= end) || self.to_send == Some(0) {
                return;
            }
            let Some(number) = self.take_free(lane) else { return };
            _ = self.may_send();
            if let Some(pace) = &mut self.lanes[lane].pace {
                pace.advance();
            }
            let connection = &mut self.connections[number];
            let lag = now.saturating_sub(due.max(connection.free_since));
            if self.counts(run, due) {
                self.tally.lagged(lag);
            }
            if self.connections[number].stage == Stage::Open {
                self.send_one(run, number, due, now);
            } else {
                self.connections[number].claim = Some(due);
                self.open(run, number, now);
            }
        }
    }

    /// Puts a connection with room at the end of its lane's queue, once.
    pub(super) fn list(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !connection.is_listed {
            connection.is_listed = true;
            self.lanes[connection.lane as usize].free.push_back((number as u32, connection.generation));
        }
    }

    /// The connection that has been free for longest; those that are gone since are passed over.
    fn take_free(&mut self, lane: usize) -> Option<usize> {
        while let Some((number, generation)) = self.lanes[lane].free.pop_front() {
            let connection = &mut self.connections[number as usize];
            if connection.generation == generation && connection.is_listed {
                connection.is_listed = false;
                return Some(number as usize);
            }
        }
        None
    }

    /// Sends the next target's request on an open connection.
    #[inline]
    pub(super) fn send_one(&mut self, run: &Run<'_>, number: usize, due: u64, now: u64) {
        let connection = &mut self.connections[number];
        let target = self.lanes[connection.lane as usize].target();
        connection.sent.push_back(Sent { target, due, sent: now, first_byte: 0 });
        connection.is_used = true;
        let request = &*run.plan.targets[target as usize].request;
        if !connection.unsent.is_empty() {
            connection.unsent.extend_from_slice(request);
            connection.unsent_requests += 1;
        } else {
            let Some(stream) = &mut connection.stream else { return };
            match stream.send(request) {
                Ok(count) if count == request.len() => {
                    self.tally.counts.requests += 1;
                    self.tally.counts.bytes_written += count as u64;
                }
                Ok(count) => {
                    self.tally.counts.bytes_written += count as u64;
                    connection.unsent.extend_from_slice(&request[count..]);
                    connection.unsent_requests += 1;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    connection.unsent.extend_from_slice(request);
                    connection.unsent_requests += 1;
                    if error.kind() == ErrorKind::Interrupted {
                        self.flush(run, number);
                    }
                }
                // What the server said before it closed is still to be read.
                Err(_) => {
                    connection.unsent.extend_from_slice(request);
                    connection.unsent_requests += 1;
                    return self.receive(run, number, true);
                }
            }
        }
        if is_open(run.plan) && run.plan.keep_alive {
            let connection = &self.connections[number];
            if connection.stage == Stage::Open && connection.sent.len() < run.plan.pipeline as usize {
                self.list(number);
            }
        }
    }

    /// Sends what did not fit before; whether the connection is still there.
    pub(super) fn flush(&mut self, run: &Run<'_>, number: usize) -> bool {
        let connection = &mut self.connections[number];
        let Some(stream) = &mut connection.stream else { return false };
        if connection.unsent.is_empty() {
            // TLS may hold the end of a request that it has taken.
            return match stream.flush() {
                Ok(_) => true,
                Err(_) => {
                    self.receive(run, number, true);
                    false
                }
            };
        }
        let mut sent = 0;
        while sent < connection.unsent.len() {
            match stream.send(&connection.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.receive(run, number, true);
                    return false;
                }
            }
        }
        self.tally.counts.bytes_written += sent as u64;
        connection.unsent.drain(..sent);
        if connection.unsent.is_empty() {
            self.tally.counts.requests += u64::from(std::mem::take(&mut connection.unsent_requests));
        }
        true
    }
}
