//! The size of the memory in which Postgres holds pages.

use std::fs;
use std::ops::RangeInclusive;

use rustix::system::sysinfo;

/// Postgres' manual starts from a quarter of a dedicated machine. Here NATS and all services share
/// it.
const SHARE: u64 = 8;
/// In MiB. Beyond that, the system caches pages as well.
const RANGE: RangeInclusive<u64> = 128..=2_048;
const MIB: u64 = 1024 * 1024;
/// The memory limit of this container: a number, or `max`.
const CONTAINER_LIMIT: &str = "/sys/fs/cgroup/memory.max";

/// The setting `shared_buffers` for this machine.
pub(super) fn shared_buffers() -> String {
    let machine = sysinfo();
    let machine = machine.totalram.saturating_mul(machine.mem_unit.into());
    let limit = fs::read_to_string(CONTAINER_LIMIT);
    let limit = limit.ok().and_then(|limit| limit.trim().parse().ok());
    format!("{}MB", mebibytes(limit.unwrap_or(machine).min(machine)))
}

fn mebibytes(memory: u64) -> u64 {
    (memory / SHARE / MIB).clamp(*RANGE.start(), *RANGE.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_eighth_within_bounds() {
        for (memory, buffers) in [(0, 128), (512, 128), (4_096, 512), (24_576, 2_048)] {
            assert_eq!(mebibytes(memory * MIB), buffers, "of {memory} MiB");
        }
    }
}
