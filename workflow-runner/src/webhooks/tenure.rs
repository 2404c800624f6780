//! Which partitions are ours, and how far taking each of them over has come.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::Checkpoint;

/// The partitions of this process.
#[derive(Debug, Default)]
pub(super) struct Tenures {
    held: BTreeMap<u16, Tenure>,
    rounds: u64,
}

#[derive(Debug)]
struct Tenure {
    /// Tells this time of ownership from earlier ones.
    round: u64,
    stage: Stage,
    /// The checkpoint that was written last.
    written: Option<Checkpoint>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Its checkpoint is being read.
    TakingOver,
    /// It is served; deliveries to be tried again are being read from behind this attempt.
    Recalling { attempts_after: u64 },
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

impl Tenures {
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
            let tenure = Tenure {
                round,
                stage: Stage::TakingOver,
                written: None,
            };
            self.held.insert(*partition, tenure);
        }
        Changed {
            gained,
            lost,
            round,
        }
    }

    /// The checkpoint of a partition was read; `false` where it is ours no longer.
    pub(super) fn taken_over(&mut self, partition: u16, round: u64, attempts_after: u64) -> bool {
        let tenure = self.held.get_mut(&partition);
        let Some(tenure) = tenure.filter(|tenure| tenure.round == round) else {
            return false;
        };
        tenure.stage = Stage::Recalling { attempts_after };
        true
    }

    /// Deliveries to be tried again were read for those gained in this round.
    pub(super) fn recalled(&mut self, round: u64) {
        for tenure in self
            .held
            .values_mut()
            .filter(|tenure| tenure.round == round)
        {
            if matches!(tenure.stage, Stage::Recalling { .. }) {
                tenure.stage = Stage::Settled;
            }
        }
    }

    /// Whether lanes of this partition are served.
    pub(super) fn serves(&self, partition: u16) -> bool {
        let tenure = self.held.get(&partition);
        tenure.is_some_and(|tenure| !matches!(tenure.stage, Stage::TakingOver))
    }

    /// The partitions that are served.
    pub(super) fn served(&self) -> impl Iterator<Item = u16> {
        let mut partitions = self.held.keys().copied().collect::<Vec<_>>();
        partitions.retain(|partition| self.serves(*partition));
        partitions.into_iter()
    }

    /// The checkpoint to be written where it says something new. What has not been recalled yet
    /// stays open.
    pub(super) fn news(&self, partition: u16, mut checkpoint: Checkpoint) -> Option<Checkpoint> {
        let tenure = self.held.get(&partition)?;
        match tenure.stage {
            Stage::TakingOver => return None,
            Stage::Recalling { attempts_after } => {
                checkpoint.attempts_after = checkpoint.attempts_after.min(attempts_after);
            }
            Stage::Settled => {}
        }
        (tenure.written.as_ref() != Some(&checkpoint)).then_some(checkpoint)
    }

    /// A checkpoint was written.
    pub(super) fn written(&mut self, partition: u16, checkpoint: Checkpoint) {
        if let Some(tenure) = self.held.get_mut(&partition) {
            tenure.written = Some(checkpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(attempts_after: u64) -> Checkpoint {
        Checkpoint {
            through: 9,
            attempts_after,
            requests_through: 0,
            lanes: BTreeMap::new(),
        }
    }

    #[test]
    fn gains_and_losses_are_told_once() {
        let mut tenures = Tenures::default();
        let changed = tenures.change(&BTreeSet::from([1, 2]));
        assert_eq!((changed.gained, changed.lost), (vec![1, 2], vec![]));
        let changed = tenures.change(&BTreeSet::from([2, 3]));
        assert_eq!((changed.gained, changed.lost), (vec![3], vec![1]));
    }

    #[test]
    fn a_partition_is_served_once_it_was_taken_over() {
        let mut tenures = Tenures::default();
        let round = tenures.change(&BTreeSet::from([1])).round;
        assert!(!tenures.serves(1));
        assert_eq!(tenures.news(1, checkpoint(50)), None);
        assert!(tenures.taken_over(1, round, 7));
        assert!(tenures.serves(1));
        assert_eq!(tenures.news(1, checkpoint(50)), Some(checkpoint(7)));
        tenures.recalled(round);
        assert_eq!(tenures.news(1, checkpoint(50)), Some(checkpoint(50)));
        tenures.written(1, checkpoint(50));
        assert_eq!(tenures.news(1, checkpoint(50)), None);
    }

    #[test]
    fn what_was_lost_and_gained_again_is_another_tenure() {
        let mut tenures = Tenures::default();
        let first = tenures.change(&BTreeSet::from([1])).round;
        tenures.change(&BTreeSet::new());
        tenures.change(&BTreeSet::from([1]));
        assert!(!tenures.taken_over(1, first, 7));
        assert!(!tenures.serves(1));
    }
}
