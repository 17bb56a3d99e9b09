//! One thread of the load: an epoll, its connections, and the loop that turns events and moments into requests.
//!
//! The way of a request in a closed loop, all of it without waiting: an event → `receiving` reads and settles the answer →
//! `asking` sends the next one. In an open loop a free connection waits for its lane's next moment instead. Sockets are
//! watched for everything once and for edges only, so that no request costs a change of what is watched.

mod asking;
mod receiving;
mod report;

pub(super) use report::Report;

use super::connection::{Connection, Stage};
use super::cost;
use super::lane::Lane;
use super::{RunShared, nanoseconds};
use crate::exchange::Exchange;
use crate::machine::own_thread_waited;
use crate::plan::Plan;
use crate::tally::{Failure, TICK, Tally};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use rustix::time::{timerfd_create, timerfd_settime};
use std::os::fd::OwnedFd;
use std::time::Duration;

const EVENTS: usize = 512;
const BUFFER: usize = 64 * 1024;
/// Mark of the timer among the connections' numbers.
const TIMER: u64 = u64::MAX;
/// A number of requests that no run ends with.
const UNCOUNTED: u64 = u64::MAX;
/// Nanoseconds between two looks for what is overdue, at least.
const LOOK: u64 = 1_000_000;
/// Nanoseconds below which a wait is not worth a system call.
const NO_WAIT: u64 = 3_000;

pub(super) struct Worker<Protocol: Exchange> {
    epoll: OwnedFd,
    /// Open loop: wakes for the next request to the microsecond, which epoll's own timeout does not.
    timer: Option<OwnedFd>,
    timer_at: u64,
    lanes: Vec<Lane>,
    connections: Vec<Connection<Protocol>>,
    room: Protocol::Room,
    tally: Tally,
    buffer: Box<[u8]>,
    /// Connections that had more to read than one turn's worth.
    again: Vec<u32>,
    /// Its share of the plan's requests; [`UNCOUNTED`]: any number.
    share: u64,
    to_send: u64,
    /// Requests that have to come to an end, unless the time is up before.
    to_finish: u64,
    is_measuring: bool,
    /// When the first request was sent that belongs to the measured time alone.
    first: u64,
    next_tick: u64,
    next_look: u64,
    timeout: u64,
    /// CPU and waiting time when measuring began, or that first request.
    cost_before: (u64, u64),
    is_out_of_ports: bool,
    /// Open loop: connections that were given requests, and may be given more before they are sent.
    unsent: Vec<u32>,
}

impl<Protocol: Exchange> Worker<Protocol> {
    pub(super) fn new(plan: &Plan, thread: u32) -> Result<Worker<Protocol>, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut timer = None;
        if plan.is_open() {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let made = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            let data = epoll::EventData::new_u64(TIMER);
            epoll::add(&epoll, &made, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
            timer = Some(made);
        }
        let (lanes, connections) = shares(plan, thread);
        let share = plan.requests.map_or(UNCOUNTED, |all| {
            let (each, rest) = (all / u64::from(plan.threads), all % u64::from(plan.threads));
            each + u64::from(u64::from(thread) < rest)
        });
        let warm_up = nanoseconds(plan.warm_up);
        Ok(Worker {
            epoll,
            timer,
            timer_at: u64::MAX,
            lanes,
            connections,
            room: Protocol::Room::default(),
            tally: Tally::of(plan),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            again: Vec::new(),
            share,
            to_send: UNCOUNTED,
            to_finish: UNCOUNTED,
            is_measuring: false,
            first: u64::MAX,
            next_tick: warm_up % nanoseconds(TICK),
            next_look: 0,
            timeout: nanoseconds(plan.timeout),
            cost_before: (0, 0),
            is_out_of_ports: false,
            unsent: Vec::new(),
        })
    }

    pub(super) fn run(mut self, run: &RunShared<'_>) -> Report {
        let mut events = Vec::with_capacity(EVENTS);
        if run.begin == 0 {
            self.begin(run);
        }
        for number in 0..self.connections.len() {
            self.start(run, number, run.now());
        }
        loop {
            let now = run.now();
            if now >= self.next_tick {
                self.turn(run, now);
            }
            let is_over = run.end.is_some_and(|end| now >= end) || self.to_finish == 0;
            if is_over || run.is_stopped() {
                return Report::of(self, run, now, !is_over);
            }
            if now >= self.next_look {
                self.look(run, now);
            }
            for lane in 0..self.lanes.len() {
                self.dispatch(run, lane);
            }
            let wait = self.wait(run);
            events.clear();
            // Interrupted, or an error that the next turn would meet again: the loop's own ends bound it.
            _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait));
            for event in &events {
                let (mark, flags) = (event.data.u64(), event.flags);
                if mark != TIMER {
                    self.ready(run, mark as u32, (mark >> 32) as u32, flags);
                }
            }
            for number in std::mem::take(&mut self.again) {
                let generation = self.connections[number as usize].generation;
                self.ready(run, number, generation, epoll::EventFlags::IN);
            }
        }
    }

    /// How long to wait for an event: until the next tick, look or end, in an open loop until the next request is due.
    fn wait(&mut self, run: &RunShared<'_>) -> Timespec {
        if !self.again.is_empty() {
            return Timespec::default();
        }
        let now = run.now();
        if let Some(due) = self.next_due(run) {
            if due <= now + NO_WAIT {
                return Timespec::default();
            }
            self.set_timer(due, now);
        }
        let next = self.next_tick.min(self.next_look).min(run.end.unwrap_or(u64::MAX));
        // Whole milliseconds, rounded up: a wait that ends early would only turn the loop once more.
        let milliseconds = next.saturating_sub(now).div_ceil(1_000_000).min(999);
        Timespec { tv_sec: 0, tv_nsec: (milliseconds * 1_000_000) as _ }
    }

    /// When the next request is due that a connection is free for, and that may still be sent.
    fn next_due(&self, run: &RunShared<'_>) -> Option<u64> {
        let dues = self.lanes.iter().filter(|lane| lane.has_room()).filter_map(Lane::due);
        dues.filter(|due| self.to_send != 0 || *due < run.begin).min()
    }

    fn set_timer(&mut self, due: u64, now: u64) {
        if self.timer_at == due {
            return;
        }
        let Some(timer) = &self.timer else { return };
        let after = Duration::from_nanos(due.saturating_sub(now).max(1));
        let Ok(it_value) = Timespec::try_from(after) else { return };
        let at = Itimerspec { it_interval: Timespec::default(), it_value };
        // It fails only for times that are none; the wait's own end bounds it then.
        if timerfd_settime(timer, TimerfdTimerFlags::empty(), &at).is_ok() {
            self.timer_at = due;
        }
    }

    fn turn(&mut self, run: &RunShared<'_>, now: u64) {
        self.tally.flush(&run.board, tick_number(self.next_tick, run.begin) - 1);
        let length = nanoseconds(TICK);
        self.next_tick += (1 + now.saturating_sub(self.next_tick) / length) * length;
        if !self.is_measuring {
            self.next_tick = self.next_tick.min(run.begin);
        }
        if !self.is_measuring && now >= run.begin {
            self.begin(run);
        }
    }

    /// Measuring begins. In a closed loop what is on its way will be counted, in an open one, and of a number of requests, what starts
    /// from now on.
    fn begin(&mut self, run: &RunShared<'_>) {
        self.is_measuring = true;
        self.tally.begin();
        self.cost_before = (cost::thread_cpu(), own_thread_waited());
        if run.plan.is_open() {
            // What is still to be sent of the warm-up would keep the server busy with what is not counted.
            for lane in &mut self.lanes {
                lane.skip_to(run.begin);
            }
        } else if run.plan.requests.is_none() {
            for one in &self.connections {
                self.tally.counts.requests += one.exchange.gone_out() as u64;
            }
        }
        (self.to_finish, self.to_send) = (self.share, self.share);
        if self.next_tick <= run.begin {
            self.next_tick = run.begin + nanoseconds(TICK);
        }
    }

    fn look(&mut self, run: &RunShared<'_>, now: u64) {
        let mut next = now.saturating_add(self.timeout);
        for number in 0..self.connections.len() {
            let connection = &mut self.connections[number];
            let Some(deadline) = connection.deadline(self.timeout) else { continue };
            if deadline > now {
                next = next.min(deadline);
                continue;
            }
            let claim = connection.claim;
            match connection.stage {
                Stage::Unopened => {}
                Stage::Paused(_) => {
                    connection.stage = Stage::Unopened;
                    self.start(run, number, now);
                }
                Stage::Opening(_) => {
                    let how = connection.failure();
                    self.give_up(run, claim, now);
                    self.connect_failed(run, number, how, now);
                }
                Stage::Open => self.give_up_overdue(run, number, now),
            }
        }
        self.next_look = next.max(now + LOOK);
    }

    /// Whether what became of a request is counted: in an open loop, and of a number of requests, if it should have started in
    /// the measured time, else if it ends in it.
    #[inline]
    fn counts(&self, run: &RunShared<'_>, due: u64) -> bool {
        !self.is_measuring || due >= run.begin || !run.plan.is_open() && run.plan.requests.is_none()
    }

    /// A request is not waited for any longer: its latency is at least what it has waited, if it counts.
    fn give_up(&mut self, run: &RunShared<'_>, due: Option<u64>, now: u64) {
        if let Some(due) = due.filter(|due| self.counts(run, *due)) {
            self.tally.given_up(now.saturating_sub(due));
        }
    }

    fn fail(&mut self, run: &RunShared<'_>, due: u64, target: Option<u32>, how: Failure) -> bool {
        let counts = self.counts(run, due);
        if counts {
            self.tally.failed(how, target);
            self.to_finish = self.to_finish.saturating_sub(1);
        }
        counts
    }

    /// Takes the right to send a request; none is left near the end of a counted run.
    #[inline]
    fn may_send(&mut self, now: u64) -> bool {
        let may_send = self.to_send > 0;
        if self.is_measuring && self.first == u64::MAX {
            (self.first, self.cost_before) = (now, (cost::thread_cpu(), own_thread_waited()));
        }
        self.to_send -= u64::from(may_send);
        may_send
    }
}

/// The number of the tick that a moment is in, counted from the start of measuring.
fn tick_number(at: u64, begin: u64) -> i64 {
    (at as i64 - begin as i64).div_euclid(nanoseconds(TICK) as i64)
}

/// A thread's lanes and connections. Connections go round threads and servers in turn, so both get their part.
fn shares<Protocol: Exchange>(plan: &Plan, thread: u32) -> (Vec<Lane>, Vec<Connection<Protocol>>) {
    let origins = plan.origins();
    let servers = origins.len() as u32;
    let round = plan.connections.min(plan.threads.saturating_mul(servers));
    let (mut lanes, mut lane_of) = (Vec::new(), vec![None; origins.len()]);
    for (server, places) in (0u32..).zip(&origins) {
        let own = (server..round).step_by(servers as usize);
        let mut parts: Vec<u32> = own.map(|connection| connection % plan.threads).collect();
        parts.sort_unstable();
        parts.dedup();
        let Ok(part) = parts.binary_search(&thread) else { continue };
        let seed = u64::from(thread) << 32 | u64::from(server);
        lane_of[server as usize] = Some(lanes.len() as u32);
        lanes.push(Lane::new(plan, places, part as u32, parts.len() as u32, seed));
    }
    let connections = (thread..plan.connections)
        .step_by(plan.threads as usize)
        .filter_map(|connection| lane_of[(connection % servers) as usize])
        .map(|lane| Connection { lane, ..Connection::default() })
        .collect();
    (lanes, connections)
}
