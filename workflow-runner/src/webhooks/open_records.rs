//! Which deliveries wait to be tried again, by where their last attempts stand in the deliveries'
//! log.
//!
//! One delivery may wait for days, while the log takes up everybody's. So of what has waited for
//! long each attempt is named: whoever takes it over asks for these alone, and reads only what
//! follows them.

use serde::{Deserialize, Serialize};

/// So many of the last attempts are always read: that takes a moment, and checkpoints stay small.
pub(super) const RECENT: u64 = 10_000;
/// To ask for one delivery takes as long as to read so many attempts (measured: seven).
const ASKING: u64 = 8;
/// About what names may take of a checkpoint, which has to hold endpoints as well.
const MAX_BYTES: usize = 512 * 1024;

/// Where the last attempts stand of the deliveries that wait: at the places that are named, and
/// behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct OpenRecords {
    after: u64,
    named: Vec<u64>,
}

/// As it is stored. Programs of earlier times read and write the first field alone.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    /// All stand behind this sequence.
    attempts_after: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    older_attempts: Option<Older>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Older {
    /// Up to here they stand at the places that are named.
    through: u64,
    /// Each as the difference from the one before.
    named: Vec<u64>,
}

impl OpenRecords {
    /// Where the log's records are known up to `through`, and these of them are open.
    pub(super) fn new(mut records: Vec<u64>, through: u64) -> Self {
        records.sort_unstable();
        records.dedup();
        let old = through.saturating_sub(RECENT);
        let old = records.partition_point(|record| *record <= old);
        Self::naming(cheapest(&records, old, through), records, through)
    }

    /// Names the first few; from the next one on the log is to be read.
    fn naming(few: usize, mut records: Vec<u64>, through: u64) -> Self {
        let next = records.get(few).copied().unwrap_or(u64::MAX);
        records.truncate(few);
        Self {
            after: through.min(next.saturating_sub(1)),
            named: records,
        }
    }

    /// What is open here or there.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.after = self.after.min(other.after);
        self.named.extend(&other.named);
        self.named.sort_unstable();
        self.named.dedup();
        self.named.retain(|record| *record <= self.after);
        self
    }

    /// All that are not named stand behind this sequence.
    pub(super) fn after(&self) -> u64 {
        self.after
    }

    /// Those that are named, in order.
    pub(super) fn named(&self) -> &[u64] {
        &self.named
    }
}

impl From<OpenRecords> for Stored {
    fn from(open: OpenRecords) -> Self {
        let first = open.named.first().map(|first| first.saturating_sub(1));
        let attempts_after = first.unwrap_or(open.after);
        let OpenRecords { after, named } =
            OpenRecords::naming(fitting(&open.named), open.named, open.after);
        let older = Older {
            through: after,
            named: differences(&named).collect(),
        };
        Self {
            attempts_after,
            older_attempts: Some(older).filter(|older| !older.named.is_empty()),
        }
    }
}

impl From<Stored> for OpenRecords {
    fn from(stored: Stored) -> Self {
        let older = stored.older_attempts.and_then(Older::read);
        older.unwrap_or(Self {
            after: stored.attempts_after,
            named: Vec::new(),
        })
    }
}

impl Older {
    /// `None` where it makes no sense.
    fn read(self) -> Option<OpenRecords> {
        let mut before = 0_u64;
        let sum = |difference: u64| {
            before = before.checked_add(difference)?;
            Some(before)
        };
        let named: Vec<u64> = self.named.into_iter().map(sum).collect::<Option<_>>()?;
        (before <= self.through).then_some(OpenRecords {
            after: self.through,
            named,
        })
    }
}

/// How many to name, and so to ask for, until what follows takes less to read.
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

/// How many of them a checkpoint has room for.
fn fitting(named: &[u64]) -> usize {
    let mut left = MAX_BYTES;
    let fits = |difference: &u64| {
        let digits = difference.checked_ilog10().unwrap_or(0) + 1;
        // A comma follows.
        let bytes = usize::try_from(digits + 1).unwrap_or(usize::MAX);
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
        let text = serde_json::to_string(open).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Whether somebody who reads behind `after` and asks for those named meets the record.
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
    fn what_was_stored_before_is_read_from_its_place_on() {
        let before = r#"{"attemptsAfter":41}"#;
        let open: OpenRecords = serde_json::from_str(before).unwrap();
        assert_eq!((open.after(), open.named()), (41, &[][..]));
        assert_eq!(serde_json::to_string(&open).unwrap(), before);
    }

    #[test]
    fn programs_of_earlier_times_find_all_behind_one_place() {
        let open = OpenRecords::new(vec![70, 75, THROUGH], THROUGH);
        let text = serde_json::to_string(&open).unwrap();
        let expected = r#"{"attemptsAfter":69,"olderAttempts":{"through":999999,"named":[70,5]}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn names_that_make_no_sense_are_not_followed() {
        for named in ["[70,30]", "[18446744073709551615,1]"] {
            let text = format!(
                r#"{{"attemptsAfter":41,"olderAttempts":{{"through":99,"named":{named}}}}}"#
            );
            let open: OpenRecords = serde_json::from_str(&text).unwrap();
            assert_eq!((open.after(), open.named()), (41, &[][..]), "{named}");
        }
    }

    #[test]
    fn names_are_stored_as_far_as_there_is_room_and_the_log_is_read_behind_them() {
        let records: Vec<u64> = (1..=300_000).map(|nth| nth * 1_000).collect();
        let open = OpenRecords::new(records.clone(), 1_000_000_000);
        let text = serde_json::to_string(&open).unwrap();
        assert!((MAX_BYTES..MAX_BYTES + 200).contains(&text.len()));
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
