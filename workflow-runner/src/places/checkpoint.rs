//! How far each partition has come, so that a restart or another process goes on from there.

use async_nats::jetstream::kv::Store;
use event_log::{Error, EventLog, PositionError};
use futures::future::join_all;
use schemas::Log;

/// The bucket that holds checkpoints.
const BUCKET: &str = "PLACE_CHECKPOINTS";

/// Where checkpoints are kept: positions up to which crossings have been told.
#[derive(Clone)]
pub(super) struct Checkpoints {
    log: EventLog,
    bucket: Store,
}

/// Why a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the checkpoints of places do not answer: {0}")]
pub(super) struct Unavailable(String);

impl Checkpoints {
    pub(super) async fn open(log: &EventLog) -> Result<Self, Error> {
        Ok(Self {
            log: log.clone(),
            bucket: log.bucket(BUCKET, None).await?,
        })
    }

    /// The sequence up to which a partition has been considered; 0 before the first checkpoint,
    /// and where the log was restored since: what is told already is not told again.
    pub(super) async fn read(&self, partition: u16) -> Result<u64, Unavailable> {
        let found = self.bucket.get(key(partition)).await;
        let found = found.map_err(|error| Unavailable(error.to_string()))?;
        let text = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text.map_or(0, |text| match self.log.parse_position(&text) {
            Ok(position) => position.sequence(),
            Err(PositionError::OldEpoch) => 0,
            Err(error) => {
                tracing::error!(partition, %error, "Places start over without a checkpoint");
                0
            }
        }))
    }

    /// Writes checkpoints, and gives back those that were written.
    pub(super) async fn write_all(&self, news: Vec<(u16, u64)>) -> Vec<(u16, u64)> {
        let writes = news.into_iter().map(async |(partition, sequence)| {
            let position = self.log.position(Log::Locations, sequence).to_string();
            match self.bucket.put(key(partition), position.into()).await {
                Ok(_) => Some((partition, sequence)),
                Err(error) => {
                    tracing::warn!(partition, %error, "A checkpoint of places was not written");
                    None
                }
            }
        });
        join_all(writes).await.into_iter().flatten().collect()
    }
}

fn key(partition: u16) -> String {
    format!("partition.{partition}")
}
