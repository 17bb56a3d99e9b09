//! What the host of a virtual machine gives to its other machines.

/// Ticks of CPU time that went to other machines since boot: `steal` of proc_stat(5); 0 if not virtual.
pub fn stolen() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").expect("Linux has it");
    let all = text.lines().next().unwrap_or_default();
    all.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).expect("the eighth is steal")
}
