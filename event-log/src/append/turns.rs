//! Waiting commits, whose parties take turns.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::party::Party;

/// Commits that may wait at the same time. One party may have only as many as there is room left
/// for, so that others always find some.
const ROOM: usize = 32_768;

/// A queue for each party; the party that was served least is next.
///
/// What a party was served is counted in messages from the time it began to wait, so that no party
/// is delayed for what it was served before. (Start-time fair queueing.)
#[derive(Debug)]
pub(super) struct Turns<T> {
    queues: HashMap<Party, Queue<T>>,
    /// By what they were served, then by arrival.
    order: BTreeMap<(u64, u64), Party>,
    /// What the party of the last turn was served: where new parties begin.
    served: u64,
    arrivals: u64,
    len: usize,
}

#[derive(Debug)]
struct Queue<T> {
    served: u64,
    arrival: u64,
    waiting: VecDeque<T>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            order: BTreeMap::new(),
            served: 0,
            arrivals: 0,
            len: 0,
        }
    }
}

impl<T> Turns<T> {
    /// Queues a commit after its party's others; returns it if the party has its share of the room.
    pub(super) fn push(&mut self, party: Party, commit: T) -> Result<(), T> {
        if self.waiting(party) >= ROOM.saturating_sub(self.len) {
            return Err(commit);
        }
        self.queue(party).waiting.push_back(commit);
        self.len += 1;
        Ok(())
    }

    /// Puts commits that were taken back in front of their party's others, in their order.
    pub(super) fn put_back(&mut self, commits: Vec<(Party, T)>) {
        for (party, commit) in commits.into_iter().rev() {
            self.queue(party).waiting.push_front(commit);
            self.len += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many commits of a party wait.
    pub(super) fn waiting(&self, party: Party) -> usize {
        self.queues
            .get(&party)
            .map_or(0, |queue| queue.waiting.len())
    }

    /// Takes the next commit of the party whose turn it is, among those that may have one.
    pub(super) fn pop(&mut self, may: impl Fn(Party) -> bool) -> Option<(Party, T)> {
        let mut order = self.order.iter();
        let (&place, &party) = order.find(|(_, party)| may(**party))?;
        self.served = self.served.max(place.0);
        let queue = self.queues.get_mut(&party)?;
        let commit = queue.waiting.pop_front()?;
        self.len -= 1;
        if queue.waiting.is_empty() {
            self.order.remove(&place);
            self.queues.remove(&party);
        }
        Some((party, commit))
    }

    /// Counts messages that a party was served.
    pub(super) fn count(&mut self, party: Party, messages: u64) {
        if let Some(queue) = self.queues.get_mut(&party) {
            self.order.remove(&(queue.served, queue.arrival));
            queue.served += messages;
            self.order.insert((queue.served, queue.arrival), party);
        }
    }

    fn queue(&mut self, party: Party) -> &mut Queue<T> {
        self.queues.entry(party).or_insert_with(|| {
            self.arrivals += 1;
            let queue = Queue {
                served: self.served,
                arrival: self.arrivals,
                waiting: VecDeque::new(),
            };
            self.order.insert((queue.served, queue.arrival), party);
            queue
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The party, and the commit's number among the party's own.
    type Turn = (u64, usize);

    fn offer(turns: &mut Turns<usize>, party: u64, commits: std::ops::Range<usize>) {
        for commit in commits {
            assert!(turns.push(Party(party), commit).is_ok());
        }
    }

    fn next(turns: &mut Turns<usize>, messages: u64) -> Option<Turn> {
        let (party, commit) = turns.pop(|_| true)?;
        turns.count(party, messages);
        Some((party.0, commit))
    }

    #[test]
    fn a_new_party_gets_one_of_the_next_two_turns_beside_10_000_of_another() {
        let mut turns = Turns::default();
        offer(&mut turns, 1, 0..10_000);
        for _ in 0..5_000 {
            assert!(next(&mut turns, 3).is_some());
        }
        offer(&mut turns, 2, 0..1);
        let two = [next(&mut turns, 3), next(&mut turns, 3)];
        assert!(two.contains(&Some((2, 0))), "{two:?}");
    }

    #[test]
    fn a_party_that_writes_much_at_a_time_has_fewer_turns() {
        let mut turns = Turns::default();
        offer(&mut turns, 1, 0..100);
        offer(&mut turns, 2, 0..100);
        let mut served: HashMap<u64, u64> = HashMap::new();
        for _ in 0..60 {
            let (party, _) = turns.pop(|_| true).expect("a commit");
            let messages = if party == Party(1) { 10 } else { 1 };
            turns.count(party, messages);
            *served.entry(party.0).or_default() += messages;
        }
        assert!(served[&1].abs_diff(served[&2]) <= 10, "{served:?}");
    }

    #[test]
    fn nobody_is_the_later_for_what_it_was_served_before() {
        let mut turns = Turns::default();
        offer(&mut turns, 1, 0..1_000);
        for _ in 0..999 {
            assert!(next(&mut turns, 1).is_some());
        }
        offer(&mut turns, 2, 0..1_000);
        let of_both: Vec<u64> = (0..2)
            .filter_map(|_| next(&mut turns, 1))
            .map(|(party, _)| party)
            .collect();
        assert!(of_both.contains(&1) && of_both.contains(&2), "{of_both:?}");
    }

    #[test]
    fn a_party_that_may_not_have_a_turn_keeps_its_place() {
        let mut turns = Turns::default();
        offer(&mut turns, 1, 0..2);
        offer(&mut turns, 2, 0..2);
        let all: Vec<_> = std::iter::from_fn(|| turns.pop(|party| party != Party(1))).collect();
        assert_eq!(all, [(Party(2), 0), (Party(2), 1)]);
        assert!(!turns.is_empty());
        assert_eq!(turns.waiting(Party(1)), 2);
        assert_eq!(next(&mut turns, 1), Some((1, 0)));
    }

    #[test]
    fn one_party_leaves_room_for_others() {
        let mut turns = Turns::default();
        let taken = (0..ROOM).take_while(|n| turns.push(Party(1), *n).is_ok());
        assert_eq!(taken.count(), ROOM / 2);
        assert!(turns.push(Party(2), 0).is_ok());
    }

    proptest! {
        #[test]
        fn each_partys_commits_keep_their_order(
            deeds in prop::collection::vec((0_u64..4, 1_u64..5, any::<bool>()), 0..300),
        ) {
            let mut turns = Turns::default();
            let (mut given, mut taken) = (HashMap::new(), HashMap::new());
            for (party, messages, takes) in deeds {
                if takes {
                    // What stays goes back to where it was.
                    let staying: Vec<_> = (0..messages).filter_map(|_| turns.pop(|_| true)).collect();
                    turns.put_back(staying);
                    if let Some((party, commit)) = next(&mut turns, messages) {
                        let before = taken.insert(party, commit + 1);
                        prop_assert_eq!(commit, before.unwrap_or(0));
                    }
                } else {
                    let number = given.entry(party).or_insert(0);
                    prop_assert!(turns.push(Party(party), *number).is_ok());
                    *number += 1;
                }
            }
            while let Some((party, commit)) = next(&mut turns, 1) {
                let before = taken.insert(party, commit + 1);
                prop_assert_eq!(commit, before.unwrap_or(0));
            }
            prop_assert_eq!(given, taken);
        }
    }
}
