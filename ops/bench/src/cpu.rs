//! CPU time and memory of processes, from /proc.

use std::fs;

/// CPU time of a process and of its children that ended, in milliseconds.
pub(crate) fn process_ms(pid: u32) -> u64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0 };
    // The name may hold spaces; fields count from behind it.
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0 };
    let ticks: u64 = fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks * 10
}

/// CPU time of a process and all its living descendants, in milliseconds.
pub(crate) fn tree_ms(pid: u32) -> u64 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    process_ms(pid) + children.split_whitespace().filter_map(|child| child.parse().ok()).map(tree_ms).sum::<u64>()
}

/// A line of /proc/PID/status in KiB: `VmHWM` (peak) or `VmRSS` (now).
pub(crate) fn memory_kib(pid: u32, field: &str) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
