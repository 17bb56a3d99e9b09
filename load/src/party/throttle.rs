//! A limit on CPU, as containers have it: in how many of its periods a control group had used up what it may.
//!
//! Who is held back by one neither runs nor stands ready, so that the scheduler's figures show somebody at rest. The kernel
//! counts it in `cpu.stat` of the group and of each above it, in both versions of control groups (Documentation/
//! admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst).

use super::process_table;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Groups above each other that are looked at.
const DEPTH: usize = 16;

/// Periods of each group above a process, and those that it was held back in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Throttle(HashMap<PathBuf, (u64, u64)>);

impl Throttle {
    pub(super) fn read(id: u32) -> Throttle {
        let groups = process_table::process(id).and_then(|process| process.cgroups().ok());
        let mut found = HashMap::new();
        for group in groups.into_iter().flat_map(|groups| groups.0) {
            for mount in mounts(&group.controllers) {
                for above in Path::new(&group.pathname).ancestors().take(DEPTH) {
                    let inside = above.strip_prefix("/").unwrap_or(above);
                    let path = Path::new(mount).join(inside).join("cpu.stat");
                    let counts = fs::read_to_string(&path).ok().and_then(|text| counts(&text));
                    found.extend(counts.map(|counts| (path, counts)));
                }
            }
        }
        Throttle(found)
    }

    /// The share of periods since an earlier reading in which the group that was held back most was, 0 to 1; `None` where no
    /// limit is known.
    pub(super) fn since(&self, earlier: &Throttle) -> Option<f64> {
        let share = |(path, (periods, held)): (&PathBuf, &(u64, u64))| {
            let (before, held_before) = earlier.0.get(path)?;
            let periods = periods.checked_sub(*before).filter(|periods| *periods > 0)?;
            Some((held.saturating_sub(*held_before) as f64 / periods as f64).min(1.0))
        };
        self.0.iter().filter_map(share).max_by(f64::total_cmp)
    }
}

/// Where a hierarchy with these controllers counts CPU: version 2 has none of them in /proc/PID/cgroup, version 1 its own.
fn mounts(controllers: &[String]) -> &'static [&'static str] {
    match controllers {
        [] => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        many if many.iter().any(|one| one == "cpu") => &["/sys/fs/cgroup/cpu"],
        _ => &[],
    }
}

/// `nr_periods` and `nr_throttled` of a `cpu.stat`; `None` where there is no limit.
fn counts(text: &str) -> Option<(u64, u64)> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    Some((value("nr_periods")?, value("nr_throttled")?)).filter(|(periods, _)| *periods > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_are_counted_where_they_have_a_limit() {
        let of = |names: &[&str]| mounts(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["cpu", "cpuacct"]), ["/sys/fs/cgroup/cpu"]);
        assert_eq!(of(&[]), ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]);
        assert_eq!(of(&["cpuset"]), [""; 0]);
        let two = "usage_usec 9\nnr_periods 164\nnr_throttled 161\nthrottled_usec 12\n";
        assert_eq!(counts(two), Some((164, 161)));
        assert_eq!(counts("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"), None, "no limit");
        assert_eq!(counts("usage_usec 9\n"), None);
    }

    #[test]
    fn the_group_that_was_held_back_most_counts() {
        let of = |own: (u64, u64), above: (u64, u64)| {
            Throttle(HashMap::from([(PathBuf::from("/a/b"), own), (PathBuf::from("/a"), above)]))
        };
        let before = of((100, 50), (1_000, 0));
        assert_eq!(of((120, 55), (1_010, 9)).since(&before), Some(0.9));
        assert_eq!(before.since(&before), None, "no period has passed");
        assert_eq!(of((90, 0), (1_010, 0)).since(&before), Some(0.0), "another group of the same name");
        assert_eq!(before.since(&Throttle::default()), None, "it was not there before");
    }
}
