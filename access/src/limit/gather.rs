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
