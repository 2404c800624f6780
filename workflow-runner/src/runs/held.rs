//! Triggers of runs that wait to be started, as received from the log: with its trigger in memory,
//! an untouched run is not read again.

use std::collections::HashMap;
use std::sync::Arc;

use schemas::{Event, Recorded};

use super::index::RunKey;
use super::steps::encoded_len;

/// Bytes of triggers held; any others are read from the log when it is their turn.
const BYTES: usize = 32 * 1024 * 1024;
/// Approximate memory of a trigger besides its payload.
const OVERHEAD: usize = 1_024;

/// Triggers held in memory, within bounds.
#[derive(Debug, Default)]
pub(super) struct HeldTriggers {
    by_run: HashMap<RunKey, Held>,
    bytes: usize,
}

/// A trigger and its approximate size in bytes.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) trigger: Arc<Recorded>,
    bytes: usize,
}

impl Held {
    /// An event, if it is a trigger.
    pub(super) fn of(recorded: &Arc<Recorded>) -> Option<Self> {
        let Event::WorkflowTriggered(triggered) = &recorded.event else {
            return None;
        };
        Some(Self {
            bytes: OVERHEAD + 2 * encoded_len(&triggered.trigger_payload),
            trigger: Arc::clone(recorded),
        })
    }
}

impl HeldTriggers {
    /// Holds a run's trigger if there is room.
    pub(super) fn put(&mut self, key: RunKey, held: Held) {
        if self.bytes + held.bytes > BYTES {
            return;
        }
        self.bytes += held.bytes;
        if let Some(before) = self.by_run.insert(key, held) {
            self.bytes -= before.bytes;
        }
    }

    /// Removes and returns a run's trigger, if it is held.
    pub(super) fn take(&mut self, key: RunKey) -> Option<Held> {
        let held = self.by_run.remove(&key)?;
        self.bytes -= held.bytes;
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::workflow::Triggered;
    use schemas::{AggregateType, Context, EventId, OrgId, StreamId};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn trigger(payload: usize) -> Held {
        let mut trigger_payload = serde_json::Map::new();
        trigger_payload.insert("text".to_owned(), json!("x".repeat(payload)));
        let recorded = Arc::new(Recorded {
            sequence: 1,
            stream: StreamId::new(&OrgId::from("o"), AggregateType::Run, "r"),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event: Event::WorkflowTriggered(Triggered {
                run_id: "r".into(),
                workflow_id: "w".into(),
                workflow_version: 1,
                trigger_payload,
            }),
            context: Context::default(),
            receipt: None,
        });
        Held::of(&recorded).unwrap()
    }

    #[test]
    fn triggers_are_held_once_and_within_bounds() {
        let (mut held, large) = (HeldTriggers::default(), BYTES / 5);
        for key in 0..10 {
            held.put(RunKey(key), trigger(large));
            held.put(RunKey(key), trigger(1));
            held.put(RunKey(key), trigger(large));
        }
        assert!(held.bytes <= BYTES && held.by_run.len() == 10);
        let all = (0..10).filter_map(|key| held.take(RunKey(key)));
        assert_eq!(all.filter(|one| one.bytes > large).count(), 2);
        assert!(held.take(RunKey(0)).is_none());
        assert_eq!(held.bytes, 0);
    }
}
