//! How far each partition has come, so that a restart or another process goes on from there.
//!
//! A checkpoint may be older than the truth and never newer: what it leaves open is asked of the
//! deliveries' log before anything is sent.

use std::collections::BTreeMap;

use async_nats::jetstream::kv::Store;
use chrono::{DateTime, Utc};
use event_log::{Error, EventLog};
use futures::future::join_all;
use schemas::WebhookId;
use serde::{Deserialize, Serialize};

use super::feed::Feed;
use super::requests::Place;

/// The bucket that holds checkpoints.
const BUCKET: &str = "WEBHOOK_CHECKPOINTS";

/// How far a partition has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkpoint {
    /// Every event up to here has had its first attempt recorded for every endpoint that has no
    /// place of its own below.
    pub(super) through: u64,
    /// Every delivery that waits to be tried again has its last attempt behind this sequence of
    /// the deliveries' log.
    pub(super) attempts_after: u64,
    /// Everything that owners asked for up to here in the stream of all facts is carried out, for
    /// every endpoint that has no place of its own below.
    #[serde(default)]
    pub(super) requests_through: u64,
    /// Endpoints that are not as far, or that fail.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) lanes: BTreeMap<WebhookId, LaneCheckpoint>,
}

/// How far one endpoint has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LaneCheckpoint {
    /// As `through`, for this endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) through: Option<u64>,
    /// When the failures began that no success has followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failing_since: Option<DateTime<Utc>>,
    /// How far what its owner asked for is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) requests: Option<Place>,
}

/// Where checkpoints are kept.
#[derive(Clone)]
pub(super) struct Checkpoints {
    feed: Feed,
    bucket: Store,
}

/// Why a checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckpointError {
    /// The bucket does not answer.
    #[error("the checkpoints' bucket does not answer: {0}")]
    Unavailable(String),
    /// What stands there is no checkpoint.
    #[error("the checkpoint cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl Checkpoints {
    pub(super) async fn open(log: &EventLog, feed: Feed) -> Result<Self, Error> {
        Ok(Self {
            feed,
            bucket: log.bucket(BUCKET, None).await?,
        })
    }

    /// The partition's checkpoint; `None` before the first.
    pub(super) async fn read(&self, partition: u16) -> Result<Option<Checkpoint>, CheckpointError> {
        let found = self.bucket.get(self.key(partition)).await;
        let found = found.map_err(|error| CheckpointError::Unavailable(error.to_string()))?;
        Ok(match found {
            Some(bytes) => Some(serde_json::from_slice(&bytes)?),
            None => None,
        })
    }

    /// Writes checkpoints, and gives back those that were written.
    pub(super) async fn write_all(&self, news: Vec<(u16, Checkpoint)>) -> Vec<(u16, Checkpoint)> {
        let writes = news.into_iter().map(async |(partition, checkpoint)| {
            match self.write(partition, &checkpoint).await {
                Ok(()) => Some((partition, checkpoint)),
                Err(error) => {
                    tracing::warn!(partition, %error, "Webhooks' checkpoint was not written");
                    None
                }
            }
        });
        join_all(writes).await.into_iter().flatten().collect()
    }

    async fn write(&self, partition: u16, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let bytes = serde_json::to_vec(checkpoint)?;
        let written = self.bucket.put(self.key(partition), bytes.into()).await;
        written
            .map(|_| ())
            .map_err(|error| CheckpointError::Unavailable(error.to_string()))
    }

    fn key(&self, partition: u16) -> String {
        match self.feed {
            Feed::Events => format!("partition.{partition}"),
            Feed::Locations => format!("locations.{partition}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_survives_its_text() {
        let lane = LaneCheckpoint {
            through: Some(7),
            failing_since: Some(DateTime::UNIX_EPOCH),
            requests: Some(Place { done: 4, cursor: 2 }),
        };
        let checkpoint = Checkpoint {
            through: 9,
            attempts_after: 3,
            requests_through: 8,
            lanes: BTreeMap::from([("h1".into(), lane)]),
        };
        let text = serde_json::to_string(&checkpoint).unwrap();
        assert_eq!(
            serde_json::from_str::<Checkpoint>(&text).unwrap(),
            checkpoint
        );
    }
}
