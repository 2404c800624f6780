//! Counts the open runs of each organization. This bounds the index of open runs, which one
//! organization's events could otherwise fill.
//!
//! A process counts the runs of its partitions. Runs are spread evenly over all partitions, so its
//! counts show how many there are in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemas::OrgId;

use super::index::Partition;
use super::turn::Turn;
use crate::leases::PARTITIONS;

/// Counts of the open runs in this process' partitions. Clones are the same.
#[derive(Clone, Debug)]
pub struct OpenRuns {
    most: u32,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    partitions: usize,
    by_org: HashMap<Turn, usize>,
}

impl OpenRuns {
    /// Allows at most `most` per organization.
    pub fn at_most(most: u32) -> Self {
        Self {
            most,
            counts: Arc::default(),
        }
    }

    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// Whether an organization has reached its limit, including those about to start.
    pub(super) fn is_full(&self, org: &OrgId, beginning: usize) -> bool {
        let counts = self.counts();
        let here = counts.by_org.get(&Turn::of_org(org));
        let here = here.copied().unwrap_or(0) * usize::from(PARTITIONS);
        // Without a partition nothing is known.
        let in_all = here.checked_div(counts.partitions).unwrap_or(0);
        in_all + beginning >= self.most as usize
    }

    /// Starts over, since the previous counter has ended.
    pub(super) fn begin_anew(&self) {
        *self.counts() = Counts::default();
    }

    /// Starts counting the runs of a partition.
    pub(super) fn take_over(&self, partition: &Partition) {
        let mut counts = self.counts();
        counts.partitions += 1;
        for open in partition.open.values() {
            *counts.by_org.entry(open.turn.org()).or_default() += 1;
        }
    }

    /// Stops counting the runs of a partition.
    pub(super) fn let_go(&self, partition: &Partition) {
        let mut counts = self.counts();
        counts.partitions = counts.partitions.saturating_sub(1);
        for open in partition.open.values() {
            counts.less(open.turn);
        }
    }

    /// Counts a change by one run of this organization in a partition that had `before` open runs.
    pub(super) fn note(&self, turn: Turn, before: usize, partition: &Partition) {
        let after = partition.open.len();
        if after > before {
            *self.counts().by_org.entry(turn.org()).or_default() += 1;
        } else if after < before {
            self.counts().less(turn);
        }
    }

    /// The most runs that any organization has open here.
    pub(super) fn largest(&self) -> usize {
        self.counts().by_org.values().copied().max().unwrap_or(0)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn less(&mut self, turn: Turn) {
        let org = turn.org();
        let Some(count) = self.by_org.get_mut(&org) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.by_org.remove(&org);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::{Open, Phase, RunKey};
    use super::*;

    fn org(name: &str) -> OrgId {
        OrgId::from(name)
    }

    fn add(partition: &mut Partition, key: u128, of: &OrgId) -> Turn {
        let turn = Turn::of_org(of);
        let open = Open::noted(1, turn, Phase::Ready);
        partition.open.insert(RunKey(key), open);
        turn
    }

    #[test]
    fn an_organization_is_full_by_its_own_runs_and_by_no_others() {
        let (open, mut partition) = (OpenRuns::at_most(2), Partition::default());
        (0..PARTITIONS).for_each(|_| open.take_over(&Partition::default()));
        for key in 0..5 {
            let before = partition.open.len();
            let turn = add(&mut partition, key, &org("many"));
            open.note(turn, before, &partition);
        }
        assert!(open.is_full(&org("many"), 0));
        assert!(!open.is_full(&org("few"), 1));
        assert!(
            open.is_full(&org("few"), 2),
            "what is about to begin counts"
        );
        for key in 0..5 {
            let before = partition.open.len();
            partition.open.remove(&RunKey(key));
            open.note(Turn::of_org(&org("many")), before, &partition);
        }
        assert!(!open.is_full(&org("many"), 0));
        assert!(open.counts().by_org.is_empty());
    }

    #[test]
    fn who_has_some_of_the_partitions_knows_about_all() {
        let (open, mut partition) = (OpenRuns::at_most(64), Partition::default());
        assert!(!open.is_full(&org("o"), 0), "without any nobody knows");
        for key in 0..4 {
            add(&mut partition, key, &org("o"));
        }
        open.take_over(&partition);
        assert!(open.is_full(&org("o"), 0), "four of one in 32 partitions");
        open.take_over(&Partition::default());
        assert!(open.is_full(&org("o"), 0));
        open.take_over(&Partition::default());
        assert!(!open.is_full(&org("o"), 0));
        open.let_go(&partition);
        assert!(open.counts().by_org.is_empty());
    }
}
