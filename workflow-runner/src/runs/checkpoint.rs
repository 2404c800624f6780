//! Checkpoints: which runs of a partition were open at a position in the log, from which its next
//! owner reads on. They are not facts: without them the whole log is read.

use chrono::DateTime;
use postcard::fixint;
use serde::{Deserialize, Serialize};

use super::index::{Open, Partition, Phase, RunKey};
use super::turn::Turn;
use crate::checkpoints::Checkpoint;

/// An open run as it is stored, in some 28 bytes: a million of them are written every few seconds.
#[derive(Serialize, Deserialize)]
pub(super) struct OpenRun {
    /// Its first sequence, as the difference from that of the run before.
    further: u64,
    #[serde(with = "fixint::be")]
    key: u128,
    #[serde(with = "fixint::be")]
    turn: u32,
    /// When it continues, in milliseconds; 0 for at once.
    wake_up: u64,
}

impl Checkpoint for Partition {
    const FORM: u8 = 1;

    type Body = Vec<OpenRun>;

    /// The sequence up to which it is folded.
    type Mark = u64;

    fn new(through: u64, body: Vec<OpenRun>) -> Option<Self> {
        let mut first = 0_u64;
        let open = body.into_iter().map(|run| {
            first = first.checked_add(run.further)?;
            let open = Open::noted(first, Turn(run.turn), phase(run.wake_up)?);
            Some((RunKey(run.key), open))
        });
        Some(Self {
            folded_to: through,
            open: open.collect::<Option<_>>()?,
        })
    }

    fn mark(&self) -> u64 {
        self.folded_to
    }

    fn through(&self) -> u64 {
        self.folded_to
    }

    /// In the order of the runs' first sequences.
    fn body(&self) -> impl Serialize {
        let mut runs: Vec<(&RunKey, &Open)> = self.open.iter().collect();
        runs.sort_unstable_by_key(|(_, open)| open.first);
        let mut before = 0;
        let runs = runs.into_iter().map(|(key, open)| OpenRun {
            further: open.first - std::mem::replace(&mut before, open.first),
            key: key.0,
            turn: open.turn.0,
            wake_up: wake_up(open.phase),
        });
        runs.collect::<Vec<_>>()
    }
}

fn wake_up(phase: Phase) -> u64 {
    match phase {
        Phase::Ready | Phase::UnderWay => 0,
        Phase::Waiting(until) => u64::try_from(until.timestamp_millis()).unwrap_or(0),
    }
}

fn phase(wake_up: u64) -> Option<Phase> {
    if wake_up == 0 {
        return Some(Phase::Ready);
    }
    let until = DateTime::from_timestamp_millis(i64::try_from(wake_up).ok()?);
    until.map(Phase::Waiting)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::index::Change;
    use super::*;
    use crate::checkpoints::Kind;
    use crate::checkpoints::testing::{read, read_old, recorded, stored};

    fn partitions() -> impl Strategy<Value = Partition> {
        let phase = prop_oneof![
            Just(Phase::Ready),
            (1_u32..).prop_map(|millis| {
                let until = DateTime::from_timestamp_millis(i64::from(millis));
                until.map_or(Phase::Ready, Phase::Waiting)
            }),
        ];
        let run = (any::<u128>(), 1..1_000_000_u64, any::<u32>(), phase);
        let runs = prop::collection::vec(run, 0..50);
        (any::<u64>(), runs).prop_map(|(folded_to, runs)| {
            let mut partition = Partition {
                folded_to,
                ..Partition::default()
            };
            for (key, first, turn, phase) in runs {
                let open = Open::noted(first, Turn(turn), phase);
                partition.open.insert(RunKey(key), open);
            }
            partition
        })
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        let open = |first, turn, phase| Open::noted(first, Turn(turn), phase);
        let until = DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
        let key = |nth| RunKey(0x0198_f3a2_0000_7000_8000_0000_0000_0000_u128 + nth);
        let expected = Partition {
            folded_to: 1_000,
            open: HashMap::from([
                (key(1), open(5, 0x1234_5678, Phase::Ready)),
                (key(2), open(205, 3, Phase::Waiting(until))),
            ]),
        };
        let read = read_old::<Partition>(Kind::Runs, recorded::RUNS);
        assert_eq!(read, Some(expected));
        let other = [&[2], &recorded::RUNS[1..]].concat();
        assert_eq!(read_old::<Partition>(Kind::Runs, &other), None);
    }

    #[test]
    fn a_run_that_waits_takes_no_more_than_thirty_bytes() {
        let until = DateTime::from_timestamp_millis(1_800_000_000_000).unwrap();
        let open = (0..10_000_u64).map(|nth| {
            let first = 1_000_000 + nth * 3_000;
            let open = Open::noted(first, Turn(u32::MAX), Phase::Waiting(until));
            (RunKey(u128::MAX - u128::from(nth)), open)
        });
        let partition = Partition {
            folded_to: 40_000_000,
            open: open.collect(),
        };
        assert!(stored(&partition).len() <= 30 * 10_000);
    }

    proptest! {
        #[test]
        fn a_partition_survives_being_stored(partition in partitions()) {
            prop_assert_eq!(read(&stored(&partition)), Some(partition));
        }

        #[test]
        fn a_run_that_cannot_be_read_stays_open(partition in partitions(), key: u128) {
            let (mut partition, key) = (partition, RunKey(key));
            let (known, sequence) = (partition.open.get(&key).copied(), partition.folded_to);
            let change = partition.fold_unreadable(key, sequence, Turn(2));
            prop_assert_eq!(change == Change::Ready, known.is_none());
            let again = partition.fold_unreadable(key, sequence, Turn(2));
            prop_assert_eq!(again, Change::Nothing);
            let kept = read::<Partition>(&stored(&partition)).unwrap();
            prop_assert!(kept.open.contains_key(&key));
        }

        #[test]
        fn damaged_bytes_give_nothing_and_never_panic(
            partition in partitions(),
            at: prop::sample::Index,
            byte: u8,
        ) {
            let mut stored = stored(&partition);
            prop_assert_eq!(read::<Partition>(&stored[..at.index(stored.len())]), None);
            let at = at.index(stored.len());
            stored[at] = byte;
            let _ = read::<Partition>(&stored);
        }
    }
}
