//! Requests on their way out: when a connection gets one, and what does not fit its socket.
//!
//! What has not gone out is not kept: it is sent from the plan's own bytes, small requests several at a time.

use super::{BUFFER, Worker};
use crate::drive::connection::{Connection, Sent, Stage};
use crate::drive::{RunShared, is_open};
use std::io::ErrorKind;

impl Worker {
    /// Closed loop: as many requests as the connection has room for.
    #[inline]
    pub(super) fn fill(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        if self.is_http2 {
            while self.connections[number].has_room(run.plan) && self.may_send() {
                self.send_one(run, number, now, now);
            }
            return;
        }
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
            connection.unsent += 1;
            added += 1;
        }
        if added > 0 {
            self.connections[number].is_used = true;
            self.flush(run, number);
        }
    }

    /// Open loop: gives requests that are due to connections that are free, oldest due first.
    pub(super) fn dispatch(&mut self, run: &RunShared<'_>, lane: usize) {
        self.hand_out(run, lane);
        // Streams of HTTP/2 that were opened together go out in one piece.
        while let Some(number) = self.unsent.pop() {
            self.flush(run, number as usize);
        }
    }

    fn hand_out(&mut self, run: &RunShared<'_>, lane: usize) {
        while self.lanes[lane].pace.is_some() && self.lanes[lane].has_room() {
            // A moment of its own for each: the lag of a late one is not lent to the next.
            let now = run.now();
            let Some(due) = self.due(run, lane, now) else { return };
            let Some(number) = self.take_free(lane) else { break };
            self.take_due(run, lane, due);
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
        if !self.tally.counts.ran_out && self.is_measuring && self.lanes[lane].pace.is_some() {
            self.tally.counts.ran_out = self.due(run, lane, run.now()).is_some();
        }
    }

    /// When a lane's next request should have started, if it may start now. One that belongs to the measured time waits
    /// until measuring has begun, so that each is counted there or not at all.
    pub(super) fn due(&self, run: &RunShared<'_>, lane: usize, now: u64) -> Option<u64> {
        let due = self.lanes[lane].due()?;
        let is_over = run.end.is_some_and(|end| due >= end);
        let may_start = due < run.begin || (self.is_measuring && self.to_send != Some(0));
        (due <= now && !is_over && may_start).then_some(due)
    }

    /// That request starts, or has failed to. Only those of the measured time are of the plan's number.
    pub(super) fn take_due(&mut self, run: &RunShared<'_>, lane: usize, due: u64) {
        if due >= run.begin {
            _ = self.may_send();
        }
        let lane = &mut self.lanes[lane];
        if lane.returned.pop_front().is_none()
            && let Some(pace) = &mut lane.pace
        {
            pace.advance();
        }
    }

    /// Puts a connection with room, or one that can be opened, at the end of its lane's queue, once.
    pub(super) fn list(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !connection.is_listed {
            connection.is_listed = true;
            let lane = &mut self.lanes[connection.lane as usize];
            let queue = if connection.stage == Stage::Open { &mut lane.free } else { &mut lane.unopened };
            queue.push_back((number as u32, connection.generation));
        }
    }

    /// The connection that has been free for longest, or where there is none one that can be opened; those that are gone
    /// since are passed over.
    fn take_free(&mut self, lane: usize) -> Option<usize> {
        let lane = &mut self.lanes[lane];
        while let Some((number, generation)) = lane.free.pop_front().or_else(|| lane.unopened.pop_front()) {
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
    pub(super) fn send_one(&mut self, run: &RunShared<'_>, number: usize, due: u64, now: u64) {
        let connection = &mut self.connections[number];
        let hop = connection.hop.clone();
        let target = match &hop {
            None => self.lanes[connection.lane as usize].target(),
            Some(hop) => hop.place,
        };
        connection.sent.push_back(Sent { target, due, sent: now, first_byte: 0 });
        connection.is_used = true;
        if let Some(streams) = &mut connection.http2 {
            if let Some(request) = &run.plan.targets[target as usize].http2 {
                streams.open(target, request);
            }
            self.tally.counts.requests += u64::from(self.counts(run, due));
            if is_open(run.plan) {
                self.unsent.push(number as u32);
                if self.connections[number].has_room(run.plan) {
                    self.list(number);
                }
            }
            return;
        }
        connection.unsent += 1;
        if connection.unsent > 1 {
            // It goes out behind the others.
        } else if let Some(stream) = &mut connection.stream {
            let request = &*Connection::target(hop.as_deref(), run.plan, target).request;
            match stream.send(request) {
                Ok(count) if count == request.len() => {
                    connection.unsent = 0;
                    self.tally.counts.bytes_written += count as u64;
                    self.tally.counts.requests += u64::from(self.counts(run, due));
                }
                Ok(count) => {
                    connection.unsent_from = count;
                    self.tally.counts.bytes_written += count as u64;
                    if !self.flush(run, number) {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    if !self.flush(run, number) {
                        return;
                    }
                }
                // What the server said before it closed is still to be read.
                Err(_) => return self.receive(run, number, true),
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
    pub(super) fn flush(&mut self, run: &RunShared<'_>, number: usize) -> bool {
        if self.is_http2 {
            return self.flush_streams(run, number);
        }
        loop {
            let connection = &mut self.connections[number];
            let gone_out = connection.gone_out();
            let Some(stream) = &mut connection.stream else { return false };
            let sent = if connection.unsent == 0 {
                // TLS may hold the end of a request that it has taken.
                match stream.flush() {
                    Ok(_) => return true,
                    Err(error) => Err(error),
                }
            } else {
                let hop = connection.hop.as_deref();
                let request = |sent: &Sent| &*Connection::target(hop, run.plan, sent.target).request;
                let requests = connection.sent.iter().skip(gone_out).map(request);
                stream.send(unsent(requests, connection.unsent_from, &mut self.gathered))
            };
            match sent {
                Ok(count) => self.gone_out(run, number, count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                // What the server said before it closed is still to be read.
                Err(_) => {
                    self.receive(run, number, true);
                    return false;
                }
            }
        }
    }

    /// So many bytes more have gone out.
    fn gone_out(&mut self, run: &RunShared<'_>, number: usize, count: usize) {
        self.tally.counts.bytes_written += count as u64;
        let mut from = self.connections[number].unsent_from + count;
        while let Some(oldest) = oldest_unsent(&self.connections[number]) {
            let hop = self.connections[number].hop.as_deref();
            let length = Connection::target(hop, run.plan, oldest.target).request.len();
            if from < length {
                break;
            }
            from -= length;
            self.connections[number].unsent -= 1;
            self.tally.counts.requests += u64::from(self.counts(run, oldest.due));
        }
        self.connections[number].unsent_from = from;
    }
}

/// The oldest request that has not gone out whole.
fn oldest_unsent(connection: &Connection) -> Option<Sent> {
    if connection.unsent == 0 { None } else { connection.sent.get(connection.gone_out()).copied() }
}

/// What is to be sent next of these requests: what is left of the oldest, from this byte on, and where that is little, as many
/// of the next as fit a buffer.
fn unsent<'a>(
    mut requests: impl Iterator<Item = &'a [u8]>,
    from: usize,
    gathered: &'a mut Vec<u8>,
) -> &'a [u8] {
    let first = requests.next().map_or(&[][..], |first| &first[from..]);
    let mut requests = requests.peekable();
    if requests.peek().is_none() || first.len() >= BUFFER {
        return first;
    }
    gathered.clear();
    gathered.extend_from_slice(first);
    for request in requests {
        if gathered.len() + request.len() > BUFFER {
            break;
        }
        gathered.extend_from_slice(request);
    }
    gathered
}
