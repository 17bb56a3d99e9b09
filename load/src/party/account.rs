//! What CPU a process used, and what it wanted: the time that its threads ran, and the time that they stood ready while
//! others ran.
//!
//! The second is what tells a limit on a shared machine: a thread that wants a core all the time is what the others wait
//! for, however little of the core it gets. Both come from the scheduler (`/proc/PID/task/TID/schedstat`, nanoseconds),
//! and where a kernel has no such file, running alone from `stat` (hundredths of a second).

use super::process_table::{self, process, stat};
use super::throttle::Throttle;
use millstream_net::clock;
use procfs::FromRead;
use procfs::process::{Schedstat, Task};
use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use std::collections::HashMap;
use std::time::Instant;

/// Nanoseconds of one unit of `stat`: hundredths of a second on every architecture that runs this.
const TICK: u64 = 10_000_000;
const NANOSECONDS: f64 = 1e9;

/// Whose CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A process and all its descendants, without this program and its own: a server with its workers.
    Tree(u32),
    /// A process without those that it started.
    Process(u32),
    /// Those threads of a process whose name begins so (at most 15 bytes); ended ones are lost.
    Threads(u32, String),
    /// The other threads of that process.
    OtherThreads(u32, String),
}

/// What was used and wanted up to one moment.
#[derive(Debug, Clone)]
pub struct Account {
    at: Instant,
    /// Of each process: used up to now by all threads, the ended ones and ended children included, in nanoseconds.
    processes: HashMap<u32, u64>,
    /// Of each thread of each process.
    threads: HashMap<(u32, u32), Thread>,
    /// Of the first process.
    throttle: Throttle,
    /// Cores that the first process may run on; `None`: unknown.
    may_use: Option<u32>,
    /// Threads of a name are asked for, so that `processes` says too much.
    is_part: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    ran: u64,
    waited: u64,
}

/// What was used and wanted between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spent {
    /// Seconds between the two.
    pub seconds: f64,
    /// CPU seconds used.
    pub cpu_seconds: f64,
    /// The share of the time that the busiest thread ran, 0 to 1.
    pub busiest: f64,
    /// The share of the time that the keenest thread ran or stood ready to, 0 to 1.
    pub wanted: f64,
    /// The largest share of the time that a thread stood ready while others ran, 0 to 1.
    #[serde(default)]
    pub waited: f64,
    /// Cores that all threads together wanted: as `wanted`, summed up.
    pub wanted_cores: f64,
    /// The share of the periods of a CPU limit (a container's) in which it was held back, 0 to 1; `None`: no limit is known.
    #[serde(default)]
    pub held_back: Option<f64>,
    /// Cores that it may run on; `None`: unknown.
    #[serde(default)]
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
    /// Reads it now. A process that is gone has nothing.
    pub fn read(whose: &Whose) -> Account {
        let (ids, named) = match whose {
            Whose::Tree(root) => (process_table::tree(*root), None),
            Whose::Process(id) => (vec![*id], None),
            Whose::Threads(id, prefix) => (vec![*id], Some((prefix.as_str(), true))),
            Whose::OtherThreads(id, prefix) => (vec![*id], Some((prefix.as_str(), false))),
        };
        let at = clock::now();
        let mut account = Account {
            at,
            processes: HashMap::new(),
            threads: HashMap::new(),
            throttle: ids.first().map_or_else(Throttle::default, |id| Throttle::read(*id)),
            may_use: ids.first().and_then(|id| may_use(*id)),
            is_part: named.is_some(),
        };
        for id in ids {
            let Some((process, stat)) = process(id).zip(stat(id)) else { continue };
            // Its own, and in a tree that of children which it has waited for.
            let ended = if matches!(whose, Whose::Tree(_)) { stat.cutime + stat.cstime } else { 0 };
            let used = stat.utime + stat.stime + u64::try_from(ended).unwrap_or(0);
            account.processes.insert(id, used * TICK);
            for task in process.tasks().into_iter().flatten().flatten() {
                if named.is_none_or(|(prefix, wanted)| is_named(&task, prefix) == wanted)
                    && let Some(found) = thread_now(&task)
                {
                    account.threads.insert((id, task.tid as u32), found);
                }
            }
        }
        account
    }

    /// When it was read.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// What came to it since an earlier reading of the same.
    pub fn since(&self, earlier: &Account) -> Spent {
        let seconds = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        if seconds <= 0.0 {
            return Spent::default();
        }
        let span = (seconds * NANOSECONDS) as u64;
        let (mut total, mut busiest, mut keenest, mut longest, mut wanted) = (0, 0, 0, 0, 0);
        for (key, thread) in &self.threads {
            let before = earlier.threads.get(key).copied().unwrap_or_default();
            // A thread that began in between cannot have run for longer than the time in between.
            let ran = thread.ran.saturating_sub(before.ran).min(span);
            let waited = thread.waited.saturating_sub(before.waited);
            let both = (ran + waited).min(span);
            total += ran;
            wanted += both;
            busiest = busiest.max(ran);
            longest = longest.max(both - ran);
            keenest = keenest.max(both);
        }
        if !self.is_part {
            // The rough figure has what ended threads and children used, the fine one has not; where they differ by more
            // than each of its four parts is rounded by, that is why.
            let sum = |account: &Account| account.processes.values().sum::<u64>();
            let rough = sum(self).saturating_sub(sum(earlier));
            if rough > total + 4 * TICK * self.processes.len() as u64 {
                total = rough;
            }
        }
        let share = |nanoseconds: u64| nanoseconds as f64 / NANOSECONDS / seconds;
        Spent {
            seconds,
            cpu_seconds: total as f64 / NANOSECONDS,
            busiest: share(busiest),
            wanted: share(keenest),
            waited: share(longest),
            wanted_cores: share(wanted),
            held_back: self.throttle.since(&earlier.throttle),
            may_use: self.may_use,
        }
    }
}

/// How long the calling thread has waited for a core so far, in nanoseconds; 0 where the kernel does not tell.
pub(crate) fn own_thread_waited() -> u64 {
    Schedstat::from_file("/proc/thread-self/schedstat").map_or(0, |spent| spent.run_delay)
}

fn may_use(id: u32) -> Option<u32> {
    let cores = sched_getaffinity(Some(Pid::from_raw(i32::try_from(id).ok()?)?)).ok()?;
    Some(cores.count())
}

fn is_named(task: &Task, prefix: &str) -> bool {
    task.stat().is_ok_and(|stat| stat.comm.starts_with(prefix))
}

fn thread_now(task: &Task) -> Option<Thread> {
    if let Ok(spent) = task.schedstat() {
        return Some(Thread { ran: spent.sum_exec_runtime, waited: spent.run_delay });
    }
    let stat = task.stat().ok()?;
    Some(Thread { ran: (stat.utime + stat.stime) * TICK, waited: 0 })
}
