//! What CPU a process used, and what it wanted: the time that its threads ran, and the time that they stood ready while
//! others ran.
//!
//! The second is what tells a limit on a shared machine: a thread that wants a core all the time is what the others wait
//! for, however little of the core it gets. Both come from the scheduler (`/proc/PID/task/TID/schedstat`, nanoseconds),
//! and where a kernel has no such file, running alone from `stat` (hundredths of a second).

use super::process_table::{self, stat_fields};
use super::throttle::Throttle;
use millstream_net::clock;
use std::collections::HashMap;
use std::fs;
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
    /// Cores that all threads together wanted: as `wanted`, summed up.
    pub wanted_cores: f64,
    /// The share of the periods of a CPU limit (a container's) in which it was held back, 0 to 1.
    #[serde(default)]
    pub held_back: f64,
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
            is_part: named.is_some(),
        };
        for id in ids {
            let Ok(text) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
            let fields = stat_fields(&text);
            let numbers = fields.iter().skip(11).filter_map(|field| field.parse::<u64>().ok());
            // User and system time, its own and that of children which it has waited for.
            let parts = if matches!(whose, Whose::Tree(_)) { 4 } else { 2 };
            account.processes.insert(id, numbers.take(parts).sum::<u64>() * TICK);
            for thread in process_table::threads(id) {
                if named.is_none_or(|(prefix, wanted)| is_named(id, thread, prefix) == wanted)
                    && let Some(found) = thread_now(id, thread)
                {
                    account.threads.insert((id, thread), found);
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
        let (mut total, mut busiest, mut keenest, mut wanted) = (0, 0, 0, 0);
        for (key, thread) in &self.threads {
            let before = earlier.threads.get(key).copied().unwrap_or_default();
            // A thread that began in between cannot have run for longer than the time in between.
            let ran = thread.ran.saturating_sub(before.ran).min(span);
            let waited = thread.waited.saturating_sub(before.waited);
            let both = (ran + waited).min(span);
            total += ran;
            wanted += both;
            busiest = busiest.max(ran);
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
            wanted_cores: share(wanted),
            held_back: self.throttle.since(&earlier.throttle),
        }
    }
}

fn is_named(id: u32, thread: u32, prefix: &str) -> bool {
    let name = fs::read_to_string(format!("/proc/{id}/task/{thread}/comm")).unwrap_or_default();
    name.starts_with(prefix)
}

fn thread_now(id: u32, thread: u32) -> Option<Thread> {
    if let Ok(text) = fs::read_to_string(format!("/proc/{id}/task/{thread}/schedstat")) {
        let mut numbers = text.split_ascii_whitespace().filter_map(|number| number.parse().ok());
        return Some(Thread { ran: numbers.next()?, waited: numbers.next()? });
    }
    let text = fs::read_to_string(format!("/proc/{id}/task/{thread}/stat")).ok()?;
    let fields = stat_fields(&text);
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Thread { ran: ticks * TICK, waited: 0 })
}
