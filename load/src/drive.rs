//! Carries a plan out: one loop for every mode, on threads of its own, and the figures that come of it.
//!
//! [`run`] blocks until the plan's end. Each thread has one epoll and its share of the connections (`worker`); nothing is
//! shared between them on the way of a request. The calling thread only looks on: ten times a second it asks the board
//! how things stand. What a figure is worth is judged at the end by `cost`.

mod cost;
mod lane;
mod connection;
mod worker;
#[cfg(test)]
mod tests;

pub use crate::progress::Progress;

use crate::exchange::Exchange;
use crate::machine::Cores;
use crate::multiplex::Multiplex;
use crate::outcome::{Counts, Generator, Latency, Outcome, SHORTEST, ScheduleOutcome};
use crate::pipeline::Pipeline;
use crate::plan::{Mode, OPEN_CONNECTIONS, Plan, PlanError};
use crate::stream;
use crate::tally::{Board, TICK, Tally};
use millstream_net::{clock, cores, limits};
use rustls::ClientConfig;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use worker::{Report, Worker};

/// Files that a process has open besides those of the threads and connections of a run.
const OTHER_FILES: u64 = 64;

pub(crate) struct RunShared<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    board: Board,
    /// Moments are nanoseconds from here.
    start: Instant,
    begin: u64,
    end: Option<u64>,
    tls: Option<Arc<ClientConfig>>,
}

impl RunShared<'_> {
    fn now(&self) -> u64 {
        nanoseconds(clock::now().duration_since(self.start))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn other_files(threads: u32) -> u64 {
    3 * u64::from(threads) + OTHER_FILES
}

/// Whether the plan makes sense and this system can carry it out; opens nothing. Errors: why not.
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    plan.check()?;
    let connections = plan.connections;
    let wanted = u64::from(connections) + other_files(plan.threads);
    // The limit is raised where that is needed and allowed.
    let allowed = limits::nofile();
    if allowed >= wanted || limits::set_nofile(wanted).is_ok() {
        return Ok(());
    }
    Err(PlanError(format!(
        "{connections} connections need {wanted} open files, but the limit is {allowed}: raise it with ulimit -n"
    )))
}

/// The connections that an open loop with so many threads may have where nothing is said: [`OPEN_CONNECTIONS`], or fewer
/// where this process may not open so many files.
pub fn most_connections(threads: u32) -> u32 {
    let others = other_files(threads);
    let allowed = limits::raise_nofile(u64::from(OPEN_CONNECTIONS) + others).saturating_sub(others);
    u32::try_from(allowed).unwrap_or(u32::MAX).clamp(1, OPEN_CONNECTIONS)
}

/// Carries the plan out; blocks until its end, or a tenth of a second after `stop` is set: then the outcome is that of the
/// time so far. `watch` is told how things stand, about ten times a second. Errors: the plan makes no sense here, or the
/// system refuses what it needs; nothing has been sent then.
pub fn run(plan: &Plan, stop: &AtomicBool, watch: &mut dyn FnMut(&Progress)) -> Result<Outcome, PlanError> {
    check(plan)?;
    let secure = || plan.targets.iter().filter(|target| target.tls.is_some());
    let verify = secure().any(|target| !target.way.insecure);
    let tls = secure().next().map(|_| stream::client_configuration(verify, plan.is_http2())).transpose()?;
    match plan.is_http2() {
        false => run_threads::<Pipeline>(plan, tls, stop, watch),
        true => run_threads::<Multiplex>(plan, tls, stop, watch),
    }
}

fn run_threads<Protocol: Exchange>(
    plan: &Plan,
    tls: Option<Arc<ClientConfig>>,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Outcome, PlanError> {
    let workers = (0..plan.threads)
        .map(|thread| Worker::<Protocol>::new(plan, thread))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PlanError(format!("epoll is not available: {error}")))?;
    let run = &RunShared {
        plan,
        stop,
        board: Board::new(plan.duration),
        start: clock::now(),
        begin: nanoseconds(plan.warm_up),
        end: plan.duration.map(|duration| nanoseconds(plan.warm_up + duration)),
        tls,
    };
    let (tell, told) = mpsc::channel();
    Ok(std::thread::scope(|scope| {
        for worker in workers {
            let tell = tell.clone();
            scope.spawn(move || _ = tell.send(worker.run(run)));
        }
        drop(tell);
        look_on(run, &told, watch)
    }))
}

fn look_on(run: &RunShared<'_>, told: &Receiver<Report>, watch: &mut dyn FnMut(&Progress)) -> Outcome {
    let (mut machine, mut own) = (Cores::read(), cost::thread_cpu());
    let (mut reports, mut is_warming) = (Vec::new(), run.begin > 0);
    loop {
        let to_begin = run.begin.saturating_sub(run.now());
        let wait = if is_warming { TICK.min(Duration::from_nanos(to_begin)) } else { TICK };
        match told.recv_timeout(wait) {
            Ok(report) => reports.push(report),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return outcome(run, &reports, Cores::read().since(machine).0, cost::thread_cpu() - own);
            }
        }
        let now = run.now();
        if is_warming && now >= run.begin {
            (is_warming, machine, own) = (false, Cores::read(), cost::thread_cpu());
        }
        let (since, of) =
            if is_warming { (0, Some(run.plan.warm_up)) } else { (run.begin, run.plan.duration) };
        watch(&Progress {
            elapsed: Duration::from_nanos(now.saturating_sub(since)),
            of,
            most: run.plan.requests,
            warming: is_warming,
            ..run.board.progress()
        });
    }
}

fn outcome(run: &RunShared<'_>, reports: &[Report], machine_busy: f64, own_cpu: u64) -> Outcome {
    let plan = run.plan;
    let mut tally = Tally::of(plan);
    reports.iter().for_each(|report| tally.add(&report.tally));
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let ended = reports.iter().map(|report| report.ended).max().unwrap_or(0);
    let began = reports.iter().map(|report| report.began).min().unwrap_or(run.begin);
    let counts = tally.counts();
    let measured = seconds(ended.saturating_sub(began)).max(last_interval(plan, &counts));
    let cpu = seconds(reports.iter().map(|report| report.cpu).sum::<u64>() + own_cpu);
    let most = |share: fn(&Report) -> f64| reports.iter().map(share).fold(0.0, f64::max);
    let mut generator = Generator {
        cpu_seconds: cpu,
        cpu_per_answer: if counts.answers > 0 { cpu * 1e6 / counts.answers as f64 } else { 0.0 },
        busiest_thread: most(|report| report.ran.min(1.0)),
        keenest_thread: most(|report| (report.ran + report.waited).min(1.0)),
        send_lag_p99: tally.send_lag_p99(),
        cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
        machine_busy,
        limits: None,
    };
    let is_out_of_ports = reports.iter().any(|report| report.is_out_of_ports);
    let latency = Latency::with_unfinished(&tally.total.latency, &tally.waiting);
    let waited = most(|report| report.waited);
    if is_out_of_ports || counts.answers > 0 && measured >= SHORTEST {
        let p99 = latency.percentile(99.0);
        generator.limits = cost::limits(plan, &generator, p99, waited, is_out_of_ports);
    }
    let slices = run.board.slices(seconds(ended.saturating_sub(run.begin)));
    let before = u64::try_from(clock::wall().unix_milliseconds()).unwrap_or(0);
    Outcome {
        urls: urls(plan),
        mode: plan.mode,
        connections: plan.connections,
        threads: plan.threads,
        pipeline: plan.pipeline,
        http2: plan.is_http2().then(|| tally.http2.clone()),
        keep_alive: plan.keep_alive,
        tls: run.tls.is_some(),
        began_unix_milliseconds: before.saturating_sub(run.now().saturating_sub(run.begin) / 1_000_000),
        warm_up: plan.warm_up.as_secs_f64(),
        seconds: measured,
        interrupted: reports.iter().any(|report| report.is_interrupted),
        limit: None,
        latency,
        counts,
        service: Latency::of(tally.service()),
        first_byte: Latency::of(&tally.first_byte),
        search: None,
        by_url: tally.by_url.found(plan),
        schedule: plan.schedule.as_ref().map(|schedule| ScheduleOutcome::of(schedule, &slices)),
        thresholds: Vec::new(),
        slices,
        generator,
    }
}

/// How long a number of requests takes at one rate, seconds: as many intervals, the one behind the last of them included; 0 of
/// any other plan, and of one that was ended before.
fn last_interval(plan: &Plan, counts: &Counts) -> f64 {
    let ended = counts.answers + counts.errors.total();
    match plan.mode {
        Mode::Open { rate, .. } if plan.schedule.is_none() && plan.requests == Some(ended) => {
            ended as f64 / rate
        }
        _ => 0.0,
    }
}

fn urls(plan: &Plan) -> Vec<String> {
    let mut seen = HashSet::new();
    let urls = plan.targets.iter().map(|target| &target.url);
    urls.filter(|url| seen.insert(*url)).cloned().collect()
}
