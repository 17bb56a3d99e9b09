//! Runs everything of one row: the servers alone, the proxy alone, all together, in turn and over again.

use super::subject::{PATIENCE, Server, Servers, Subject, answer};
use super::{Alone, Below, CapacityRow, Pool, Rounds, Setting, Together, sentence};
use crate::party::{MeteredRun, Place, Process, TOO_SHORT, Whose, free_address};
use crate::plan::{Plan, Target};
use crate::progress::Live;
use crate::rank::{self, Spread};
use crate::stop::{CutShort, Stop, Stopped};
use crate::unmeasured::Unmeasured;
use crate::verdict::{Evidence, Limit, Once, Run, Verdict, judge};
use fastrand::Rng;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// How long a process may take until it accepts connections.
const START: Duration = Duration::from_secs(15);
/// Below so many connections in use there is nothing to be shown with fewer.
const WORTH_SHOWING: f64 = 4.0;
const TOO_LITTLE: u32 = 1;

#[derive(Debug)]
pub struct Measured {
    pub row: CapacityRow,
    /// Where it was stopped: the row is of fewer rounds then, or lacks what happens with fewer connections.
    pub cut_short: Option<CutShort>,
    pub runs: u32,
}

/// Measures one row. Blocks; ends early once the user wants to stop. Every process that is started ends with it. Errors: see
/// [`Unmeasured`]; [`Unmeasured::Stopped`] where not everything had been measured once yet.
pub fn measure(
    subject: &Subject,
    setting: &Setting,
    stop: &Stop,
    live: &mut Live,
) -> Result<Measured, Unmeasured> {
    let servers = Servers::find(subject, setting, stop)?;
    let addresses: Vec<SocketAddr> = servers.all.iter().map(|server| server.address).collect();
    let connections = setting.connections.saturating_mul(addresses.len() as u32);
    let mut bench = Measuring { subject, setting, stop, live, servers, addresses, done: 0, of: 0 };
    let (_nothing, nothing) = bench.start(connections, None)?;
    let (proxy, address) = bench.start(connections, Some(nothing))?;
    let behind = bench.servers.behind(address);
    let through = Once::ask(Vec::new(), || answer(&behind, stop))?;
    let alone = bench.servers.all.iter().map(|Server { target, .. }| {
        Stretch::of(&format!("{} alone", target.url), target.clone(), setting.connections, Vec::new())
    });
    let mut stretches: Vec<Stretch> = alone.collect();
    for (what, path) in [("the proxy by itself", CEILING), ("the proxy in front of nothing", PASSING)] {
        let target = setting.target(&format!("http://{address}{path}"), true)?;
        stretches.push(Stretch::of(what, target, connections, Vec::new()));
    }
    let watched = bench.servers.processes(&proxy);
    stretches.push(Stretch::of("all behind the proxy", behind, connections, watched));

    bench.of = setting.rounds.max(1) * stretches.len() as u32 + 1;
    let mut ended = bench.rounds(&mut stretches);
    drop(proxy);
    let Some(mut row) = bench.row(through, &stretches) else {
        return ended.and(Err(Stopped.into()));
    };
    if ended.is_ok() && row.pool.in_use >= WORTH_SHOWING {
        ended = bench.start(TOO_LITTLE, Some(nothing)).and_then(|(proxy, address)| {
            let (behind, watched) = (bench.servers.behind(address), bench.servers.processes(&proxy));
            let run = bench.run(&Stretch::of("with few kept connections", behind, connections, watched))?;
            let (rate, opened_per_second, time_wait) = (run.outcome.rate(), opened(&run), run.time_wait);
            let below = Below { keepalive: TOO_LITTLE, rate, opened_per_second, time_wait };
            row.below = Some(below).filter(|_| run.found.seconds > 0.0);
            Ok(())
        });
    }
    row.sentence = sentence(&row);
    let cut_short = match ended {
        Ok(()) => None,
        Err(Unmeasured::Stopped(_)) => Some(CutShort { measured: bench.done, of: bench.of }),
        Err(error) => return Err(error),
    };
    Ok(Measured { row, cut_short, runs: bench.of })
}

/// What is measured once in each round, and what came of it so far.
struct Stretch {
    what: String,
    target: Target,
    connections: u32,
    watched: Vec<(&'static str, Whose)>,
    runs: Vec<MeteredRun>,
}

/// Connections that a run opened per second beside the generator's. The kernel counts those of the whole machine, of which no more
/// than one for each answer can be the proxy's.
fn opened(run: &MeteredRun) -> f64 {
    let own = run.outcome.counts.connections as f64 / run.outcome.seconds.max(f64::MIN_POSITIVE);
    (run.found.opened_per_second - own).clamp(0.0, run.outcome.rate())
}

impl Stretch {
    fn of(what: &str, target: Target, connections: u32, watched: Vec<(&'static str, Whose)>) -> Stretch {
        Stretch { what: what.to_owned(), target, connections, watched, runs: Vec::new() }
    }

    /// Its rounds, the figures of the one that is nearest to the median, and that one; `None` of none.
    fn told(&self) -> Option<(Rounds, Run, &MeteredRun)> {
        let rates: Vec<f64> = self.runs.iter().map(|run| run.outcome.rate()).collect();
        let Spread { median, least, most } = Spread::of(&rates);
        let run = rank::nearest(&self.runs, median, |run| run.outcome.rate())?;
        let rounds = Rounds {
            low: least,
            high: most,
            rates,
            p50: run.outcome.latency.percentile(50.0),
            p99: run.outcome.latency.percentile(99.0),
        };
        Some((rounds, Run { rate: median, ..Run::of(&run.outcome) }, run))
    }
}

struct Measuring<'a> {
    subject: &'a Subject,
    setting: &'a Setting,
    stop: &'a Stop,
    live: &'a mut Live,
    servers: Servers,
    addresses: Vec<SocketAddr>,
    done: u32,
    of: u32,
}

impl Measuring<'_> {
    /// Starts a proxy whose workers keep so many idle connections, and waits until it accepts connections. `nothing` is the server that
    /// answers at once; `None`: that is the one to be started.
    fn start(&self, kept: u32, nothing: Option<SocketAddr>) -> Result<(Process, SocketAddr), Unmeasured> {
        let Measuring { setting, servers, addresses, .. } = self;
        let name = if nothing.is_some() { "the proxy" } else { "the server that responds at once" };
        let (address, place) = (free_address()?, Place::new()?);
        let (nothing, body) = (nothing.unwrap_or(address), servers.once().body_bytes as usize);
        let text = configuration(addresses, nothing, kept, address, &setting.workers, body);
        place.write("nginx.conf", &text)?;
        let mut command = Command::new(&setting.proxy);
        // Where it is started.
        command.args(["-p", "./", "-c", "nginx.conf", "-e", "stderr"]);
        let mut process = Process::start(name, command, place)?.heeding(self.stop);
        process.wait_for(address, START)?;
        Ok((process, address))
    }

    /// Everything once in each round, in an order by chance; what an error ends keeps what there is.
    fn rounds(&mut self, stretches: &mut [Stretch]) -> Result<(), Unmeasured> {
        let mut random = Rng::with_seed(self.setting.seed);
        let mut order: Vec<usize> = (0..stretches.len()).collect();
        for _ in 0..self.setting.rounds.max(1) {
            random.shuffle(&mut order);
            for &turn in &order {
                let run = self.run(&stretches[turn])?;
                stretches[turn].runs.push(run);
            }
        }
        Ok(())
    }

    fn run(&mut self, stretch: &Stretch) -> Result<MeteredRun, Unmeasured> {
        // A request of its own stands behind whatever the run before left: a worker may wait on a connection that the proxy keeps.
        answer(&stretch.target, self.stop)?;
        let threads = self.setting.threads.clamp(1, stretch.connections.max(1));
        let mut plan =
            Plan::closed(stretch.target.clone(), stretch.connections, threads, self.setting.duration);
        plan.warm_up = self.setting.warm_up;
        plan.timeout = PATIENCE;
        let live = &mut *self.live;
        live.label(&format!("{} of {}, {}: {}", self.done + 1, self.of, self.subject.name, stretch.what));
        let mut watch = |progress: &_| live.show(progress);
        let watched = stretch.watched.clone();
        let run = MeteredRun::of(&plan, watched, &self.addresses, self.stop, &mut watch)?;
        self.stop.go_on()?;
        self.done += 1;
        if run.outcome.counts.answers == 0 {
            let why = format!("{}: {} gave no correct response under load", self.subject.name, stretch.what);
            return Err(why.into());
        }
        Ok(run)
    }

    /// The row, from the median round of each, but for its sentence, which comes when all is known; `None` where something was not
    /// measured once. The stretches are the servers alone, the proxy by itself, in front of nothing, and in front of all.
    fn row(&self, through: Once, stretches: &[Stretch]) -> Option<CapacityRow> {
        let Measuring { subject, setting, servers, .. } = self;
        let told = stretches.iter().map(Stretch::told).collect::<Option<Vec<_>>>()?;
        let (alone, [(_, ceiling, _), (_, passing, _), (rounds, run, behind)]) = told.split_last_chunk()?;
        let of_server = |(server, (rounds, run, middle)): (&Server, &(Rounds, Run, &MeteredRun))| Alone {
            url: server.target.url.clone(),
            run: *run,
            rounds: rounds.clone(),
            once: server.once,
            is_floor: middle.outcome.generator.limits.is_some(),
        };
        let once = servers.once();
        // While one of them lets nobody wait, they do not together.
        let runs = || alone.iter().map(|(_, run, _)| *run);
        let quickest = runs().min_by(|one, other| one.first_byte.total_cmp(&other.first_byte));
        let evidence = Evidence {
            direct: Some(once),
            through: Some(through),
            alone: quickest.map(|run| Run { rate: runs().map(|run| run.rate).sum(), ..run }),
            ..Evidence::of(&behind.outcome, &behind.found, servers.are_local())
        };
        let verdict = match behind.found.seconds > 0.0 {
            true => judge(&evidence),
            false => Verdict { limit: Limit::Unknown, why: vec![TOO_SHORT.to_owned()], doubts: Vec::new() },
        };
        // Where the servers are not what a request waits for, most of its time is not theirs.
        let response = if verdict.limit == Limit::Api { run.latency } else { once.total.min(run.latency) };
        Some(CapacityRow {
            name: subject.name.clone(),
            connections: setting.connections,
            service_seconds: subject.service.map(|service| service.as_secs_f64()),
            alone: servers.all.iter().zip(alone).map(of_server).collect(),
            ceiling: ceiling.rate,
            passing: passing.rate,
            pool: Pool::needed(run.rate, response, run.connections),
            together: Together {
                run: *run,
                rounds: rounds.clone(),
                once: through,
                machine_busy: behind.found.machine_busy,
                opened_per_second: opened(behind),
                time_wait: behind.time_wait,
            },
            below: None,
            verdict,
            sentence: String::new(),
        })
    }
}

/// Where the proxy answers by itself.
const CEILING: &str = "/.millstream-capacity/returned";
/// Where it passes on what a server answers at once.
const PASSING: &str = "/.millstream-capacity/passed";
const LARGEST_BODY: usize = 4_096;

/// The text for a process that listens on `listen` with so many workers, each of which keeps so many idle connections to the
/// `servers`; `nothing` is the process that answers at once. Made-up answers have `body` bytes, at most 4096.
pub fn configuration(
    servers: &[SocketAddr],
    nothing: SocketAddr,
    keepalive: u32,
    listen: SocketAddr,
    workers: &str,
    body: usize,
) -> String {
    let servers: String = servers.iter().map(|server| format!("server {server};\n")).collect();
    let body = "x".repeat(body.min(LARGEST_BODY));
    // A server that is measured alone must not have a worker waiting on an idle connection.
    format!(
        "worker_processes {workers};\ndaemon off;\npid capacity.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 16384; }}\nhttp {{\naccess_log off;\nkeepalive_timeout 65;\n\
         keepalive_requests 100000000;\ndefault_type text/plain;\n\
         upstream apis {{\n{servers}keepalive {keepalive};\nkeepalive_requests 100000000;\nkeepalive_timeout 100ms;\n}}\n\
         upstream nothing {{\nserver {nothing};\nkeepalive 1024;\nkeepalive_requests 100000000;\n}}\n\
         server {{\nlisten {listen};\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\n\
         proxy_set_header Host $http_host;\nlocation = {CEILING} {{ return 200 \"{body}\"; }}\n\
         location = {PASSING} {{ proxy_pass http://nothing{CEILING}; }}\n\
         location / {{ proxy_pass http://apis; }}\n}}\n}}\n"
    )
}
