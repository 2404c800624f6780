//! What the nemesis does to what the system grants a process.

use std::time::Instant;

use super::{COUNTING, Nemesis, SERVICES, Target};

/// A service opens at most so many more.
const MORE: usize = 4;

impl Nemesis {
    /// A service can open hardly any more files or connections for some seconds.
    pub(super) async fn few_files(&mut self) {
        let since = Instant::now();
        let nth = self.dice.below(SERVICES);
        self.hurts(Target::Service(nth));
        let more = self.dice.below(MORE);
        let program = &self.system.programs()[nth];
        // One that has ended meanwhile has nothing to be limited in.
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
