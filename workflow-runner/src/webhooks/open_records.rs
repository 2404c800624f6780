//! Deliveries that wait for a retry, by the sequence of their last attempt in the deliveries' log.
//!
//! One delivery may wait for days, while the log receives everyone's. So attempts that have waited
//! for long are named one by one: a process that takes over queries only these, and reads only what
//! follows them.

use serde::{Deserialize, Serialize};

/// This many of the last attempts are always read: that is quick, and checkpoints stay small.
pub(super) const RECENT: u64 = 10_000;
/// Querying one delivery takes as long as reading this many attempts (measured: seven).
const ASKING: u64 = 8;
/// Approximate size of the names in a checkpoint, which has to hold endpoints as well.
const MAX_BYTES: usize = 512 * 1024;

/// The last attempts of the waiting deliveries: at the named sequences, and after `after`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub(super) struct OpenRecords {
    after: u64,
    named: Vec<u64>,
}

/// Stored form.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    after: u64,
    /// Each as the difference from the one before.
    named: Vec<u64>,
}

/// A name is beyond `after`, or the sum overflows.
#[derive(Debug, thiserror::Error)]
#[error("the deliveries that are named make no sense")]
struct NoSense;

impl OpenRecords {
    /// Open records of a log that is known up to `through`.
    pub(super) fn new(mut records: Vec<u64>, through: u64) -> Self {
        records.sort_unstable();
        records.dedup();
        let old = through.saturating_sub(RECENT);
        let old = records.partition_point(|record| *record <= old);
        Self::naming(cheapest(&records, old, through), records, through)
    }

    /// Names the first `few`; from the next one on the log has to be read.
    fn naming(few: usize, mut records: Vec<u64>, through: u64) -> Self {
        let next = records.get(few).copied().unwrap_or(u64::MAX);
        records.truncate(few);
        Self {
            after: through.min(next.saturating_sub(1)),
            named: records,
        }
    }

    /// The union of both.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.after = self.after.min(other.after);
        self.named.extend(&other.named);
        self.named.sort_unstable();
        self.named.dedup();
        self.named.retain(|record| *record <= self.after);
        self
    }

    /// All that are not named come after this sequence.
    pub(super) fn after(&self) -> u64 {
        self.after
    }

    /// The named records, in order.
    pub(super) fn named(&self) -> &[u64] {
        &self.named
    }
}

impl From<OpenRecords> for Stored {
    fn from(open: OpenRecords) -> Self {
        let OpenRecords { after, named } =
            OpenRecords::naming(fitting(&open.named), open.named, open.after);
        Self {
            after,
            named: differences(&named).collect(),
        }
    }
}

impl TryFrom<Stored> for OpenRecords {
    type Error = NoSense;

    fn try_from(stored: Stored) -> Result<Self, NoSense> {
        let mut before = 0_u64;
        let sum = |difference: u64| {
            before = before.checked_add(difference)?;
            Some(before)
        };
        let named: Option<Vec<u64>> = stored.named.into_iter().map(sum).collect();
        match named {
            Some(named) if before <= stored.after => Ok(Self {
                after: stored.after,
                named,
            }),
            _ => Err(NoSense),
        }
    }
}

/// How many to name, and so to query, until reading what follows is cheaper.
fn cheapest(records: &[u64], most: usize, through: u64) -> usize {
    let next = records.iter().copied().chain([u64::MAX]);
    let costs = (0..).zip(next).map(|(named, next)| {
        let to_read = through.saturating_sub(next);
        ASKING * named + to_read
    });
    let costs = costs.take(most + 1).enumerate();
    costs
        .min_by_key(|(_, cost)| *cost)
        .map_or(0, |(few, _)| few)
}

fn differences(named: &[u64]) -> impl Iterator<Item = u64> {
    let before = std::iter::once(&0).chain(named);
    named
        .iter()
        .zip(before)
        .map(|(record, before)| record - before)
}

/// How many names a checkpoint has room for.
fn fitting(named: &[u64]) -> usize {
    let mut left = MAX_BYTES;
    let fits = |difference: &u64| {
        // Seven bits per byte.
        let bytes = difference.checked_ilog2().unwrap_or(0) / 7 + 1;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        left.checked_sub(bytes).is_some_and(|rest| {
            left = rest;
            true
        })
    };
    differences(named).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THROUGH: u64 = 1_000_000;

    fn stored(open: &OpenRecords) -> OpenRecords {
        let bytes = postcard::to_extend(open, Vec::new()).unwrap();
        postcard::from_bytes(&bytes).unwrap()
    }

    /// Whether a reader that reads after `after` and queries the named ones finds the record.
    fn meets(open: &OpenRecords, record: u64) -> bool {
        record > open.after || open.named.binary_search(&record).is_ok()
    }

    #[test]
    fn only_what_waits_for_long_is_named() {
        let recent = THROUGH - RECENT;
        let open = OpenRecords::new(vec![recent + 9, 70, recent + 1, 5], THROUGH);
        assert_eq!((open.after(), open.named()), (recent, &[5, 70][..]));
        let open = OpenRecords::new(vec![70], THROUGH);
        assert_eq!((open.after(), open.named()), (THROUGH, &[70][..]));
        let open = OpenRecords::new(Vec::new(), THROUGH);
        assert_eq!((open.after(), open.named()), (THROUGH, &[][..]));
    }

    #[test]
    fn what_waits_close_together_is_read() {
        let every = |few| (900_000..980_000).step_by(few).collect::<Vec<u64>>();
        let open = OpenRecords::new([vec![5], every(2)].concat(), THROUGH);
        assert_eq!((open.after(), open.named()), (899_999, &[5][..]));
        let open = OpenRecords::new(every(100), THROUGH);
        assert_eq!((open.after(), open.named().len()), (THROUGH, 800));
    }

    #[test]
    fn names_that_make_no_sense_are_not_read() {
        for named in [[70, 30], [u64::MAX, 1]] {
            let named = named.to_vec();
            let bytes = postcard::to_extend(&Stored { after: 99, named }, Vec::new()).unwrap();
            assert!(postcard::from_bytes::<OpenRecords>(&bytes).is_err());
        }
    }

    #[test]
    fn names_are_stored_as_far_as_there_is_room_and_the_log_is_read_behind_them() {
        let records: Vec<u64> = (1..=300_000).map(|nth| nth * 1_000).collect();
        let open = OpenRecords::new(records.clone(), 1_000_000_000);
        let bytes = postcard::to_extend(&open, Vec::new()).unwrap();
        assert!((MAX_BYTES..MAX_BYTES + 200).contains(&bytes.len()));
        let stored = stored(&open);
        assert!(stored.named().len() > 100_000);
        assert!(records.iter().all(|record| meets(&stored, *record)));
        assert!(!meets(&stored, 1_500));
    }

    proptest! {
        #[test]
        fn nothing_open_is_missed(
            some in prop::collection::vec(1_u64..50_000, 0..40),
            others in prop::collection::vec(1_u64..50_000, 0..40),
            through in 1_u64..60_000,
        ) {
            let one = OpenRecords::new(some.clone(), through);
            let other = OpenRecords::new(others.clone(), through / 2);
            for open in [stored(&one), one.clone()] {
                prop_assert!(some.iter().all(|record| meets(&open, *record)));
            }
            let both = one.and(&other);
            for open in [stored(&both), both.clone()] {
                let all = some.iter().chain(&others);
                prop_assert!(all.clone().all(|record| meets(&open, *record)));
                prop_assert!(open.named().iter().all(|named| all.clone().any(|one| one == named)));
            }
        }
    }
}
