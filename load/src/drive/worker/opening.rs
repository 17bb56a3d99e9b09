//! Connections from nothing to open, and back where they fail.

use super::Worker;
use crate::drive::connection::Stage;
use crate::drive::{RunShared, is_open};
use crate::stream::Stream;
use crate::tally::Failure;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::io;

/// Nanoseconds until a connection that failed is tried again: a server that is down is asked, not flooded.
const PAUSE: u64 = 100_000_000;

impl Worker {
    /// Puts an unopened connection to work. In a closed loop it is opened. In an open one it is once a request is due that no
    /// other is free for: a server that serves one connection after the other would wait for each that stands idle. Only for
    /// pipelining all are opened at once, because room on an open one does not mean that it is free.
    pub(super) fn start(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        if let Some(hop) = self.connections[number].next_hop() {
            self.connections[number].claim = Some(hop.due);
            return self.open(run, number, now);
        }
        if run.plan.keep_alive && (!is_open(run.plan) || run.plan.pipeline > 1) {
            return self.open(run, number, now);
        }
        if is_open(run.plan) {
            self.connections[number].free_since = now;
            self.list(number);
        } else if self.may_send() {
            self.connections[number].claim = Some(now);
            self.open(run, number, now);
        }
    }

    /// Begins to connect.
    pub(super) fn open(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        let lane = &self.lanes[connection.lane as usize];
        if connection.passed == 0 {
            connection.address = lane.address;
        }
        let address = &lane.addresses[connection.address as usize % lane.addresses.len()];
        let opened = Stream::connect(address, &lane.way).and_then(|stream| {
            let mark = u64::from(connection.generation) << 32 | number as u64;
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &stream, EventData::new_u64(mark), flags)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.stage = Stage::Connecting(now);
                self.next_look = self.next_look.min(now + self.timeout);
            }
            Err(error) => self.no_connection(run, number, &error, now),
        }
    }

    /// Something has happened on a connection.
    pub(super) fn ready(&mut self, run: &RunShared<'_>, number: u32, generation: u32, flags: EventFlags) {
        let number = number as usize;
        let Some(connection) = self.connections.get_mut(number) else { return };
        if connection.generation != generation {
            return;
        }
        let Some(stream) = &mut connection.stream else { return };
        match connection.stage {
            Stage::Open | Stage::Greeting(_) => {
                if flags.contains(EventFlags::OUT) && !self.flush(run, number) {
                    return;
                }
                if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                    let is_ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                    self.receive(run, number, is_ending);
                }
            }
            Stage::Connecting(_) => {
                if !flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
                    return;
                }
                let connected = stream.connected();
                let now = run.now();
                match connected {
                    Ok(()) => self.connected(run, number, now),
                    Err(error) => self.no_connection(run, number, &error, now),
                }
            }
            Stage::Shaking(_) => self.shake_hands(run, number),
            Stage::Unopened | Stage::Paused(_) => {}
        }
    }

    /// The socket is connected: TLS comes next, or the first request.
    fn connected(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        let lane = &mut self.lanes[connection.lane as usize];
        (lane.address, connection.passed) = (connection.address, 0);
        self.tally.counts.connections += 1;
        if let (Some(tls), Some(name), Some(stream)) = (&run.tls, &lane.name, &mut connection.stream) {
            connection.stage = Stage::Shaking(now);
            return match stream.begin_tls(tls, name) {
                Ok(()) => self.shake_hands(run, number),
                Err(_) => self.connect_failed(run, number, Failure::Tls, now),
            };
        }
        self.opened(run, number, now);
    }

    fn shake_hands(&mut self, run: &RunShared<'_>, number: usize) {
        let Some(stream) = &mut self.connections[number].stream else { return };
        let over = stream.shake_hands();
        let now = run.now();
        match over {
            Ok(true) => {
                self.opened(run, number, now);
                // Edges are told once: what came behind the handshake is in the socket or in rustls already.
                self.receive(run, number, false);
            }
            Ok(false) => {}
            Err(_) => self.connect_failed(run, number, Failure::Tls, now),
        }
    }

    /// The connection is there; over HTTP/2 it greets the server first, and comes here again.
    pub(super) fn opened(&mut self, run: &RunShared<'_>, number: usize, now: u64) {
        if self.is_http2 && self.connections[number].http2.is_none() {
            return self.greet(run, number, now);
        }
        let connection = &mut self.connections[number];
        connection.stage = Stage::Open;
        if let Some(due) = connection.claim.take() {
            return self.send_one(run, number, due, now);
        }
        connection.free_since = now;
        if is_open(run.plan) {
            self.list(number);
            let lane = self.connections[number].lane as usize;
            self.dispatch(run, lane);
        } else {
            self.fill(run, number, now);
        }
    }

    /// There is no connection; says so once where the reason lies here.
    fn no_connection(&mut self, run: &RunShared<'_>, number: usize, why: &io::Error, now: u64) {
        let is = |error: Errno| why.raw_os_error() == Some(error.raw_os_error());
        self.is_out_of_ports |= is(Errno::ADDRNOTAVAIL);
        self.connect_failed(run, number, Failure::Connect, now);
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
            None if is_open(run.plan) => {
                let due = self.due(run, place, now);
                due.inspect(|due| self.take_due(run, place, *due))
            }
            None => self.may_send().then_some(now),
        };
        if let Some(due) = missed {
            self.fail(run, due, how);
        }
    }
}
