//! Runs that are to be carried on as soon as there is room.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use schemas::OrgId;

use super::index::RunKey;

/// An organization in four bytes. It is only for taking turns: two that share a number share
/// their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Turn(pub(super) u32);

impl Turn {
    pub(super) fn of(org: &OrgId) -> Self {
        let mut hasher = DefaultHasher::new();
        org.hash(&mut hasher);
        let hash = hasher.finish() >> 32;
        Self(u32::try_from(hash).unwrap_or_default())
    }
}

/// Where a run stands: its partition and its key.
pub(super) type Place = (u16, RunKey);

/// Waiting runs, each once. Organizations take turns, so that the many runs of one do not hold up
/// the few of another.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    queues: HashMap<Turn, VecDeque<Place>>,
    turns: VecDeque<Turn>,
    waiting: HashSet<RunKey>,
}

impl Backlog {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn has(&self, turn: Turn) -> bool {
        self.queues.contains_key(&turn)
    }

    pub(super) fn push(&mut self, turn: Turn, place: Place) {
        if !self.waiting.insert(place.1) {
            return;
        }
        let queue = self.queues.entry(turn).or_default();
        if queue.is_empty() {
            self.turns.push_back(turn);
        }
        queue.push_back(place);
    }

    /// The next run of the next organization that may have one more.
    pub(super) fn pop(&mut self, mut may: impl FnMut(Turn) -> bool) -> Option<(Turn, Place)> {
        for _ in 0..self.turns.len() {
            let turn = self.turns.pop_front()?;
            if !may(turn) {
                self.turns.push_back(turn);
                continue;
            }
            let Some(queue) = self.queues.get_mut(&turn) else {
                continue;
            };
            let place = queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&turn);
            } else {
                self.turns.push_back(turn);
            }
            if let Some(place) = place {
                self.waiting.remove(&place.1);
                return Some((turn, place));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u128) -> Place {
        (0, RunKey(number))
    }

    #[test]
    fn organizations_take_turns() {
        let mut backlog = Backlog::default();
        let (many, few) = (Turn(1), Turn(3));
        (0..4).for_each(|number| backlog.push(many, place(number)));
        backlog.push(few, place(9));
        let order: Vec<u128> = std::iter::from_fn(|| backlog.pop(|_| true))
            .map(|(_, (_, key))| key.0)
            .collect();
        assert_eq!(order, [0, 9, 1, 2, 3]);
        assert_eq!(backlog.len(), 0);
    }

    #[test]
    fn an_organization_that_has_its_share_is_passed_over() {
        let mut backlog = Backlog::default();
        backlog.push(Turn(1), place(1));
        backlog.push(Turn(3), place(3));
        let next = backlog.pop(|turn| turn == Turn(3));
        assert_eq!(next, Some((Turn(3), place(3))));
        assert_eq!(backlog.pop(|turn| turn == Turn(3)), None);
        assert!(backlog.has(Turn(1)));
    }

    #[test]
    fn one_that_comes_last_is_next_beside_ten_thousand_of_anothers() {
        let mut backlog = Backlog::default();
        (0..10_000).for_each(|number| backlog.push(Turn(1), place(number)));
        assert!(backlog.pop(|_| true).is_some());
        backlog.push(Turn(3), place(10_000));
        let among_the_next_two = [backlog.pop(|_| true), backlog.pop(|_| true)];
        assert!(among_the_next_two.contains(&Some((Turn(3), place(10_000)))));
    }

    #[test]
    fn a_run_waits_once() {
        let mut backlog = Backlog::default();
        backlog.push(Turn(1), place(1));
        backlog.push(Turn(1), place(1));
        backlog.push(Turn(3), place(1));
        assert_eq!(backlog.len(), 1);
        assert!(backlog.pop(|_| true).is_some());
        assert!(backlog.pop(|_| true).is_none());
    }
}
