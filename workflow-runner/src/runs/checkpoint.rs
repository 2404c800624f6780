//! Checkpoints: which runs of a partition were open at a place in the log, so that whoever takes
//! the partition over reads on from there. They are no facts: without them the whole log is read.

use chrono::DateTime;
use event_log::{CheckpointBucket, EventLog};
use schemas::Log;

use super::index::{Open, Partition, Phase, RunKey};
use super::turn::Turn;
use crate::checkpoints::Checkpoint;

const FORMAT: u64 = 1;

/// What the keys begin with, in both buckets of this room.
pub(super) const PREFIX: &str = "p-";

impl Checkpoint for Partition {
    const BUCKET: CheckpointBucket = CheckpointBucket::Runs;

    /// Up to where it is folded.
    type Mark = u64;

    fn mark(&self) -> u64 {
        self.folded_to
    }

    fn encode(&self, log: &EventLog) -> Vec<u8> {
        encode(self, epoch(log))
    }

    fn decode(stored: &[u8], log: &EventLog) -> Option<Self> {
        decode(stored, epoch(log))
    }
}

/// Sequences mean nothing after a restore.
pub(super) fn epoch(log: &EventLog) -> u32 {
    log.position(Log::Events, 0).epoch()
}

/// Numbers of seven bits a byte, runs in the order of their first sequences, each as the
/// difference from the one before.
fn encode(partition: &Partition, epoch: u32) -> Vec<u8> {
    let mut runs: Vec<(&RunKey, &Open)> = partition.open.iter().collect();
    runs.sort_unstable_by_key(|(_, open)| open.first);
    let mut note = Vec::with_capacity(32 + runs.len() * 30);
    put(&mut note, FORMAT);
    put(&mut note, u64::from(epoch));
    put(&mut note, partition.folded_to);
    put(&mut note, runs.len() as u64);
    let mut before = 0;
    for (key, open) in runs {
        put(&mut note, open.first - before);
        before = open.first;
        note.extend(key.0.to_be_bytes());
        note.extend(open.turn.0.to_be_bytes());
        put(&mut note, wake_up(open.phase));
    }
    note
}

/// When a run goes on in milliseconds; 0 for at once.
fn wake_up(phase: Phase) -> u64 {
    match phase {
        Phase::Ready | Phase::UnderWay => 0,
        Phase::Waiting(until) => u64::try_from(until.timestamp_millis()).unwrap_or(0),
    }
}

fn put(note: &mut Vec<u8>, mut number: u64) {
    loop {
        let [lowest, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return note.push(lowest);
        }
        // The mark that more follow.
        note.push(lowest | 0x80);
    }
}

fn decode(mut note: &[u8], epoch: u32) -> Option<Partition> {
    let note = &mut note;
    if take(note)? != FORMAT || take(note)? != u64::from(epoch) {
        return None;
    }
    let mut partition = Partition {
        folded_to: take(note)?,
        ..Partition::default()
    };
    let mut first = 0_u64;
    for _ in 0..take(note)? {
        first = first.checked_add(take(note)?)?;
        let (key, rest) = note.split_first_chunk::<16>()?;
        let (turn, rest) = rest.split_first_chunk::<4>()?;
        *note = rest;
        let phase = match take(note)? {
            0 => Phase::Ready,
            millis => Phase::Waiting(DateTime::from_timestamp_millis(
                i64::try_from(millis).ok()?,
            )?),
        };
        let open = Open {
            first,
            known: partition.folded_to,
            turn: Turn(u32::from_be_bytes(*turn)),
            phase,
        };
        let key = RunKey(u128::from_be_bytes(*key));
        partition.open.insert(key, open);
    }
    note.is_empty().then_some(partition)
}

fn take(note: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = note.split_first()?;
        *note = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::index::Change;
    use super::*;

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
                let open = Open {
                    first,
                    known: folded_to,
                    turn: Turn(turn),
                    phase,
                };
                partition.open.insert(RunKey(key), open);
            }
            partition
        })
    }

    proptest! {
        #[test]
        fn a_partition_survives_its_note(partition in partitions(), epoch: u32) {
            let note = encode(&partition, epoch);
            prop_assert_eq!(decode(&note, epoch), Some(partition));
            prop_assert_eq!(decode(&note, epoch.wrapping_add(1)), None);
        }

        #[test]
        fn a_run_that_cannot_be_read_stays_open(partition in partitions(), key: u128) {
            let (mut partition, key) = (partition, RunKey(key));
            let (known, sequence) = (partition.open.get(&key).copied(), partition.folded_to);
            let change = partition.fold_unreadable(key, sequence, Turn(2));
            prop_assert_eq!(change == Change::Ready, known.is_none());
            let again = partition.fold_unreadable(key, sequence, Turn(2));
            prop_assert_eq!(again, Change::Nothing);
            let kept = decode(&encode(&partition, 7), 7).unwrap();
            prop_assert!(kept.open.contains_key(&key));
        }

        #[test]
        fn a_damaged_note_is_no_note(partition in partitions(), cut in 1..20_usize) {
            let note = encode(&partition, 7);
            let kept = note.len().saturating_sub(cut);
            prop_assert_eq!(decode(&note[..kept], 7), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes, 0);
        }
    }
}
