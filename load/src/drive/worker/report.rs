//! A worker's final report: what it counted, what had no answer when it ended, and what became of its time.

use super::{Worker, tick_number};
use crate::drive::RunShared;
use crate::drive::connection::Stage;
use crate::drive::cost;
use crate::exchange::Exchange;
use crate::machine::own_thread_waited;
use crate::pace::Pace;
use crate::tally::Tally;

/// The share of the measured time that a request waits at least on a connection that counts as silent.
const SILENT: f64 = 0.9;

pub(in crate::drive) struct Report {
    pub(in crate::drive) tally: Tally,
    /// Its CPU time while measuring, nanoseconds.
    pub(in crate::drive) cpu: u64,
    /// The shares of the time in which it ran, and could have run but waited for a core, 0 to 1.
    pub(in crate::drive) ran: f64,
    pub(in crate::drive) waited: f64,
    /// When measuring began: with the first request where their number is given.
    pub(in crate::drive) began: u64,
    pub(in crate::drive) ended: u64,
    pub(in crate::drive) is_out_of_ports: bool,
    /// The user ended it, and not the plan.
    pub(in crate::drive) is_interrupted: bool,
}

impl Report {
    pub(super) fn of<Protocol: Exchange>(
        mut worker: Worker<Protocol>,
        run: &RunShared<'_>,
        now: u64,
        is_interrupted: bool,
    ) -> Report {
        let ended = now.min(run.end.unwrap_or(u64::MAX));
        let last = ended.saturating_sub(1).max(run.begin);
        if worker.is_measuring {
            if run.plan.is_open() {
                count_unfinished(&mut worker, run, ended);
            } else {
                count_waiting(&mut worker, run, ended);
            }
            worker.tally.flush(&run.board, tick_number(last, run.begin));
        } else {
            worker.tally.begin();
        }
        let since = |now: u64, before: u64| if worker.is_measuring { now.saturating_sub(before) } else { 0 };
        let cpu = since(cost::thread_cpu(), worker.cost_before.0);
        let waited = since(own_thread_waited(), worker.cost_before.1);
        let began = run.plan.requests.map_or(run.begin, |_| worker.first.min(ended).max(run.begin));
        let time = ended.saturating_sub(began).max(1) as f64;
        Report {
            tally: worker.tally,
            cpu,
            ran: cpu as f64 / time,
            waited: waited as f64 / time,
            began,
            ended: ended.max(run.begin),
            is_out_of_ports: worker.is_out_of_ports,
            is_interrupted,
        }
    }
}

/// Closed loop: connections that never had an answer and whose request has waited nearly all the time, and what has waited on
/// others for longer than any answer took. Each connection has a request on its way when a run ends; that is no wait to tell of.
fn count_waiting<Protocol: Exchange>(worker: &mut Worker<Protocol>, run: &RunShared<'_>, ended: u64) {
    let nearly_all = (ended.saturating_sub(run.begin) as f64 * SILENT) as u64;
    let longest = worker.tally.longest().saturating_mul(1_000);
    for one in &worker.connections {
        let opening = if let Stage::Opening(since) = one.stage { Some(since) } else { None };
        let first = opening.or(one.sent.front().map(|sent| sent.sent));
        if !one.is_answered && first.is_some_and(|since| ended.saturating_sub(since) > nearly_all) {
            worker.tally.counts.silent += 1;
            continue;
        }
        let waited = one.sent.iter().map(|sent| ended.saturating_sub(sent.due));
        waited.filter(|waited| *waited > longest).for_each(|waited| worker.tally.unfinished(waited, 1));
    }
}

/// Open loop: what should have started in the measured time and has no answer, sent or not, has waited until now.
fn count_unfinished<Protocol: Exchange>(worker: &mut Worker<Protocol>, run: &RunShared<'_>, ended: u64) {
    let tally = &mut worker.tally;
    for one in &worker.connections {
        let dues = one.sent.iter().map(|sent| sent.due).chain(one.claim);
        for due in dues.filter(|due| (run.begin..ended).contains(due)) {
            tally.unfinished(ended - due, 1);
        }
    }
    let mut left = worker.to_send;
    for due in worker.lanes.iter().flat_map(|lane| &lane.returned).filter(|due| **due >= run.begin) {
        tally.unfinished(ended.saturating_sub(*due), 1);
        left = left.saturating_sub(1);
    }
    let mut paces: Vec<&mut Pace> = worker.lanes.iter_mut().filter_map(|lane| lane.pace.as_mut()).collect();
    paces.iter_mut().for_each(|pace| pace.skip_to(run.begin));
    let waiting: Vec<u64> = paces.iter().map(|pace| pace.left_until(ended)).collect();
    let all: u64 = waiting.iter().sum();
    // Of a plan's number each server has its part.
    let many = left;
    for (pace, waiting) in paces.into_iter().zip(waiting) {
        let part = part_of(many, waiting, all).min(left);
        left -= pace.each_until(ended, part, |due, count| tally.unfinished(ended.saturating_sub(due), count));
    }
}

fn part_of(many: u64, part: u64, all: u64) -> u64 {
    let share = (u128::from(many) * u128::from(part)).div_ceil(u128::from(all.max(1)));
    u64::try_from(share).unwrap_or(u64::MAX)
}
