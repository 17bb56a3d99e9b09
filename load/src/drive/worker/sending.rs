//! Requests on their way out: when a connection gets one, and what does not fit its socket.

use super::Worker;
use crate::drive::RunShared;
use crate::drive::connection::{Connection, Stage, asked};
use crate::exchange::Exchange;
use crate::tally::Sent;

impl<Protocol: Exchange> Worker<Protocol> {
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
