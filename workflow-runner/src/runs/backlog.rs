//! Runs that are to be carried on as soon as there is room.

use std::collections::{HashMap, HashSet, VecDeque};

use super::index::RunKey;
use super::turn::{Origin, Turn};

/// A run's partition and key.
pub(super) type RunRef = (u16, RunKey);

/// Waiting runs, each once. Organizations take turns, so that the many runs of one do not hold up
/// the few of another.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    queues: HashMap<Turn, VecDeque<RunRef>>,
    outside: VecDeque<Turn>,
    by_events: VecDeque<Turn>,
    waiting: HashSet<RunKey>,
}

impl Backlog {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn has(&self, turn: Turn) -> bool {
        self.queues.contains_key(&turn)
    }

    pub(super) fn push(&mut self, turn: Turn, run: RunRef) {
        if !self.waiting.insert(run.1) {
            return;
        }
        let queue = self.queues.entry(turn).or_default();
        let is_new = queue.is_empty();
        queue.push_back(run);
        if is_new {
            self.turns(turn.origin()).push_back(turn);
        }
    }

    fn turns(&mut self, origin: Origin) -> &mut VecDeque<Turn> {
        match origin {
            Origin::Outside => &mut self.outside,
            Origin::Event => &mut self.by_events,
        }
    }

    /// The next run of the next organization that may have one more.
    pub(super) fn pop(
        &mut self,
        origin: Origin,
        mut may: impl FnMut(Turn) -> bool,
    ) -> Option<(Turn, RunRef)> {
        for _ in 0..self.turns(origin).len() {
            let turn = self.turns(origin).pop_front()?;
            if !may(turn) {
                self.turns(origin).push_back(turn);
                continue;
            }
            let Some(queue) = self.queues.get_mut(&turn) else {
                continue;
            };
            let run = queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&turn);
            } else {
                self.turns(origin).push_back(turn);
            }
            if let Some(run) = run {
                self.waiting.remove(&run.1);
                return Some((turn, run));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u128) -> RunRef {
        (0, RunKey(number))
    }

    #[test]
    fn organizations_take_turns() {
        let mut backlog = Backlog::default();
        let (many, few) = (Turn(2), Turn(4));
        (0..4).for_each(|number| backlog.push(many, run(number)));
        backlog.push(few, run(9));
        let order: Vec<u128> = std::iter::from_fn(|| backlog.pop(Origin::Outside, |_| true))
            .map(|(_, (_, key))| key.0)
            .collect();
        assert_eq!(order, [0, 9, 1, 2, 3]);
        assert_eq!(backlog.len(), 0);
    }

    #[test]
    fn an_organization_that_has_its_share_is_passed_over() {
        let mut backlog = Backlog::default();
        backlog.push(Turn(2), run(2));
        backlog.push(Turn(4), run(4));
        let mut next = || backlog.pop(Origin::Outside, |turn| turn == Turn(4));
        assert_eq!(next(), Some((Turn(4), run(4))));
        assert_eq!(next(), None);
        assert!(backlog.has(Turn(2)));
    }

    #[test]
    fn runs_of_either_origin_wait_for_their_own_places() {
        let mut backlog = Backlog::default();
        let (outside, by_event) = (Turn(2), Turn(3));
        assert_eq!(outside.org(), by_event.org());
        backlog.push(by_event, run(3));
        backlog.push(outside, run(2));
        let next = backlog.pop(Origin::Outside, |_| true);
        assert_eq!(next, Some((outside, run(2))));
        assert_eq!(backlog.pop(Origin::Outside, |_| true), None);
        let next = backlog.pop(Origin::Event, |_| true);
        assert_eq!(next, Some((by_event, run(3))));
    }

    #[test]
    fn one_that_comes_last_is_next_beside_ten_thousand_of_anothers() {
        let mut backlog = Backlog::default();
        (0..10_000).for_each(|number| backlog.push(Turn(2), run(number)));
        assert!(backlog.pop(Origin::Outside, |_| true).is_some());
        backlog.push(Turn(4), run(10_000));
        let mut next = || backlog.pop(Origin::Outside, |_| true);
        assert!([next(), next()].contains(&Some((Turn(4), run(10_000)))));
    }

    #[test]
    fn a_run_waits_once() {
        let mut backlog = Backlog::default();
        backlog.push(Turn(2), run(1));
        backlog.push(Turn(2), run(1));
        backlog.push(Turn(4), run(1));
        assert_eq!(backlog.len(), 1);
        assert!(backlog.pop(Origin::Outside, |_| true).is_some());
        assert!(backlog.pop(Origin::Outside, |_| true).is_none());
    }
}
