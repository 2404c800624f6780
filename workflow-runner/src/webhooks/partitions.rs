//! Which partitions are ours, and how far taking each of them over has come.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::Checkpoint;
use super::open_records::OpenRecords;

/// The partitions of this process.
#[derive(Debug, Default)]
pub(super) struct OwnedPartitions {
    held: BTreeMap<u16, OwnedPartition>,
    rounds: u64,
}

#[derive(Debug)]
struct OwnedPartition {
    /// Tells this time of ownership from earlier ones.
    round: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Its checkpoint is being read.
    TakingOver,
    /// It is served; the deliveries to be tried again that its checkpoint tells of are being read.
    LoadingRetries(OpenRecords),
    /// All is known.
    Settled,
}

/// What a change of ownership means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) gained: Vec<u16>,
    pub(super) lost: Vec<u16>,
    /// Names those that were gained together.
    pub(super) round: u64,
}

impl OwnedPartitions {
    /// Takes note of what is owned now.
    pub(super) fn change(&mut self, owned: &BTreeSet<u16>) -> Changed {
        self.rounds += 1;
        let round = self.rounds;
        let lost: Vec<u16> = self
            .held
            .keys()
            .copied()
            .filter(|p| !owned.contains(p))
            .collect();
        let gained: Vec<u16> = owned
            .iter()
            .copied()
            .filter(|p| !self.held.contains_key(p))
            .collect();
        for partition in &lost {
            self.held.remove(partition);
        }
        for partition in &gained {
            let owned = OwnedPartition {
                round,
                stage: Stage::TakingOver,
            };
            self.held.insert(*partition, owned);
        }
        Changed {
            gained,
            lost,
            round,
        }
    }

    /// The checkpoint of a partition was read; `false` where it is ours no longer.
    pub(super) fn taken_over(&mut self, partition: u16, round: u64, retries: OpenRecords) -> bool {
        let owned = self.held.get_mut(&partition);
        let Some(owned) = owned.filter(|owned| owned.round == round) else {
            return false;
        };
        owned.stage = Stage::LoadingRetries(retries);
        true
    }

    /// Deliveries to be tried again were read for those gained in this round.
    pub(super) fn retries_loaded(&mut self, round: u64) {
        for owned in self.held.values_mut().filter(|owned| owned.round == round) {
            if matches!(owned.stage, Stage::LoadingRetries(_)) {
                owned.stage = Stage::Settled;
            }
        }
    }

    /// Whether queues of this partition are served.
    pub(super) fn serves(&self, partition: u16) -> bool {
        let owned = self.held.get(&partition);
        owned.is_some_and(|owned| !matches!(owned.stage, Stage::TakingOver))
    }

    /// The partitions that are served.
    pub(super) fn served(&self) -> impl Iterator<Item = u16> {
        let mut partitions = self.held.keys().copied().collect::<Vec<_>>();
        partitions.retain(|partition| self.serves(*partition));
        partitions.into_iter()
    }

    /// A checkpoint as it may be written: what was not loaded yet stays open.
    pub(super) fn still_open(
        &self,
        partition: u16,
        mut checkpoint: Checkpoint,
    ) -> Option<Checkpoint> {
        match &self.held.get(&partition)?.stage {
            Stage::TakingOver => return None,
            Stage::LoadingRetries(retries) => {
                checkpoint.retries = checkpoint.retries.and(retries);
            }
            Stage::Settled => {}
        }
        Some(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retries(record: u64, through: u64) -> OpenRecords {
        OpenRecords::new(vec![record], through)
    }

    fn checkpoint(retries: OpenRecords) -> Checkpoint {
        Checkpoint {
            through: 9,
            retries,
            requests_through: 0,
            queues: BTreeMap::new(),
        }
    }

    #[test]
    fn gains_and_losses_are_told_once() {
        let mut partitions = OwnedPartitions::default();
        let changed = partitions.change(&BTreeSet::from([1, 2]));
        assert_eq!((changed.gained, changed.lost), (vec![1, 2], vec![]));
        let changed = partitions.change(&BTreeSet::from([2, 3]));
        assert_eq!((changed.gained, changed.lost), (vec![3], vec![1]));
    }

    #[test]
    fn a_partition_is_served_once_it_was_taken_over() {
        let mut partitions = OwnedPartitions::default();
        let round = partitions.change(&BTreeSet::from([1])).round;
        assert!(!partitions.serves(1));
        let now = || checkpoint(retries(50, 90_000));
        assert_eq!(partitions.still_open(1, now()), None);
        assert!(partitions.taken_over(1, round, retries(7, 80_000)));
        assert!(partitions.serves(1));
        let both = checkpoint(OpenRecords::new(vec![7, 50], 80_000));
        assert_eq!(partitions.still_open(1, now()), Some(both));
        partitions.retries_loaded(round);
        assert_eq!(partitions.still_open(1, now()), Some(now()));
    }

    #[test]
    fn what_was_lost_and_gained_again_is_owned_anew() {
        let mut partitions = OwnedPartitions::default();
        let first = partitions.change(&BTreeSet::from([1])).round;
        partitions.change(&BTreeSet::new());
        partitions.change(&BTreeSet::from([1]));
        assert!(!partitions.taken_over(1, first, retries(7, 9)));
        assert!(!partitions.serves(1));
    }
}
