//! What the nemesis does with two versions of the services.

use super::{Nemesis, SERVICES, Target};

impl Nemesis {
    /// Upgrades a service to another version, or takes it back to this one.
    pub(super) async fn other_version(&mut self) {
        let Some(other) = self.other.clone() else {
            return;
        };
        let nth = self.dice.below(SERVICES);
        let program = &mut self.system.programs()[nth];
        let is_other = program.is_from(&other);
        program.take_from((!is_other).then_some(other));
        let version = if is_other { "this" } else { "the other" };
        self.done.hurt(format!("to {version} version"));
        self.restart(Target::Service(nth)).await;
    }

    /// Returns all services to this version.
    pub(super) fn end_other_versions(&mut self) {
        let Some(other) = self.other.clone() else {
            return;
        };
        for nth in 0..SERVICES {
            let program = &mut self.system.programs()[nth];
            if program.is_from(&other) {
                program.take_from(None);
                program.restart();
            }
        }
    }
}
