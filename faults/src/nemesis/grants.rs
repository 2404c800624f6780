//! What the nemesis does to a process' resource limits.

use std::time::Instant;

use super::{COUNTING, Nemesis, SERVICES, Target};

/// Upper bound on how many more files a service may open.
const MORE: usize = 4;

impl Nemesis {
    /// Lets a service open hardly any more files or connections for some seconds.
    pub(super) async fn few_files(&mut self) {
        let since = Instant::now();
        let nth = self.dice.below(SERVICES);
        self.hurts(Target::Service(nth));
        let more = self.dice.below(MORE);
        let program = &self.system.programs()[nth];
        // A process that has exited meanwhile has no limits to set.
        let Ok(limit) = program.limit_files_to_open(more) else {
            return;
        };
        tokio::time::sleep(self.dice.millis(500..8_000)).await;
        let _ = self.system.programs()[nth].limit_files(limit);
        if COUNTING.contains(&nth) {
            self.counted_alone(since);
        }
    }
}
