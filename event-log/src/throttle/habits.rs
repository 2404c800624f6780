//! What each party usually asks for.
//!
//! A tenant that always writes seven hundred messages a second is distinguished from one that takes
//! all it can get by what happens when they are held back: the first had never been before.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::party::Party;

/// Seconds over which a habit forms.
const FORMED: f64 = 10.0;
/// Seconds of being held back over which it is lost.
const LOST: f64 = 0.5;
/// A party that asks for what it always did may have half as much again, to make up for what it
/// could not ask for while the log stood still.
const MORE: f64 = 1.5;
/// A habit gives at most this many times the least pace.
const MOST: f64 = 4.0;
/// How often, in seconds, parties are forgotten that ask for too little to matter.
const FORGETTING: f64 = 1.0;

/// What parties ask for per second, of those that ask for enough to matter.
pub(super) struct Habits {
    least: f64,
    of: HashMap<Party, Habit>,
    forgot: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Habit {
    /// Per second.
    amount: f64,
    at: Instant,
}

impl Habit {
    fn fade(&mut self, over: f64, now: Instant) {
        let passed = now.duration_since(self.at).as_secs_f64();
        self.amount *= (-passed / over).exp();
        self.at = now;
    }
}

impl Habits {
    pub(super) fn new(least: f64) -> Self {
        Self {
            least,
            of: HashMap::new(),
            forgot: None,
        }
    }

    /// The pace that a party's habit gives it, however slow the log is.
    pub(super) fn rate_of(&self, party: Party) -> f64 {
        let habit = self.of.get(&party).map_or(0.0, |habit| habit.amount);
        (habit * MORE).clamp(self.least, self.least * MOST)
    }

    /// Learns what a party was given.
    pub(super) fn count(&mut self, party: Party, amount: f64, now: Instant) {
        self.forget(now);
        let habit = self.of.entry(party).or_insert(Habit {
            amount: 0.0,
            at: now,
        });
        habit.fade(FORMED, now);
        habit.amount += amount / FORMED;
    }

    /// Learns that a party asked for more than it may have.
    pub(super) fn held(&mut self, party: Party, now: Instant) {
        if let Some(habit) = self.of.get_mut(&party) {
            habit.fade(LOST, now);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// A party whose habit gives less than everybody has anyway needs none.
    fn forget(&mut self, now: Instant) {
        let due = |at: Instant| now.duration_since(at).as_secs_f64() >= FORGETTING;
        if self.forgot.is_some_and(|at| !due(at)) {
            return;
        }
        self.forgot = Some(now);
        let enough = self.least / MORE / FORMED;
        self.of.retain(|_, habit| {
            habit.fade(FORMED, now);
            habit.amount >= enough
        });
    }
}
