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

use crate::by_url::ByUrl;
use crate::machine::Cores;
use crate::outcome::{Generator, Http2Outcome, Latency, Outcome, ScheduleOutcome};
use crate::plan::{Mode, OPEN_CONNECTIONS, Plan, PlanError};
use crate::stream;
use crate::tally::{Board, TICK, Tally};
use cost::Share;
use millstream_net::{clock, cores, limits};
use rustls::ClientConfig;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use worker::{Report, Worker};

/// Files that a process has open beside the connections of a run.
const OTHER_FILES: u64 = 64;

/// What the threads of a run share, all of it read only but for the board.
pub(crate) struct RunShared<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    board: Board,
    /// Moments are nanoseconds from here.
    start: Instant,
    /// When measuring begins.
    begin: u64,
    /// When it ends, if by time.
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

/// Whether the plan makes sense and this system can carry it out; opens nothing.
///
/// # Errors
/// Why not.
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    plan.check()?;
    allow_files(plan)
}

/// The connections that an open loop with so many threads may have where nothing is said: [`OPEN_CONNECTIONS`], or fewer
/// where this process may not open so many files.
pub fn most_connections(threads: u32) -> u32 {
    let others = 3 * u64::from(threads) + OTHER_FILES;
    let allowed = limits::raise_nofile(u64::from(OPEN_CONNECTIONS) + others).saturating_sub(others);
    u32::try_from(allowed).unwrap_or(u32::MAX).clamp(1, OPEN_CONNECTIONS)
}

/// Carries the plan out; blocks until its end, or a tenth of a second after `stop` is set: then the outcome is that of the
/// time so far. `watch` is told how things stand, about ten times a second.
///
/// # Errors
/// The plan makes no sense here, or the system refuses what it needs; nothing has been sent then.
pub fn run(plan: &Plan, stop: &AtomicBool, watch: &mut dyn FnMut(&Progress)) -> Result<Outcome, PlanError> {
    check(plan)?;
    let tls = if plan.targets.iter().any(|target| target.tls.is_some()) {
        let verify = plan.targets.iter().any(|target| target.tls.is_some() && !target.way.insecure);
        Some(
            stream::client_configuration(verify, plan.is_http2())
                .map_err(|error| PlanError(error.to_string()))?,
        )
    } else {
        None
    };
    let mut run = RunShared {
        plan,
        stop,
        board: Board::new(plan.duration),
        start: clock::now(),
        begin: nanoseconds(plan.warm_up),
        end: plan.duration.map(|duration| nanoseconds(plan.warm_up + duration)),
        tls,
    };
    let workers = (0..plan.threads)
        .map(|thread| Worker::new(plan, thread))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| PlanError(format!("the system gives no epoll: {error}")))?;
    run.start = clock::now();
    let run = &run;
    let ends = &Ends { left: Mutex::new(workers.len()), ended: Condvar::new() };
    let (reports, machine, own) = std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .map(|worker| {
                scope.spawn(move || {
                    let _end = EndOf(ends);
                    worker.run(run)
                })
            })
            .collect();
        let (machine, own) = look_on(run, ends, watch);
        let reports: Vec<Report> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        (reports, machine, own)
    });
    Ok(outcome(run, &reports, machine, own))
}

/// Raises the limit of open files where that is needed and allowed.
fn allow_files(plan: &Plan) -> Result<(), PlanError> {
    let wanted = u64::from(plan.connections) + 3 * u64::from(plan.threads) + OTHER_FILES;
    let allowed = limits::nofile();
    if allowed >= wanted || limits::set_nofile(wanted).is_ok() {
        return Ok(());
    }
    Err(PlanError(format!(
        "{} connections need {wanted} open files, and this process may have {allowed}: see ulimit -n",
        plan.connections
    )))
}

/// How many threads still run.
struct Ends {
    left: Mutex<usize>,
    ended: Condvar,
}

/// Counts its thread as ended when dropped, be it by a panic.
struct EndOf<'a>(&'a Ends);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_all();
    }
}

/// Tells `watch` how things stand until all threads have ended; what the machine and this thread did meanwhile.
fn look_on(run: &RunShared<'_>, ends: &Ends, watch: &mut dyn FnMut(&Progress)) -> (f64, u64) {
    let mut machine = Cores::read();
    let mut own = cost::thread_cpu();
    let mut is_warming = run.begin > 0;
    let mut left = ends.left.lock().unwrap_or_else(PoisonError::into_inner);
    while *left > 0 {
        let to_begin = run.begin.saturating_sub(run.now());
        let wait = if is_warming { TICK.min(Duration::from_nanos(to_begin)) } else { TICK };
        left = ends.ended.wait_timeout(left, wait).unwrap_or_else(PoisonError::into_inner).0;
        let now = run.now();
        if is_warming && now >= run.begin {
            (is_warming, machine, own) = (false, Cores::read(), cost::thread_cpu());
        }
        drop(left);
        let (since, of) =
            if is_warming { (0, Some(run.plan.warm_up)) } else { (run.begin, run.plan.duration) };
        let elapsed = Duration::from_nanos(now.saturating_sub(since));
        watch(&Progress {
            elapsed,
            of,
            most: run.plan.requests,
            warming: is_warming,
            ..run.board.progress()
        });
        left = ends.left.lock().unwrap_or_else(PoisonError::into_inner);
    }
    drop(left);
    (Cores::read().busy_since(machine), cost::thread_cpu() - own)
}

fn outcome(run: &RunShared<'_>, reports: &[Report], machine_busy: f64, own_cpu: u64) -> Outcome {
    let plan = run.plan;
    let (mut tally, mut by_url) = (Tally::new(worker::has_service(plan)), ByUrl::of(plan));
    for report in reports {
        tally.add(&report.tally);
        by_url.add(&report.by_url);
    }
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let ended = reports.iter().map(|report| report.ended).max().unwrap_or(0);
    let measured = seconds(ended.saturating_sub(run.begin));
    let counts = tally.counts();
    let cpu = seconds(reports.iter().map(|report| report.cpu).sum::<u64>() + own_cpu);
    let shares: Vec<Share> = reports.iter().map(|report| report.share(run.begin)).collect();
    let mut generator = Generator {
        cpu_seconds: cpu,
        cpu_per_answer: if counts.answers > 0 { cpu * 1e6 / counts.answers as f64 } else { 0.0 },
        busiest_thread: shares.iter().map(|share| share.ran).fold(0.0, f64::max),
        keenest_thread: shares.iter().map(|share| (share.ran + share.waited).min(1.0)).fold(0.0, f64::max),
        send_lag_p99: tally.send_lag_p99(),
        cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
        machine_busy,
        limits: None,
    };
    let is_out_of_ports = reports.iter().any(|report| report.is_out_of_ports);
    let latency = Latency::with_unfinished(tally.latency(), tally.waiting());
    generator.limits =
        cost::limits(plan.mode, &generator, latency.percentile(99.0), &shares, is_out_of_ports);
    let slices = run.board.slices(measured);
    let before = u64::try_from(clock::wall().unix_milliseconds()).unwrap_or(0);
    Outcome {
        urls: urls(plan),
        mode: plan.mode,
        connections: plan.connections,
        threads: plan.threads,
        pipeline: plan.pipeline,
        http2: plan.is_http2().then(|| Http2Outcome::together(reports.iter().map(|report| &report.http2))),
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
        first_byte: Latency::of(tally.first_byte()),
        search: None,
        by_url: by_url.found(plan),
        schedule: plan.schedule.as_ref().map(|schedule| ScheduleOutcome::of(schedule, &slices)),
        thresholds: Vec::new(),
        slices,
        generator,
    }
}

/// Each URL once, as they first come.
fn urls(plan: &Plan) -> Vec<String> {
    let mut seen = HashSet::new();
    let urls = plan.targets.iter().map(|target| &target.url);
    urls.filter(|url| seen.insert(*url)).cloned().collect()
}

/// Whether requests start by a schedule.
fn is_open(plan: &Plan) -> bool {
    matches!(plan.mode, Mode::Open { .. })
}
