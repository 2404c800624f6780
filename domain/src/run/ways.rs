//! The ways between steps, and the steps that no way leads to any more.

use std::collections::HashMap;

use schemas::StepId;
use schemas::run::Way;

/// The ways between the steps of a definition, by their indexes in it.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// The steps that follow each step, with the way that leads there.
    onward: Vec<Vec<(Way, usize)>>,
    /// The steps that lead to each step, with the way that does.
    inward: Vec<Vec<(Way, usize)>>,
}

/// A step's id and where its ways lead.
pub type Leading<'s> = (&'s StepId, Vec<(Way, &'s [StepId])>);

/// The progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It has not begun.
    Untouched,
    /// It has begun.
    UnderWay,
    /// It has succeeded, and the run continues by this way.
    Left(Way),
}

impl Ways {
    /// Resolves the ways of steps. A way to a missing step leads nowhere.
    pub fn new(steps: &[Leading<'_>]) -> Self {
        let mut places: HashMap<&StepId, usize> = HashMap::with_capacity(steps.len());
        for (place, (id, _)) in steps.iter().enumerate() {
            places.entry(id).or_insert(place);
        }
        let mut inward = vec![Vec::new(); steps.len()];
        let mut onward = vec![Vec::new(); steps.len()];
        for (from, (_, ways)) in steps.iter().enumerate() {
            for (way, targets) in ways {
                for to in targets.iter().filter_map(|id| places.get(id).copied()) {
                    onward[from].push((*way, to));
                    inward[to].push((*way, from));
                }
            }
        }
        Self { onward, inward }
    }

    pub(super) fn onward(&self, place: usize) -> &[(Way, usize)] {
        &self.onward[place]
    }

    pub(super) fn inward(&self, place: usize) -> &[(Way, usize)] {
        &self.inward[place]
    }

    /// The indexes of the steps that will not run: all ways to them were not taken, or come from
    /// such steps themselves.
    pub fn skipped(&self, reached: &[Reached]) -> Vec<usize> {
        let mut left: Vec<usize> = self.inward.iter().map(Vec::len).collect();
        let mut closed: Vec<usize> = Vec::new();
        for (place, reached) in reached.iter().enumerate() {
            if let Reached::Left(taken) = reached {
                let aside = self.onward[place].iter().filter(|(way, _)| way != taken);
                closed.extend(aside.map(|(_, to)| *to));
            }
        }
        let mut skipped = Vec::new();
        while let Some(place) = closed.pop() {
            left[place] -= 1;
            if left[place] == 0 && reached.get(place) == Some(&Reached::Untouched) {
                skipped.push(place);
                closed.extend(self.onward[place].iter().map(|(_, to)| *to));
            }
        }
        skipped
    }
}
