//! How many cores the process may use: `worker_processes auto`.
//!
//! Affinity and the cgroup's quota count; asked at start and at each reload. Next: `millstream`'s `running`.

/// Cores by CPU affinity and cgroup quota (v1 and v2, rounded down), whichever is less; at least 1. Reads
/// files under /proc and /sys: for start and reload only.
pub fn usable() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_at_least_one_core() {
        assert!(super::usable() >= 1);
    }
}
