//! State of the served partitions' retries.

use super::checkpoint::Checkpoint;
use super::open_records::OpenRecords;
use crate::leases::{OwnedPartitions, Round};

/// What is known of a partition's retries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Retries {
    /// The retries in its checkpoint are being read, for the partitions gained in this round.
    Loading(Round, OpenRecords),
    /// All retries are known.
    Known,
}

impl Retries {
    /// Completes a checkpoint for saving: what was not loaded yet stays open.
    pub(super) fn still_open(&self, mut checkpoint: Checkpoint) -> Checkpoint {
        if let Self::Loading(_, retries) = self {
            checkpoint.retries = checkpoint.retries.and(retries);
        }
        checkpoint
    }
}

impl OwnedPartitions<Retries> {
    /// Marks the retries of the partitions gained in this round as read.
    pub(super) fn retries_loaded(&mut self, round: Round) {
        for (_, retries) in self.served_mut() {
            if matches!(retries, Retries::Loading(of, _) if *of == round) {
                *retries = Retries::Known;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn what_is_being_loaded_stays_open_until_it_is_known() {
        let checkpoint = |records, through| Checkpoint {
            through: 9,
            retries: OpenRecords::new(records, through),
            requests_through: 0,
            queues: BTreeMap::new(),
        };
        let now = || checkpoint(vec![50], 90_000);
        let mut partitions = OwnedPartitions::default();
        let first = partitions.change(&BTreeSet::from([1])).round;
        let loading = Retries::Loading(first, OpenRecords::new(vec![7], 80_000));
        partitions.serve(1, first, loading).unwrap();
        let second = partitions.change(&BTreeSet::from([1, 2])).round;
        let loading = Retries::Loading(second, OpenRecords::new(vec![8], 80_000));
        partitions.serve(2, second, loading).unwrap();
        let open = |partitions: &OwnedPartitions<Retries>, partition| {
            partitions.get(partition).unwrap().still_open(now())
        };
        assert_eq!(open(&partitions, 1), checkpoint(vec![7, 50], 80_000));
        partitions.retries_loaded(first);
        assert_eq!(open(&partitions, 1), now());
        assert_eq!(open(&partitions, 2), checkpoint(vec![8, 50], 80_000));
    }
}
