//! What the kernel reports of this process: CPU time, memory, open files, start.
//!
//! Read from `/proc/self` when someone asks for the metrics, never for a request. Values that cannot be read are 0.

use crate::{kernel, limits};
use millstream_telemetry::metrics::ProcessSnapshot;
use std::fs;

const SECOND: u64 = 1_000_000;

/// Without the version. Reads `/proc`, which is no disk.
pub fn usage() -> ProcessSnapshot {
    let read = |name: &str| fs::read_to_string(name).unwrap_or_default();
    let mut usage = parsed(&read("/proc/self/stat"), &read("/proc/stat"));
    usage.open_files =
        fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1) as u64);
    usage.most_files = limits::nofile();
    usage
}

/// Parses `/proc/self/stat` and the line `btime` of `/proc/stat` (proc(5)).
fn parsed(of_process: &str, of_machine: &str) -> ProcessSnapshot {
    // The name of the program stands in parentheses and may contain any byte.
    let fields = of_process.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = |number: usize| -> u64 {
        // The first field behind the name is the third of all.
        fields.split_ascii_whitespace().nth(number - 3).and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let booted = of_machine.lines().find_map(|line| line.strip_prefix("btime "));
    let booted: u64 = booted.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let time = |ticks: u64| ticks.saturating_mul(SECOND) / kernel::clock_ticks();
    ProcessSnapshot {
        cpu: time(field(14).saturating_add(field(15))),
        virtual_memory: field(23),
        resident: field(24).saturating_mul(kernel::page_size()),
        started: booted.saturating_mul(SECOND).saturating_add(time(field(22))),
        ..ProcessSnapshot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_last_parenthesis_of_the_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 300 200 0 0 20 0 4 0 1000 8192 3 18446744073709551615";
        let usage = parsed(stat, "cpu  1 2\nbtime 1700000000\n");
        let ticks = kernel::clock_ticks();
        assert_eq!(usage.cpu, 500 * SECOND / ticks);
        assert_eq!((usage.virtual_memory, usage.resident), (8192, 3 * kernel::page_size()));
        assert_eq!(usage.started, (1_700_000_000 + 1000 / ticks) * SECOND);
        assert_eq!(parsed("", ""), ProcessSnapshot::default());
    }

    #[test]
    fn the_running_process_has_memory_files_and_a_start() {
        let usage = usage();
        assert!(usage.resident > 1 << 16 && usage.virtual_memory >= usage.resident, "{usage:?}");
        assert!(usage.open_files >= 3 && usage.most_files >= usage.open_files, "{usage:?}");
        assert!(usage.started > 1_600_000_000 * SECOND, "{usage:?}");
    }
}
