//! The steps of a definition as a graph, and which of them can begin.

use std::collections::HashMap;

use schemas::StepId;
use schemas::workflow::{Action, Definition, Join, Step};

use super::{Run, StepState};

/// A definition, with the ways between its steps looked up once.
#[derive(Clone, Debug)]
pub struct Graph {
    definition: Definition,
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

/// Where each step of a graph stands within a run; `None` before it has begun.
pub(super) struct Standing(Vec<Option<StepState>>);

impl Graph {
    /// Looks the ways up. A way to a step that is not there leads nowhere.
    pub fn new(definition: Definition) -> Self {
        let mut places: HashMap<&StepId, usize> = HashMap::new();
        for (place, step) in definition.steps.iter().enumerate() {
            places.entry(&step.id).or_insert(place);
        }
        let follow = |step: &Step| {
            let found = step.next.iter().filter_map(|id| places.get(id).copied());
            found.collect::<Vec<_>>()
        };
        let successors: Vec<Vec<usize>> = definition.steps.iter().map(follow).collect();
        let mut predecessors = vec![Vec::new(); successors.len()];
        for (from, targets) in successors.iter().enumerate() {
            for to in targets {
                predecessors[*to].push(from);
            }
        }
        Self {
            definition,
            successors,
            predecessors,
        }
    }

    /// The definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// A step by its place.
    pub(super) fn step(&self, place: usize) -> &Step {
        &self.definition.steps[place]
    }

    pub(super) fn standing(&self, run: &Run) -> Standing {
        let steps = self.definition.steps.iter();
        Standing(
            steps
                .map(|step| run.steps.get(&step.id).map(|step| step.state))
                .collect(),
        )
    }

    /// The steps that can begin now, in the definition's order.
    pub(super) fn ready(&self, standing: &Standing) -> Vec<usize> {
        let candidates: Vec<usize> = (0..standing.0.len())
            .filter(|place| self.is_candidate(standing, *place))
            .collect();
        let ready: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|place| {
                self.step(*place).join == Join::Any
                    || self.all_have_come(standing, &candidates, *place)
            })
            .collect();
        if ready.is_empty() && !standing.any_open() {
            // Steps that wait for each other in a circle: the first goes, so that the run ends.
            return candidates.into_iter().take(1).collect();
        }
        ready
    }

    /// A step that has not begun and that something leads to.
    fn is_candidate(&self, standing: &Standing, place: usize) -> bool {
        let reached = || {
            let mut before = self.predecessors[place].iter();
            before.any(|place| standing.0[*place] == Some(StepState::Succeeded))
        };
        let is_trigger = || matches!(self.step(place).action, Action::Trigger);
        standing.0[place].is_none() && (is_trigger() || reached())
    }

    /// Whether no predecessor that has not succeeded can still come about.
    fn all_have_come(&self, standing: &Standing, candidates: &[usize], place: usize) -> bool {
        let mut coming = vec![false; standing.0.len()];
        let mut open: Vec<usize> = standing.open().collect();
        open.extend(candidates.iter().filter(|other| **other != place));
        while let Some(next) = open.pop() {
            if !std::mem::replace(&mut coming[next], true) {
                let onward = self.successors[next].iter().copied();
                open.extend(onward.filter(|to| *to != place && standing.0[*to].is_none()));
            }
        }
        !self.predecessors[place]
            .iter()
            .any(|before| coming[*before])
    }
}

impl Standing {
    pub(super) fn of(&self, place: usize) -> Option<StepState> {
        self.0[place]
    }

    pub(super) fn places(&self) -> std::ops::Range<usize> {
        0..self.0.len()
    }

    fn open(&self) -> impl Iterator<Item = usize> {
        self.places().filter(|place| {
            matches!(
                self.0[*place],
                Some(StepState::Running | StepState::Waiting(_))
            )
        })
    }

    fn any_open(&self) -> bool {
        self.open().next().is_some()
    }
}
