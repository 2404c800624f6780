//! Groups checks that wait at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::counter::Counter;
use super::decision::Decision;
use super::prepaid::Ahead;
use super::use_of::Window;

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

/// Checks that are decided in one statement: they have the same cost and window.
#[derive(Debug)]
pub(super) struct Flush {
    /// When it was gathered: the database decides after this moment.
    pub(super) asked: Instant,
    pub(super) window: Window,
    pub(super) cost: u64,
    /// Each counter occurs once.
    pub(super) groups: Vec<Group>,
}

/// Checks of one counter, in the order they came.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) counter: Arc<Counter>,
    pub(super) quota: u64,
    pub(super) answers: Vec<oneshot::Sender<Decision>>,
    /// Checks prepaid along with these.
    pub(super) ahead: Ahead,
}

/// What has been done with a counter while gathering.
enum Met {
    Taken(usize),
    /// One of its checks waits for a later flush, and so do all that came after it: small requests
    /// must not overtake a large one forever.
    Left,
}

/// Takes the checks that can be decided with the first one; the rest stays in `waiting` for later
/// flushes. Checks that have been paid for meanwhile are answered.
pub(super) fn gather(waiting: &mut Vec<Waiting>, now: Instant) -> Option<Flush> {
    let first = waiting.first()?;
    let mut flush = Flush {
        asked: now,
        window: first.counter.window(),
        cost: first.cost,
        groups: Vec::new(),
    };
    let mut met: HashMap<Arc<str>, Met> = HashMap::with_capacity(waiting.len().min(MAX_GROUPS));
    let mut later = Vec::new();
    for check in waiting.drain(..) {
        if let Err(check) = flush.take(check, &mut met) {
            met.insert(check.counter.name().clone(), Met::Left);
            later.push(check);
        }
    }
    *waiting = later;
    Some(flush)
}

impl Flush {
    /// Takes a check, or returns it if it cannot be part of this flush.
    fn take(&mut self, check: Waiting, met: &mut HashMap<Arc<str>, Met>) -> Result<(), Waiting> {
        if check.cost != self.cost || check.counter.window() != self.window {
            return Err(check);
        }
        if let Some(decision) = check.counter.spend(self.asked, check.quota, check.cost) {
            // A caller that has gone away is still counted: it asked.
            let _ = check.answer.send(decision);
            return Ok(());
        }
        match met.get(check.counter.name()) {
            Some(Met::Taken(index)) if self.groups[*index].quota == check.quota => {
                self.groups[*index].answers.push(check.answer);
                Ok(())
            }
            None if self.groups.len() < MAX_GROUPS => {
                let name = check.counter.name().clone();
                met.insert(name, Met::Taken(self.groups.len()));
                self.groups.push(Group {
                    ahead: check.counter.ahead(self.asked, check.quota, check.cost),
                    counter: check.counter,
                    quota: check.quota,
                    answers: vec![check.answer],
                });
                Ok(())
            }
            _ => Err(check),
        }
    }
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
                let flush = gather(&mut left, Instant::now()).unwrap();
                let groups = &flush.groups;
                let mut names: Vec<_> = groups.iter().map(|group| group.counter.name()).collect();
                names.sort_unstable();
                names.dedup();
                prop_assert_eq!(names.len(), groups.len(), "a counter stands once in a flush");
                for group in groups {
                    let check = (group.counter.name().to_string(), flush.cost);
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
        for expected in [MAX_GROUPS, 1] {
            assert_eq!(
                gather(&mut left, Instant::now()).unwrap().groups.len(),
                expected
            );
        }
        assert!(gather(&mut left, Instant::now()).is_none());
    }
}
