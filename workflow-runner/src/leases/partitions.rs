//! The partitions that a part of this process owns, from being gained to being lost.

use std::collections::{BTreeMap, BTreeSet};

/// The owned partitions. Each one gained is first taken over, which takes a while, and then served,
/// with its state.
#[derive(Debug)]
pub(crate) struct OwnedPartitions<T> {
    served: BTreeMap<u16, T>,
    /// Those being taken over, and since which round.
    coming: BTreeMap<u16, Round>,
    last: Round,
}

/// A change of ownership. Work started for a partition in an earlier round does not apply to the
/// same one after it was lost and gained again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round(u64);

/// The effect of a change of ownership.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changed<T> {
    /// Partitions to take over.
    pub(crate) gained: Vec<u16>,
    /// The state of those that are no longer served.
    pub(crate) lost: Vec<(u16, T)>,
    /// Identifies those that were gained together.
    pub(crate) round: Round,
}

impl<T> Default for OwnedPartitions<T> {
    fn default() -> Self {
        Self {
            served: BTreeMap::new(),
            coming: BTreeMap::new(),
            last: Round::default(),
        }
    }
}

impl<T> OwnedPartitions<T> {
    /// Updates the owned partitions.
    pub(crate) fn change(&mut self, owned: &BTreeSet<u16>) -> Changed<T> {
        let round = Round(self.last.0 + 1);
        self.last = round;
        let is_lost = |partition: &u16| !owned.contains(partition);
        self.coming.retain(|partition, _| !is_lost(partition));
        let lost = self
            .served
            .extract_if(.., |partition, _| is_lost(partition));
        let lost = lost.collect();
        let is_new = |partition: &u16| {
            !self.served.contains_key(partition) && !self.coming.contains_key(partition)
        };
        let gained: Vec<u16> = owned.iter().copied().filter(is_new).collect();
        let coming = gained.iter().map(|partition| (*partition, round));
        self.coming.extend(coming);
        Changed {
            gained,
            lost,
            round,
        }
    }

    /// Starts to serve a partition that was gained in this round. If it has been lost since,
    /// returns its state.
    pub(crate) fn serve(&mut self, partition: u16, round: Round, known: T) -> Result<(), T> {
        if self.coming.get(&partition) != Some(&round) {
            return Err(known);
        }
        self.coming.remove(&partition);
        self.served.insert(partition, known);
        Ok(())
    }

    /// Abandons pending takeovers: the next change gains them again.
    pub(crate) fn give_up_coming(&mut self) {
        self.coming.clear();
    }

    /// Whether all owned partitions are served.
    pub(crate) fn all_served(&self) -> bool {
        self.coming.is_empty()
    }

    /// Those that are served.
    pub(crate) fn served(&self) -> &BTreeMap<u16, T> {
        &self.served
    }

    /// The state of those that are served.
    pub(crate) fn served_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        let served = self.served.iter_mut();
        served.map(|(partition, known)| (*partition, known))
    }

    /// The state of a partition, if it is served.
    pub(crate) fn get(&self, partition: u16) -> Option<&T> {
        self.served.get(&partition)
    }

    /// The same, mutable.
    pub(crate) fn get_mut(&mut self, partition: u16) -> Option<&mut T> {
        self.served.get_mut(&partition)
    }

    /// Whether a partition is served.
    pub(crate) fn serves(&self, partition: u16) -> bool {
        self.served.contains_key(&partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(partitions: &[u16]) -> BTreeSet<u16> {
        partitions.iter().copied().collect()
    }

    #[test]
    fn gained_and_lost_partitions_are_reported_once() {
        let mut partitions = OwnedPartitions::default();
        let first = partitions.change(&owned(&[1, 2]));
        assert_eq!((first.gained, first.lost), (vec![1, 2], vec![]));
        assert_eq!(partitions.serve(1, first.round, "one"), Ok(()));
        let second = partitions.change(&owned(&[2, 3]));
        assert_eq!((second.gained, second.lost), (vec![3], vec![(1, "one")]));
        let third = partitions.change(&owned(&[2, 3]));
        assert_eq!((third.gained, third.lost), (vec![], vec![]));
    }

    #[test]
    fn a_partition_is_served_once_it_was_taken_over() {
        let mut partitions = OwnedPartitions::default();
        let round = partitions.change(&owned(&[1, 2])).round;
        assert!(!partitions.serves(1) && !partitions.all_served());
        assert_eq!(partitions.serve(1, round, 5), Ok(()));
        assert_eq!((partitions.get(1), partitions.get(2)), (Some(&5), None));
        assert!(!partitions.all_served());
        assert_eq!(partitions.serve(2, round, 6), Ok(()));
        assert!(partitions.all_served());
        assert_eq!(
            partitions.serve(2, round, 7),
            Err(7),
            "it is served already"
        );
    }

    #[test]
    fn what_was_lost_and_gained_again_is_taken_over_anew() {
        let mut partitions = OwnedPartitions::default();
        let first = partitions.change(&owned(&[1])).round;
        partitions.change(&owned(&[]));
        assert_eq!(partitions.serve(1, first, 5), Err(5));
        let second = partitions.change(&owned(&[1]));
        assert_eq!(second.gained, [1]);
        assert_eq!(partitions.serve(1, first, 5), Err(5));
        assert_eq!(partitions.serve(1, second.round, 6), Ok(()));
    }

    #[test]
    fn what_was_given_up_is_gained_again() {
        let mut partitions = OwnedPartitions::default();
        let first = partitions.change(&owned(&[1, 2]));
        assert_eq!(partitions.serve(1, first.round, 5), Ok(()));
        partitions.give_up_coming();
        let second = partitions.change(&owned(&[1, 2]));
        assert_eq!((second.gained, second.lost), (vec![2], vec![]));
        assert_eq!(partitions.serve(2, first.round, 6), Err(6));
    }
}
