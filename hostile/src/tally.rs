//! Results of a crowd.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::Attack;

/// Counts of each attack's results: a status, or how its connection ended.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<(Attack, String), u64>>);

impl Tally {
    pub(crate) fn add(&self, attack: Attack, what: impl Into<String>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((attack, what.into())).or_default() += 1;
    }

    /// The results of each attack with their counts.
    pub fn counts(&self) -> BTreeMap<Attack, BTreeMap<String, u64>> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_attack: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for ((attack, what), count) in counts.iter() {
            let of_it = by_attack.entry(*attack).or_default();
            of_it.insert(what.clone(), *count);
        }
        by_attack
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (attack, counts) in self.counts() {
            let told = counts
                .iter()
                .map(|(what, count)| format!("{what} × {count}"));
            let told = told.collect::<Vec<_>>().join(", ");
            writeln!(f, "{}: {told}", attack.name())?;
        }
        Ok(())
    }
}
