//! What CPU a process used, and what it wanted: the time that its threads ran, and the time that they stood ready while
//! others ran.
//!
//! The second is what tells a limit on a shared machine: a thread that wants a core all the time is what the others wait
//! for, however little of the core it gets. Both come from the scheduler (`/proc/PID/task/TID/schedstat`, nanoseconds),
//! and where a kernel has no such file, running alone from `stat` (hundredths of a second).

use super::process_table::{self, process, stat};
use super::sockets::listener;
use super::throttle::Throttle;
use millstream_net::clock;
use procfs::process::Task;
use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

/// Nanoseconds of one unit of `stat`: hundredths of a second on every architecture that runs this.
const TICK: u64 = 10_000_000;
const NANOSECONDS: f64 = 1e9;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// A process and all its descendants, without this program and its own: a server with its workers.
    Tree(u32),
    /// A process without those that it started.
    Process(u32),
    /// Those threads of a process whose name begins so (at most 15 bytes); ended ones are lost.
    Threads(u32, String),
    OtherThreads(u32, String),
}

impl Whose {
    /// Who makes the load: this process. `own_api` is how the names of those of its threads begin that are the API.
    pub fn generator(own_api: Option<&str>) -> Whose {
        let own = std::process::id();
        own_api.map_or(Whose::Process(own), |name| Whose::OtherThreads(own, name.to_owned()))
    }

    /// The API at an address, or those threads of this process; `None` where it is elsewhere or cannot be seen, or who listens there only
    /// hands connections on.
    pub fn api(address: SocketAddr, own_api: Option<&str>) -> Option<Whose> {
        match own_api {
            Some(name) => Some(Whose::Threads(std::process::id(), name.to_owned())),
            None => listener(address).filter(|found| !found.is_relay()).map(|found| Whose::Tree(found.id)),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Account {
    at: Instant,
    /// Used up to now by all threads, the ended ones and ended children included, in nanoseconds, and how many processes that is the sum
    /// of; `None` where threads of a name are asked for.
    rough: Option<(u64, u64)>,
    /// How long each thread of each process ran, and waited for a core, in nanoseconds.
    threads: HashMap<(u32, i32), (u64, u64)>,
    throttle: Throttle,
    /// Cores that the first process may run on; `None`: unknown.
    may_use: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// The share of the time that the busiest thread ran, 0 to 1.
    pub busiest: f64,
    /// The share of the time that the keenest thread ran or stood ready to, 0 to 1.
    pub wanted: f64,
    /// The largest share of the time that a thread stood ready while others ran, 0 to 1.
    pub waited: f64,
    /// Cores that all threads together wanted: as `wanted`, summed up.
    pub wanted_cores: f64,
    /// The share of the periods of a CPU limit (a container's) in which it was held back, 0 to 1; `None`: no limit is known.
    pub held_back: Option<f64>,
    /// Cores that it may run on; `None`: unknown.
    pub may_use: Option<u32>,
}

impl Spent {
    /// Both as one party: they use what both use, and want what the keener wants.
    #[must_use]
    pub fn with(self, other: Spent) -> Spent {
        Spent {
            seconds: self.seconds.max(other.seconds),
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            busiest: self.busiest.max(other.busiest),
            wanted: self.wanted.max(other.wanted),
            waited: self.waited.max(other.waited),
            wanted_cores: self.wanted_cores + other.wanted_cores,
            held_back: self.held_back.into_iter().chain(other.held_back).max_by(f64::total_cmp),
            may_use: self.may_use.max(other.may_use),
        }
    }
}

impl Account {
    pub(super) fn read(whose: &Whose) -> Account {
        let (ids, named) = match whose {
            Whose::Tree(root) => (process_table::tree(*root), None),
            Whose::Process(id) => (vec![*id], None),
            Whose::Threads(id, prefix) => (vec![*id], Some((prefix, true))),
            Whose::OtherThreads(id, prefix) => (vec![*id], Some((prefix, false))),
        };
        let mut account = Account {
            at: clock::now(),
            rough: named.is_none().then_some((0, 0)),
            threads: HashMap::new(),
            throttle: ids.first().map_or_else(Throttle::default, |id| Throttle::read(*id)),
            may_use: ids.first().and_then(|id| may_use(*id)),
        };
        for id in ids {
            let Some((process, stat)) = process(id).zip(stat(id)) else { continue };
            if let Some((used, processes)) = &mut account.rough {
                // Its own, and in a tree that of children which it has waited for.
                let ended = if matches!(whose, Whose::Tree(_)) { stat.cutime + stat.cstime } else { 0 };
                *used += (stat.utime + stat.stime + u64::try_from(ended).unwrap_or(0)) * TICK;
                *processes += 1;
            }
            for task in process.tasks().into_iter().flatten().flatten() {
                if named.is_none_or(|(prefix, wanted)| is_named(&task, prefix) == wanted) {
                    account.threads.extend(thread_now(&task).map(|found| ((id, task.tid), found)));
                }
            }
        }
        account
    }

    pub(super) fn since(&self, earlier: &Account) -> Spent {
        let seconds = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        if seconds <= 0.0 {
            return Spent::default();
        }
        let span = (seconds * NANOSECONDS) as u64;
        // How long each ran, and ran or waited. One that began in between cannot have run for longer than the time in between.
        let since = |(key, (ran, waited)): (_, &(u64, u64))| {
            let (ran_before, waited_before) = earlier.threads.get(key).copied().unwrap_or_default();
            let ran = ran.saturating_sub(ran_before).min(span);
            (ran, (ran + waited.saturating_sub(waited_before)).min(span))
        };
        let threads: Vec<(u64, u64)> = self.threads.iter().map(since).collect();
        let most = |of: fn(&(u64, u64)) -> u64| threads.iter().map(of).max().unwrap_or(0);
        let sum = |of: fn(&(u64, u64)) -> u64| threads.iter().map(of).sum::<u64>();
        let share = |nanoseconds: u64| nanoseconds as f64 / NANOSECONDS / seconds;
        // The rough figure has what ended threads and children used, the fine one has not; where they differ by more
        // than each of its four parts is rounded by, that is why.
        let rough = self.rough.zip(earlier.rough);
        let (rough, processes) =
            rough.map_or((0, 0), |(now, before)| (now.0.saturating_sub(before.0), now.1));
        let fine = sum(|thread| thread.0);
        let total = if rough > fine + 4 * TICK * processes { rough } else { fine };
        Spent {
            seconds,
            cpu_seconds: total as f64 / NANOSECONDS,
            busiest: share(most(|thread| thread.0)),
            wanted: share(most(|thread| thread.1)),
            waited: share(most(|thread| thread.1 - thread.0)),
            wanted_cores: share(sum(|thread| thread.1)),
            held_back: self.throttle.since(&earlier.throttle),
            may_use: self.may_use,
        }
    }
}

fn may_use(id: u32) -> Option<u32> {
    let cores = sched_getaffinity(Some(Pid::from_raw(i32::try_from(id).ok()?)?)).ok()?;
    Some(cores.count())
}

fn is_named(task: &Task, prefix: &str) -> bool {
    task.stat().is_ok_and(|stat| stat.comm.starts_with(prefix))
}

fn thread_now(task: &Task) -> Option<(u64, u64)> {
    let fine = task.schedstat().map(|spent| (spent.sum_exec_runtime, spent.run_delay));
    fine.or_else(|_| task.stat().map(|stat| ((stat.utime + stat.stime) * TICK, 0))).ok()
}
