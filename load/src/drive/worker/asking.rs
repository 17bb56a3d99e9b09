//! From nothing to a request on its way: connections that are opened, and back where they fail; when one gets a request; and
//! what does not fit its socket.

use super::Worker;
use crate::drive::RunShared;
use crate::drive::connection::{Connection, Stage, asked};
use crate::exchange::Exchange;
use crate::stream::Stream;
use crate::tally::{Failure, Sent};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::io;

/// Nanoseconds until a connection that failed is tried again: a server that is down is asked, not flooded.
const PAUSE: u64 = 100_000_000;

const ENDING: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

impl<Protocol: Exchange> Worker<Protocol> {
    /// Puts an unopened connection to work. In a closed loop it is opened. In an open one it is once a request is due that no
    /// other is free for: a server that serves one connection after the other would wait for each that stands idle. Only for
    /// pipelining all are opened at once, because room on an open one does not mean that it is free.
    pub(super) fn start(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        let is_kept = run.plan.keep_alive && (!run.plan.is_open() || run.plan.pipeline > 1);
        if let Some(due) = connection.next_hop() {
            connection.claim = Some(due);
        } else if run.plan.is_open() && !is_kept {
            connection.free_since = now;
            return self.list(number);
        } else if !is_kept {
            if !self.may_send(now) {
                return;
            }
            self.connections[number].claim = Some(now);
        }
        self.open(run, number, now);
    }

    pub(super) fn open(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        let lane = &self.lanes[connection.lane as usize];
        if connection.passed == 0 {
            connection.address = lane.address;
        }
        let address = &lane.addresses[connection.address as usize % lane.addresses.len()];
        let secure = run.tls.as_ref().zip(lane.name.as_ref());
        let opened = Stream::connect(address, &lane.way, secure).and_then(|stream| {
            let mark = u64::from(connection.generation) << 32 | number as u64;
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &stream, EventData::new_u64(mark), flags)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.stage = Stage::Opening(now);
                self.next_look = self.next_look.min(now + self.timeout);
            }
            Err(error) => self.no_connection(run, number, &error, now),
        }
    }

    pub(super) fn ready(&mut self, run: &RunShared<'_>, number: u32, generation: u32, flags: EventFlags) {
        let number = number as usize;
        let connection = self.connections.get(number).filter(|one| one.generation == generation);
        let Some(stream) = connection.and_then(|one| one.stream.as_ref()) else { return };
        let is_ending = flags.intersects(ENDING);
        if stream.is_open() {
            if flags.contains(EventFlags::OUT) {
                self.flush(run, number);
            }
            if is_ending || flags.contains(EventFlags::IN) {
                self.receive(run, number, is_ending);
            }
        } else if is_ending || flags.contains(EventFlags::OUT) || stream.is_connected() {
            self.advance(run, number);
        }
    }

    fn advance(&mut self, run: &RunShared<'_>, number: usize) {
        let connection = &mut self.connections[number];
        let Some(stream) = &mut connection.stream else { return };
        let was_connected = stream.is_connected();
        let (told, now) = (stream.advance(), run.now());
        if stream.is_connected() && !was_connected {
            let lane = &mut self.lanes[connection.lane as usize];
            (lane.address, connection.passed) = (connection.address, 0);
            connection.stage = Stage::Opening(now);
            self.tally.counts.connections += 1;
        }
        let is_open = stream.is_open();
        match told {
            Err(error) => self.no_connection(run, number, &error, now),
            Ok(()) if is_open => {
                self.opened(run, number, now);
                if run.tls.is_some() {
                    // Edges are told once: what came behind the handshake is in the socket or in rustls already.
                    self.receive(run, number, false);
                }
            }
            Ok(()) => {}
        }
    }

    /// The connection is there; over HTTP/2 it greets the server first, and comes here again.
    pub(super) fn opened(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        if !connection.exchange.greet() {
            if !connection.stream.as_ref().is_some_and(Stream::is_http2) {
                return self.connect_failed(run, number, Failure::Tls, now);
            }
            connection.stage = Stage::Opening(now);
            return self.flush(run, number);
        }
        connection.stage = Stage::Open;
        if let Some(due) = connection.claim.take() {
            self.ask(run, number, due, now);
        }
        self.go_on(run, number, now);
    }

    fn no_connection(&mut self, run: &RunShared<'_>, number: usize, why: &io::Error, now: u64) {
        self.is_out_of_ports |= Errno::from_io_error(why) == Some(Errno::ADDRNOTAVAIL);
        let how = self.connections[number].failure();
        self.connect_failed(run, number, how, now);
    }

    /// A connection came to nothing. A server is there where one of its addresses is (RFC 8305 §1), so the others are tried
    /// at once; where none takes it, the request that it was opened for fails with it, and it is tried again after a pause.
    /// In an open loop a request that is due fails; where none is, nobody missed it.
    pub(super) fn connect_failed(&mut self, run: &RunShared<'_>, number: usize, how: Failure, now: u64) {
        let connection = &mut self.connections[number];
        let place = connection.lane as usize;
        let lane = &mut self.lanes[place];
        let claim = connection.claim;
        connection.reset();
        connection.address = (connection.address + 1) % lane.addresses.len() as u32;
        if how == Failure::Connect && connection.passed as usize + 1 < lane.addresses.len() {
            connection.passed += 1;
            connection.claim = claim;
            return self.open(run, number, now);
        }
        (lane.address, connection.passed) = (connection.address, 0);
        connection.hop = None;
        connection.stage = Stage::Paused(now + PAUSE);
        self.next_look = self.next_look.min(now + PAUSE);
        let missed = match claim {
            Some(due) => Some(due),
            None if run.plan.is_open() => {
                let due = self.due(run, place, now);
                due.inspect(|due| self.take_due(run, place, *due))
            }
            None => self.may_send(now).then_some(now),
        };
        if let Some(due) = missed {
            self.fail(run, due, None, how);
        }
    }

    #[inline]
    pub(super) fn go_on(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        if let Some(due) = connection.next_hop() {
            self.ask(run, number, due, now);
        } else if !run.plan.is_open() {
            while self.connections[number].exchange.has_room(run.plan.pipeline) && self.may_send(now) {
                self.ask(run, number, now, now);
            }
        } else if !connection.is_listed && connection.exchange.has_room(run.plan.pipeline) {
            connection.free_since = now;
            let lane = connection.lane as usize;
            self.list(number);
            self.dispatch(run, lane);
        }
        self.flush(run, number);
    }

    pub(super) fn dispatch(&mut self, run: &RunShared<'_>, lane: usize) {
        self.hand_out(run, lane);
        // What has room for more goes out in one piece.
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
            if self.connections[number].stage != Stage::Open {
                self.connections[number].claim = Some(due);
                self.open(run, number, now);
                continue;
            }
            self.ask(run, number, due, now);
            if self.connections[number].exchange.has_room(run.plan.pipeline) {
                self.list(number);
                self.unsent.push(number as u32);
            } else {
                self.flush(run, number);
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
        let may_start = due < run.begin || (self.is_measuring && self.to_send != 0);
        (due <= now && !is_over && may_start).then_some(due)
    }

    /// That request starts, or has failed to. Only those of the measured time are of the plan's number.
    pub(super) fn take_due(&mut self, run: &RunShared<'_>, lane: usize, due: u64) {
        if due >= run.begin {
            _ = self.may_send(run.begin);
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

    #[inline]
    pub(super) fn ask(&mut self, run: &RunShared<'_>, number: usize, due: u64, now: u64) {
        let connection = &mut self.connections[number];
        let (place, target) = match &connection.hop {
            Some(hop) => (hop.first.target, &hop.target),
            None => {
                let place = self.lanes[connection.lane as usize].target();
                (place, &run.plan.targets[place as usize])
            }
        };
        connection.exchange.open(place, target);
        connection.sent.push_back(Sent { target: place, due, sent: now });
        connection.is_used = true;
    }

    /// Sends what waits. A connection that cannot be written to is read to its end: what the server said before it closed is
    /// still to come.
    #[inline]
    pub(super) fn flush(&mut self, run: &RunShared<'_>, number: usize) {
        let Connection { exchange, stream, sent, hop, .. } = &mut self.connections[number];
        let Some(stream) = stream else { return };
        let (written, whole, told) =
            stream.send_all(exchange, &asked(run.plan, sent, hop.as_deref()), &mut self.room);
        self.tally.counts.bytes_written += written as u64;
        let gone_out = exchange.gone_out();
        let newest = self.connections[number].sent.range(gone_out - whole..gone_out);
        let counted = newest.filter(|sent| self.counts(run, sent.due)).count();
        self.tally.counts.requests += counted as u64;
        if told.is_err() {
            self.again.push(number as u32);
        }
    }
}
