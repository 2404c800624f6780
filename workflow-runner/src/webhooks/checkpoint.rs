//! How far each partition has come, so that a restart or another process goes on from there.
//!
//! A checkpoint may be older than the truth and never newer: what it leaves open is asked of the
//! deliveries' log before anything is sent.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use event_log::{CheckpointBucket, EventLog};
use schemas::WebhookId;
use serde::{Deserialize, Serialize};

use super::open_records::OpenRecords;
use super::requests::RequestCursor;

/// How far a partition has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkpoint {
    /// Every event up to here has had its first attempt recorded for every endpoint that has no
    /// place of its own below.
    pub(super) through: u64,
    /// Where the last attempts stand of deliveries that wait to be tried again.
    #[serde(flatten)]
    pub(super) retries: OpenRecords,
    /// Everything that owners asked for up to here in the stream of all facts is carried out, for
    /// every endpoint that has no place of its own below.
    #[serde(default)]
    pub(super) requests_through: u64,
    /// Endpoints that are not as far, or that fail.
    #[serde(rename = "lanes", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) queues: BTreeMap<WebhookId, EndpointCheckpoint>,
}

/// How far one endpoint has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointCheckpoint {
    /// As `through`, for this endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) through: Option<u64>,
    /// When the failures began that no success has followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failing_since: Option<DateTime<Utc>>,
    /// How far what its owner asked for is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) requests: Option<RequestCursor>,
}

impl crate::checkpoints::Checkpoint for Checkpoint {
    const BUCKET: CheckpointBucket = CheckpointBucket::Webhooks;

    type Mark = Self;

    fn mark(&self) -> Self {
        self.clone()
    }

    fn encode(&self, _log: &EventLog) -> Vec<u8> {
        // Plain numbers, times and text have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn decode(stored: &[u8], _log: &EventLog) -> Option<Self> {
        serde_json::from_slice(stored).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_survives_its_text() {
        let queue = EndpointCheckpoint {
            through: Some(7),
            failing_since: Some(DateTime::UNIX_EPOCH),
            requests: Some(RequestCursor { done: 4, cursor: 2 }),
        };
        let checkpoint = Checkpoint {
            through: 9,
            retries: OpenRecords::new(vec![4, 6], 20_000),
            requests_through: 8,
            queues: BTreeMap::from([("h1".into(), queue)]),
        };
        let text = serde_json::to_string(&checkpoint).unwrap();
        assert_eq!(
            serde_json::from_str::<Checkpoint>(&text).unwrap(),
            checkpoint
        );
    }

    #[test]
    fn what_was_stored_before_is_read() {
        let stored = r#"{"through":9,"attemptsAfter":3,"lanes":{"h1":{"through":7}}}"#;
        let read: Checkpoint = serde_json::from_str(stored).unwrap();
        assert_eq!(
            (read.through, read.retries),
            (9, OpenRecords::new(vec![4], 4))
        );
        assert_eq!(read.queues[&"h1".into()].through, Some(7));
    }
}
