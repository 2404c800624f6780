//! What the nemesis does to clocks.

use super::{Nemesis, SERVICES};

/// Seconds by which a clock is wrong. What is scheduled while it is ahead waits that much longer,
/// so an hour ahead would mean an hour's wait at the end.
const WRONG: [i64; 8] = [-3_600, -90, -10, -1, 1, 10, 45, 90];

impl Nemesis {
    /// Sets the clocks of some services wrong for a while. They jump twice: there and back.
    pub(super) async fn clock_jumps(&mut self) {
        let services = self.some_services();
        let Some(clocks) = &self.clocks else { return };
        let seconds = self.dice.pick(&WRONG).unwrap_or_default();
        for nth in &services {
            clocks.set(*nth, seconds);
        }
        for nth in &services {
            let name = self.system.programs()[*nth].name().to_owned();
            self.done.hurt(format!("{name} by {seconds:+} s"));
        }
        self.for_a_while().await;
        self.set_clocks_right();
    }

    pub(super) fn set_clocks_right(&self) {
        if let Some(clocks) = &self.clocks {
            for nth in 0..SERVICES {
                clocks.set(nth, 0);
            }
        }
    }
}
