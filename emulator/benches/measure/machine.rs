//! How busy others keep the machine: what tells a noisy run from a good one.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::arguments::Effort;

/// Others may use this share of the machine.
const SILENT: f64 = 0.05;
/// One look lasts this long.
const LOOK: Duration = Duration::from_millis(500);
/// Looks before measuring goes on in spite of the noise.
const ATTEMPTS: u32 = 60;

/// Waits until others are silent, not for ever, and returns the share of the machine that they used last.
pub(crate) fn wait_for_silence(effort: Effort) -> f64 {
    let mut busy = 0.0;
    for _ in 0..effort.pick(1, ATTEMPTS) {
        let (before, total_before) = ticks();
        sleep(effort.pick(Duration::from_millis(20), LOOK));
        let (after, total_after) = ticks();
        busy = (after - before) as f64 / (total_after - total_before).max(1) as f64;
        if busy <= SILENT {
            break;
        }
    }
    busy
}

/// Ticks spent on something, and all of them; zeros where the system does not say.
fn ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let numbers: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    // user nice system idle iowait irq softirq steal; guests are part of user.
    let total: u64 = numbers.iter().take(8).sum();
    let idle: u64 = numbers.iter().skip(3).take(2).sum();
    (total - idle, total)
}
