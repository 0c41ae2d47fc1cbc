//! What a process has used: processor time by the scheduler's own count, and resident memory. Linux only.

use std::fs;
use std::io;
use std::time::Duration;

/// Time that all threads of a process have run. Exact for threads that sleep: let them come to rest first.
pub(crate) fn processor_time(pid: u32) -> io::Result<Duration> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let ran = text.split_whitespace().next();
        total += ran.and_then(|ran| ran.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(total))
}

/// Resident memory in bytes.
pub(crate) fn resident(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib = kib.and_then(|kib| kib.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("the system does not tell VmRSS"))
}
