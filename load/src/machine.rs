//! The machine that everybody shares: how busy its cores are, how long a thread waits for one, and what its fastest interface can
//! carry.

use procfs::process::Schedstat;
use procfs::{CurrentSI, FromRead, KernelStats};
use std::fs;

/// Units of CPU time since the start of the machine, all cores together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cores {
    busy: u64,
    /// Of them those that the hypervisor gave to other machines.
    stolen: u64,
    all: u64,
}

impl Cores {
    /// Now; zeros where the kernel does not tell.
    pub(crate) fn read() -> Cores {
        KernelStats::current().map_or_else(|_| Cores::default(), |stats| Cores::of(&stats))
    }

    /// Guests are in `user` and `nice` already.
    pub(crate) fn of(stats: &KernelStats) -> Cores {
        let total = &stats.total;
        let stolen = total.steal.unwrap_or(0);
        let interrupts = total.irq.unwrap_or(0) + total.softirq.unwrap_or(0);
        let busy = total.user + total.nice + total.system + interrupts + stolen;
        Cores { busy, stolen, all: busy + total.idle + total.iowait.unwrap_or(0) }
    }

    /// The share of the time since an earlier reading that its cores were busy, and the one that the hypervisor gave to other
    /// machines, 0 to 1.
    pub(crate) fn since(self, earlier: Cores) -> (f64, f64) {
        let all = self.all.saturating_sub(earlier.all).max(1) as f64;
        let share = |now: u64, before: u64| now.saturating_sub(before) as f64 / all;
        (share(self.busy, earlier.busy), share(self.stolen, earlier.stolen))
    }
}

/// How long the calling thread has waited for a core so far, in nanoseconds; 0 where the kernel does not tell.
pub(crate) fn own_thread_waited() -> u64 {
    Schedstat::from_file("/proc/thread-self/schedstat").map_or(0, |spent| spent.run_delay)
}

/// TCP connections that were begun from here since the start of the machine, whoever began them.
pub(crate) fn opened() -> u64 {
    procfs::net::snmp().map_or(0, |counters| counters.tcp_active_opens)
}

/// Bytes per second that the fastest interface but loopback can carry one way; `None` where none says.
pub fn link_speed() -> Option<f64> {
    let entries = fs::read_dir("/sys/class/net").ok()?.flatten();
    let speeds = entries.filter_map(|entry| {
        // Megabits per second; -1 or an error where the interface has none.
        let text = fs::read_to_string(entry.path().join("speed")).ok()?;
        text.trim().parse::<f64>().ok().filter(|speed| *speed > 0.0)
    });
    speeds.map(|megabits| megabits * 125_000.0).max_by(f64::total_cmp)
}
