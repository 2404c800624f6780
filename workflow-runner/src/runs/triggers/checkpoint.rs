//! How far each partition has been matched, and which waits were open there. The next owner of a
//! partition reads on from there; without a checkpoint the whole log is matched again, which
//! changes nothing that has been done.

use event_log::{EventLog, ReadError};
use futures::{StreamExt as _, stream};
use schemas::{Log, Recorded};
use serde::{Deserialize, Serialize};

use super::cause_counts::Noted;
use crate::checkpoints::Checkpoint;
use crate::retry::retry_while;

/// Waits that are looked up at the same time.
const AT_ONCE: usize = 32;

/// The checkpoint of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TriggerCheckpoint {
    /// Every event up to here has been matched.
    #[serde(skip)]
    pub(super) through: u64,
    /// Where the open waits began, each as the difference from the one before.
    waits: Vec<u64>,
    /// What causes had led to by then. It is in one checkpoint with how far everything was matched,
    /// so that neither is ever older than the other.
    pub(super) causes: Vec<Noted>,
}

impl TriggerCheckpoint {
    /// Creates the checkpoint of a partition.
    pub(super) fn new(through: u64, waits: &[u64], causes: Vec<Noted>) -> Self {
        let mut before = 0;
        let further = waits
            .iter()
            .map(|at| at - std::mem::replace(&mut before, *at));
        Self {
            through,
            waits: further.collect(),
            causes,
        }
    }

    /// The waits that were open. Retries until there is an answer, since without one events might
    /// be matched as if nothing waited.
    pub(super) async fn waits(&self, log: &EventLog) -> Vec<Recorded> {
        let mut at = 0;
        let sequences: Vec<u64> = self
            .waits
            .iter()
            .map(|further| {
                at += further;
                at
            })
            .collect();
        let waits = stream::iter(sequences).map(|sequence| wait_at(log, sequence));
        let waits: Vec<Option<Recorded>> = waits.buffered(AT_ONCE).collect().await;
        waits.into_iter().flatten().collect()
    }
}

async fn wait_at(log: &EventLog, sequence: u64) -> Option<Recorded> {
    let found = retry_while(|| log.get(Log::Events, sequence), ReadError::passes).await;
    found
        .inspect_err(
            |error| tracing::error!(sequence, %error, "A wait for an event cannot be read"),
        )
        .ok()?
}

impl Checkpoint for TriggerCheckpoint {
    const FORM: u8 = 1;

    type Body = Self;
    type Mark = Self;

    fn new(through: u64, body: Self) -> Option<Self> {
        Some(Self { through, ..body })
    }

    fn mark(&self) -> Self {
        self.clone()
    }

    fn through(&self) -> u64 {
        self.through
    }

    fn body(&self) -> impl Serialize {
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::checkpoints::Kind;
    use crate::checkpoints::testing::{read, read_old, recorded, stored};

    fn checkpoints() -> impl Strategy<Value = TriggerCheckpoint> {
        let causes = prop::collection::vec(any::<(u128, u32, u8, u8)>(), 0..9);
        let noted = ("\\PC{0,40}", any::<u64>(), causes).prop_map(|(org, through, causes)| {
            let causes = causes.into_iter();
            let causes =
                causes.map(|(id, runs, hops, told)| (Uuid::from_u128(id), runs, hops, told));
            Noted {
                org: org.into(),
                through,
                causes: causes.collect(),
            }
        });
        let noted = prop::collection::vec(noted, 0..4);
        let waits = prop::collection::btree_set(any::<u64>(), 0..30);
        (any::<u64>(), waits, noted).prop_map(|(through, waits, causes)| {
            TriggerCheckpoint::new(through, &Vec::from_iter(waits), causes)
        })
    }

    proptest! {
        #[test]
        fn a_checkpoint_survives_being_stored(checkpoint in checkpoints()) {
            prop_assert_eq!(read(&stored(&checkpoint)), Some(checkpoint));
        }

        #[test]
        fn damaged_bytes_give_nothing_and_never_panic(
            checkpoint in checkpoints(),
            at: prop::sample::Index,
            byte: u8,
        ) {
            let mut stored = stored(&checkpoint);
            let at = at.index(stored.len());
            prop_assert_eq!(read::<TriggerCheckpoint>(&stored[..at]), None);
            stored[at] = byte;
            let _ = read::<TriggerCheckpoint>(&stored);
        }
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        let read = |stored: &str| read_old::<TriggerCheckpoint>(Kind::Triggers, stored.as_bytes());
        let id = Uuid::from_u128(0x0198_f3a2_0000_7000_8000_0000_0000_0001);
        let causes = Noted {
            org: "acme".into(),
            through: 880,
            causes: vec![(id, 3, 1, 0)],
        };
        let expected = TriggerCheckpoint::new(900, &[12, 15], vec![causes]);
        assert_eq!(read(recorded::TRIGGERS), Some(expected));
        let first = TriggerCheckpoint::new(900, &[], Vec::new());
        assert_eq!(read(recorded::FIRST_TRIGGERS), Some(first));
        let restored = recorded::TRIGGERS.replace(r#""epoch":7"#, r#""epoch":8"#);
        assert_eq!(read(&restored), None);
    }
}
