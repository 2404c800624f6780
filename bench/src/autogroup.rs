//! Linux's autogroup, which shares the processors between sessions before it shares them between
//! threads.

use std::fs::{read_to_string, write};

const SETTING: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Switches autogroup off until this is dropped, if this process may do so.
///
/// Each of Postgres's processes is a session of its own, and so gets as much as all threads of
/// Waypost and NATS together. Containers, and units that have a weight, are scheduled as groups and
/// have no sessions. Users run Waypost like that, so it is measured like that.
#[derive(Debug)]
pub(crate) struct Off {
    was_on: bool,
}

impl Off {
    /// Affects only processes that are started afterwards.
    pub(crate) fn switch() -> Self {
        let is_on = read_to_string(SETTING).is_ok_and(|value| value.trim() == "1");
        let was_on = is_on && write(SETTING, "0").is_ok();
        if was_on {
            eprintln!("kernel.sched_autogroup_enabled is 0 meanwhile, as it is for containers");
        } else if is_on {
            eprintln!(
                "warning: kernel.sched_autogroup_enabled is 1, and only root may change that: \
                 every process of Postgres gets as much as all of Waypost"
            );
        }
        Self { was_on }
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        if self.was_on
            && let Err(error) = write(SETTING, "1")
        {
            eprintln!("warning: kernel.sched_autogroup_enabled stays 0: {error}");
        }
    }
}
