//! The steps of a definition as a graph, and which of them can begin.

use schemas::workflow::{Action, Definition, Join, Step};

use super::{Run, StepState, Ways};

/// A definition, with the ways between its steps resolved once.
#[derive(Clone, Debug)]
pub struct Graph {
    definition: Definition,
    ways: Ways,
}

/// The state of each step of a graph within a run; `None` before it has begun.
pub(super) struct StepStates(Vec<Option<StepState>>);

impl Graph {
    /// Resolves the ways.
    pub fn new(definition: Definition) -> Self {
        let steps = definition.steps.iter();
        let steps: Vec<_> = steps.map(|step| (&step.id, step.ways())).collect();
        let ways = Ways::new(&steps);
        Self { definition, ways }
    }

    /// The definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// A step by its index.
    pub(super) fn step(&self, place: usize) -> &Step {
        &self.definition.steps[place]
    }

    pub(super) fn states(&self, run: &Run) -> StepStates {
        let steps = self.definition.steps.iter();
        StepStates(
            steps
                .map(|step| run.steps.get(&step.id).map(|step| step.state))
                .collect(),
        )
    }

    /// The steps that can begin now, in the definition's order.
    pub(super) fn ready(&self, states: &StepStates) -> Vec<usize> {
        let candidates: Vec<usize> = (0..states.0.len())
            .filter(|place| self.is_candidate(states, *place))
            .collect();
        let ready: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|place| {
                self.step(*place).join == Join::Any
                    || self.all_have_come(states, &candidates, *place)
            })
            .collect();
        if ready.is_empty() && !states.any_open() {
            // Steps wait for each other in a cycle: the first begins, so that the run ends.
            return candidates.into_iter().take(1).collect();
        }
        ready
    }

    /// Whether a step has not begun and is the trigger or reached by a taken way.
    fn is_candidate(&self, states: &StepStates, place: usize) -> bool {
        let reached = || {
            let mut ways = self.ways.inward(place).iter();
            ways.any(|(way, from)| states.0[*from] == Some(StepState::Succeeded(*way)))
        };
        let is_trigger = || matches!(self.step(place).action, Action::Trigger(_));
        states.0[place].is_none() && (is_trigger() || reached())
    }

    /// Whether no predecessor that has not succeeded can still do so.
    fn all_have_come(&self, states: &StepStates, candidates: &[usize], place: usize) -> bool {
        let mut coming = vec![false; states.0.len()];
        let mut open: Vec<usize> = states.open().collect();
        open.extend(candidates.iter().filter(|other| **other != place));
        while let Some(next) = open.pop() {
            if !std::mem::replace(&mut coming[next], true) {
                let onward = self.ways.onward(next).iter().map(|(_, to)| *to);
                open.extend(onward.filter(|to| *to != place && states.0[*to].is_none()));
            }
        }
        let mut before = self.ways.inward(place).iter();
        !before.any(|(_, from)| coming[*from])
    }
}

impl StepStates {
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
                Some(StepState::Running(_) | StepState::Waiting(_))
            )
        })
    }

    fn any_open(&self) -> bool {
        self.open().next().is_some()
    }
}
