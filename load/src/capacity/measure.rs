//! Runs everything of one row: the servers alone, the proxy alone, all together, in turn and over again.

use super::configuration::{CEILING, Front, PASSING, configuration};
use super::subject::{API, GENERATOR, PATIENCE, Server, Servers, Subject, answer, ask};
use super::{Alone, Below, CapacityRow, Rounds, Setting, Together, sentence};
use crate::drive;
use crate::outcome::Outcome;
use crate::party::{Meter, Metered, Place, Process, Spent, Whose, free_address, link_speed, time_wait};
use crate::plan::{Plan, Target};
use crate::progress::Progress;
use crate::rank::median;
use crate::sizing::Pool;

use crate::stop::{CutShort, Stop};
use crate::unmeasured::Unmeasured;
use crate::verdict::{Evidence, Limit, Once, Run, judge};
use fastrand::Rng;
use millstream_net::cores;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// How long a process may take until it accepts connections.
const START: Duration = Duration::from_secs(15);
/// Below so many connections in use there is nothing to be shown with fewer.
const WORTH_SHOWING: f64 = 4.0;
/// `keepalive` that is too little.
const TOO_LITTLE: u32 = 1;
/// The name under which the proxy is watched.
const PROXY: &str = "proxy";

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// What is being measured, in a few words.
    pub what: &'a str,
    /// How many runs came before it.
    pub done: u32,
    /// How many runs there will be.
    pub of: u32,
    /// How this run stands.
    pub progress: &'a Progress,
}

/// What came of a subject.
#[derive(Debug)]
pub struct Measured {
    /// Its row.
    pub row: CapacityRow,
    /// Where it was stopped: the row is of fewer rounds then, or lacks what happens with fewer connections.
    pub cut_short: Option<CutShort>,
    /// How many runs it has.
    pub runs: u32,
}

/// Measures one row. Blocks; ends early once the user wants to stop. Every process that is started ends with it.
///
/// # Errors
/// See [`Unmeasured`]; [`Unmeasured::Stopped`] where not everything had been measured once yet.
pub fn measure(
    subject: &Subject,
    setting: &Setting,
    stop: &Stop,
    watch: &mut dyn FnMut(&Moment<'_>),
) -> Result<Measured, Unmeasured> {
    let servers = Servers::find(subject, setting, stop)?;
    let count = servers.all.len() as u32;
    let connections = setting.connections.saturating_mul(count);
    let body = servers.once().map_or(0, |once| once.body_bytes as usize);
    let names: Vec<String> = servers.all.iter().map(|server| server.address.to_string()).collect();
    let (_nothing, nothing) = start("the server that answers at once", setting, stop, |listen| {
        configuration(Front::Nothing, listen, &setting.workers, body)
    })?;
    let proxied = |keepalive| {
        let front = Front::Proxy { servers: &names, nothing, keepalive };
        start("the proxy", setting, stop, |listen| configuration(front, listen, &setting.workers, body))
    };
    let (proxy, address) = proxied(connections)?;
    let behind = servers.behind(address, None, setting)?;
    let through = ask(&behind.url, &behind, stop)?;

    let runs = setting.rounds.max(1) * (count + 3) + 1;
    let mut bench = Measuring { setting, stop, watch, name: &subject.name, done: 0, of: runs };
    let mut taken = AllRounds::default();
    let mut ended = taken.rounds(&mut bench, &servers, &behind, connections, (&proxy, address));
    drop(proxy);
    if !taken.is_whole() {
        ended?;
        return Err(Unmeasured::Stopped);
    }
    let mut row = taken.row(subject, setting, &servers, through);
    if ended.is_ok() && row.pool.in_use >= WORTH_SHOWING {
        ended = proxied(TOO_LITTLE).and_then(|(proxy, address)| {
            let target = servers.behind(address, None, setting)?;
            row.below = Some(bench.below(&servers, &target, connections, &proxy)?);
            Ok(())
        });
    }
    row.sentence = sentence(&row);
    let cut_short = match ended {
        Ok(()) => None,
        Err(Unmeasured::Stopped) => Some(CutShort { measured: bench.done, of: runs }),
        Err(error) => return Err(error),
    };
    Ok(Measured { row, cut_short, runs })
}

/// Starts a process with a configuration and waits until it accepts connections.
fn start(
    name: &str,
    setting: &Setting,
    stop: &Stop,
    text: impl FnOnce(SocketAddr) -> String,
) -> Result<(Process, SocketAddr), Unmeasured> {
    let address = free_address()?;
    let place = Place::new()?;
    place.write("nginx.conf", &text(address))?;
    let mut command = Command::new(&setting.proxy);
    // Where it is started.
    command.args(["-p", "./", "-c", "nginx.conf", "-e", "stderr"]);
    let mut party = Process::start(name, command, place)?.heeding(stop);
    party.wait_for(address, START)?;
    Ok((party, address))
}

/// What all runs have in common.
struct Measuring<'a> {
    setting: &'a Setting,
    stop: &'a Stop,
    watch: &'a mut dyn FnMut(&Moment<'_>),
    name: &'a str,
    done: u32,
    of: u32,
}

/// A run behind the proxy.
struct Behind {
    outcome: Outcome,
    found: Metered,
    time_wait: u64,
}

impl Behind {
    /// Connections that were opened per second beside the generator's. The kernel counts those of the whole machine, of
    /// which no more than one for each answer can be the proxy's.
    fn opened(&self) -> f64 {
        let own = self.outcome.counts.connections as f64 / self.outcome.seconds.max(f64::MIN_POSITIVE);
        (self.found.opened_per_second - own).clamp(0.0, self.outcome.rate())
    }
}

impl Measuring<'_> {
    /// One run; `look` is called while it is measured.
    fn run(
        &mut self,
        what: &str,
        target: &Target,
        connections: u32,
        look: &mut dyn FnMut(&Progress),
    ) -> Result<Outcome, Unmeasured> {
        let threads = self.setting.threads.clamp(1, connections.max(1));
        let mut plan = Plan::closed(target.clone(), connections, threads, self.setting.duration);
        plan.warm_up = self.setting.warm_up;
        plan.timeout = PATIENCE;
        let (watch, done, of) = (&mut *self.watch, self.done, self.of);
        let label = format!("{}: {what}", self.name);
        let outcome = drive::run(&plan, self.stop.flag(), &mut |progress| {
            watch(&Moment { what: &label, done, of, progress });
            look(progress);
        })?;
        if self.stop.is_asked() {
            return Err(Unmeasured::Stopped);
        }
        self.done += 1;
        if outcome.counts.answers == 0 {
            return Err(format!("{label} gave no right answer under load").into());
        }
        Ok(outcome)
    }

    fn alone(&mut self, server: &Server) -> Result<Outcome, Unmeasured> {
        // A request of its own stands behind whatever the run before left at it: a worker may wait on a connection that the proxy keeps.
        answer(&server.url, &server.target, self.stop)?;
        self.run(&format!("{} alone", server.url), &server.target, self.setting.connections, &mut |_| ())
    }

    /// With fewer kept connections than are needed.
    fn below(
        &mut self,
        servers: &Servers,
        target: &Target,
        connections: u32,
        proxy: &Process,
    ) -> Result<Below, Unmeasured> {
        let found = self.together("with few kept connections", servers, target, connections, proxy)?;
        Ok(Below {
            keepalive: TOO_LITTLE,
            rate: found.outcome.rate(),
            opened_per_second: found.opened(),
            time_wait: found.time_wait,
        })
    }

    fn together(
        &mut self,
        what: &str,
        servers: &Servers,
        target: &Target,
        connections: u32,
        proxy: &Process,
    ) -> Result<Behind, Unmeasured> {
        let mut parties = servers.processes();
        parties.push((PROXY.to_owned(), Whose::Tree(proxy.id())));
        let mut meter = Meter::new(parties);
        let left = || servers.all.iter().map(|server| time_wait(server.address)).sum::<u64>();
        let before = left();
        let outcome = self.run(what, target, connections, &mut |progress| meter.watch(progress))?;
        Ok(Behind { outcome, found: meter.found(), time_wait: left().saturating_sub(before) })
    }
}

/// What all rounds gave.
#[derive(Default)]
struct AllRounds {
    alone: Vec<Vec<Outcome>>,
    ceiling: Vec<f64>,
    passing: Vec<f64>,
    together: Vec<Behind>,
}

impl AllRounds {
    /// Everything once in each round, in an order by chance; what an error ends keeps what there is.
    fn rounds(
        &mut self,
        bench: &mut Measuring<'_>,
        servers: &Servers,
        behind: &Target,
        connections: u32,
        (proxy, address): (&Process, SocketAddr),
    ) -> Result<(), Unmeasured> {
        self.alone.resize_with(servers.all.len(), Vec::new);
        let mut random = Rng::with_seed(bench.setting.seed);
        let count = servers.all.len();
        let mut order: Vec<usize> = (0..count + 3).collect();
        for _ in 0..bench.setting.rounds.max(1) {
            random.shuffle(&mut order);
            for &turn in &order {
                let mut rate = |what: &str, path| {
                    let target = servers.behind(address, Some(path), bench.setting)?;
                    Ok::<_, Unmeasured>(bench.run(what, &target, connections, &mut |_| ())?.rate())
                };
                match turn {
                    turn if turn < count => self.alone[turn].push(bench.alone(&servers.all[turn])?),
                    turn if turn == count => self.ceiling.push(rate("the proxy by itself", CEILING)?),
                    turn if turn == count + 1 => {
                        self.passing.push(rate("the proxy in front of nothing", PASSING)?)
                    }
                    _ => {
                        let what = "all behind the proxy";
                        self.together.push(bench.together(what, servers, behind, connections, proxy)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether everything was measured at least once.
    fn is_whole(&self) -> bool {
        let all = self.alone.iter().map(Vec::len).chain([
            self.ceiling.len(),
            self.passing.len(),
            self.together.len(),
        ]);
        all.min() > Some(0)
    }

    /// The row, from the median round of each; its sentence comes when all is known.
    fn row(self, subject: &Subject, setting: &Setting, servers: &Servers, through: Once) -> CapacityRow {
        let rates = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::rate).collect::<Vec<_>>();
        let all: Vec<f64> = self.together.iter().map(|behind| behind.outcome.rate()).collect();
        let alone: Vec<Alone> = servers
            .all
            .iter()
            .zip(&self.alone)
            .filter_map(|(server, outcomes)| {
                let rates = rates(outcomes);
                let outcome = outcomes.get(nearest(&rates))?;
                let run = Run { rate: median(rates.clone()), ..Run::of(outcome) };
                let (is_floor, rounds) = (outcome.generator.limits.is_some(), over(rates, outcome));
                Some(Alone { url: server.url.clone(), run, rounds, once: server.once, is_floor })
            })
            .collect();
        let sum = alone.iter().map(|alone| alone.run.rate).sum();
        // Of everything there is one round at least, or there is no row.
        let behind = &self.together[nearest(&all)];
        let evidence = evidence(behind, servers, through, sum);
        let (run, verdict) = (Run { rate: median(all.clone()), ..evidence.top }, judge(&evidence));
        // Where the servers are not what a request waits for, most of its time is not theirs.
        let once = servers.once().map_or(run.latency, |once| once.total);
        let response = if verdict.limit == Limit::Api { run.latency } else { once.min(run.latency) };
        CapacityRow {
            name: subject.name.clone(),
            connections: setting.connections,
            service_seconds: subject.service.map(|service| service.as_secs_f64()),
            alone,
            ceiling: median(self.ceiling),
            passing: median(self.passing),
            pool: Pool::needed(run.rate, response),
            together: Together {
                run,
                rounds: over(all, &behind.outcome),
                once: through,
                machine_busy: behind.found.machine_busy,
                opened_per_second: behind.opened(),
                time_wait: behind.time_wait,
            },
            below: None,
            verdict,
            sentence: String::new(),
        }
    }
}

/// The rounds of one measurement, for which one of them stands.
fn over(rates: Vec<f64>, middle: &Outcome) -> Rounds {
    Rounds {
        low: rates.iter().copied().fold(f64::INFINITY, f64::min),
        high: rates.iter().copied().fold(0.0, f64::max),
        rates,
        p50: middle.latency.percentile(50.0),
        p99: middle.latency.percentile(99.0),
    }
}

/// The place of the round that is nearest to the median.
fn nearest(rates: &[f64]) -> usize {
    let middle = median(rates.to_vec());
    let away = |place: &usize| (rates[*place] - middle).abs();
    (0..rates.len()).min_by(|one, other| away(one).total_cmp(&away(other))).unwrap_or(0)
}

/// What the verdict on a run behind the proxy rests on.
fn evidence(behind: &Behind, servers: &Servers, through: Once, sum: f64) -> Evidence {
    let of = |name: &'static str| {
        let all = behind.found.parties.iter().filter(move |(other, _)| other == name);
        all.map(|(_, spent)| *spent).reduce(Spent::with)
    };
    Evidence {
        top: Run::of(&behind.outcome),
        fewer: None,
        direct: servers.once(),
        through: Some(through),
        api_rate: Some(sum),
        origin_share: 1.0,
        proxy: of(PROXY),
        api: of(API),
        generator: of(GENERATOR),
        floor: behind.outcome.generator.limits.clone(),
        machine_busy: behind.found.machine_busy,
        stolen: behind.found.stolen,
        cores: u32::try_from(cores::usable()).unwrap_or(u32::MAX),
        is_here: servers.are_local(),
        link: if servers.are_local() { None } else { link_speed() },
    }
}
