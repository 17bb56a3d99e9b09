//! The machine that everybody shares: how busy its cores are, and what its interfaces carry.

use std::fs;

/// Units of CPU time since the start of the machine, all cores together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cores {
    busy: u64,
    /// Of them those that the hypervisor gave to other machines.
    stolen: u64,
    all: u64,
}

impl Cores {
    pub(super) fn read() -> Cores {
        fs::read_to_string("/proc/stat").map_or_else(|_| Cores::default(), |text| Cores::of(&text))
    }

    /// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guests are in user already.
    pub(super) fn of(text: &str) -> Cores {
        let line = text.lines().next().unwrap_or_default();
        let fields: Vec<u64> =
            line.split_ascii_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
        let all = fields.iter().sum();
        let idle = fields.iter().skip(3).take(2).sum::<u64>();
        let stolen = fields.get(7).copied().unwrap_or(0);
        Cores { busy: all - idle, stolen, all }
    }

    /// The share of the time that its cores were busy since an earlier reading, 0 to 1.
    pub(super) fn busy_since(self, earlier: Cores) -> f64 {
        self.share_since(earlier, |cores| cores.busy)
    }

    /// The share of the time that the hypervisor gave to other machines, 0 to 1.
    pub(super) fn stolen_since(self, earlier: Cores) -> f64 {
        self.share_since(earlier, |cores| cores.stolen)
    }

    fn share_since(self, earlier: Cores, of: fn(Cores) -> u64) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        if all == 0 { 0.0 } else { of(self).saturating_sub(of(earlier)) as f64 / all as f64 }
    }
}

/// Bytes that interfaces carried since the start of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// The loopback interface, each byte once.
    pub loopback: u64,
    /// All others, both ways together.
    pub others: u64,
}

impl Traffic {
    /// What was carried since an earlier reading.
    pub fn since(self, earlier: Traffic) -> Traffic {
        Traffic {
            loopback: self.loopback.saturating_sub(earlier.loopback),
            others: self.others.saturating_sub(earlier.others),
        }
    }

    /// The text of /proc/net/dev: received bytes first, sent bytes ninth.
    pub(super) fn of(text: &str) -> Traffic {
        let mut traffic = Traffic::default();
        for line in text.lines() {
            let Some((name, counters)) = line.split_once(':') else { continue };
            let counters: Vec<u64> =
                counters.split_ascii_whitespace().filter_map(|counter| counter.parse().ok()).collect();
            let (Some(received), Some(sent)) = (counters.first(), counters.get(8)) else { continue };
            if name.trim() == "lo" {
                traffic.loopback += sent;
            } else {
                traffic.others += received + sent;
            }
        }
        traffic
    }
}

/// TCP connections that were begun from here since the start of the machine, whoever began them.
pub(super) fn opened() -> u64 {
    opened_of(&fs::read_to_string("/proc/net/snmp").unwrap_or_default())
}

/// The text of /proc/net/snmp: a line of names for each protocol, then one of numbers.
pub(super) fn opened_of(text: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    let pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    let mut found = pairs.filter(|(name, _)| *name == "ActiveOpens");
    found.next().and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// What the interfaces of this network namespace carried up to now.
pub fn traffic() -> Traffic {
    fs::read_to_string("/proc/net/dev").map_or_else(|_| Traffic::default(), |text| Traffic::of(&text))
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
