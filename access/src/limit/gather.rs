//! Putting checks together that wait at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::counter::Counter;
use super::decision::Decision;

/// Counters in one flush.
const MAX_GROUPS: usize = 1_000;

/// A check that waits for its decision.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) counter: Arc<Counter>,
    pub(super) quota: u64,
    pub(super) cost: u64,
    pub(super) answer: oneshot::Sender<Decision>,
}

/// Checks of one counter that differ in nothing, in the order they came.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) counter: Arc<Counter>,
    pub(super) quota: u64,
    pub(super) cost: u64,
    pub(super) answers: Vec<oneshot::Sender<Decision>>,
}

/// Takes groups for one flush, each counter at most once. What differs from the first check of its
/// counter stays in `waiting` for the next flush, with all that came after it for that counter, so
/// that a small request does not overtake a large one for ever.
pub(super) fn gather(waiting: &mut Vec<Waiting>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<Arc<str>, Place> =
        HashMap::with_capacity(waiting.len().min(MAX_GROUPS));
    let mut later = Vec::new();
    for check in waiting.drain(..) {
        match places.get_mut(check.counter.name()) {
            None if groups.len() == MAX_GROUPS => later.push(check),
            None => {
                let place = Place {
                    index: groups.len(),
                    open: true,
                };
                places.insert(check.counter.name().clone(), place);
                groups.push(Group {
                    counter: check.counter,
                    quota: check.quota,
                    cost: check.cost,
                    answers: vec![check.answer],
                });
            }
            Some(place) => {
                let group = &mut groups[place.index];
                place.open &= group.quota == check.quota && group.cost == check.cost;
                if place.open {
                    group.answers.push(check.answer);
                } else {
                    later.push(check);
                }
            }
        }
    }
    *waiting = later;
    groups
}

struct Place {
    index: usize,
    open: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limit::Policy;

    fn waiting(checks: &[(u8, u64)]) -> Vec<Waiting> {
        let check = |(caller, cost): &(u8, u64)| Waiting {
            counter: Arc::new(Counter::new(Policy::Hourly, &caller.to_string(), 60, false)),
            quota: 10,
            cost: *cost,
            answer: oneshot::channel().0,
        };
        checks.iter().map(check).collect()
    }

    proptest! {
        #[test]
        fn every_check_is_flushed_once_in_the_order_of_its_counter(
            checks in prop::collection::vec((0..4_u8, 1..3_u64), 0..40),
        ) {
            let mut left = waiting(&checks);
            let mut flushed: Vec<(String, u64)> = Vec::new();
            while !left.is_empty() {
                let groups = gather(&mut left);
                let mut names: Vec<_> = groups.iter().map(|group| group.counter.name()).collect();
                names.sort_unstable();
                names.dedup();
                prop_assert_eq!(names.len(), groups.len(), "a counter stands once in a flush");
                for group in &groups {
                    let check = (group.counter.name().to_string(), group.cost);
                    flushed.extend(group.answers.iter().map(|_| check.clone()));
                }
            }
            for caller in 0..4 {
                let name = format!("hourly/{caller}");
                let sent = checks.iter().filter(|(of, _)| *of == caller).map(|(_, cost)| *cost);
                let done = flushed.iter().filter(|(of, _)| *of == name).map(|(_, cost)| *cost);
                prop_assert_eq!(sent.collect::<Vec<_>>(), done.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_flush_takes_so_many_counters_and_no_more() {
        let mut left = Vec::new();
        for caller in 0..=MAX_GROUPS {
            let name = caller.to_string();
            let mut one = waiting(&[(0, 1)]);
            one[0].counter = Arc::new(Counter::new(Policy::Hourly, &name, 60, false));
            left.append(&mut one);
        }
        assert_eq!(gather(&mut left).len(), MAX_GROUPS);
        assert_eq!(gather(&mut left).len(), 1);
    }
}
