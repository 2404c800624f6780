//! Earlier states of the runner's checkpoints.

use std::time::Duration;

use event_log::{Bucket, CheckpointBucket, EventLog};
use futures::StreamExt as _;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(3);

/// The contents of their bucket at an earlier time.
pub(super) struct Older {
    log: EventLog,
    stood: Vec<(String, Vec<u8>)>,
}

impl Older {
    pub(super) fn new(log: EventLog) -> Self {
        let stood = Vec::new();
        Self { log, stood }
    }

    pub(super) fn is_there(&self) -> bool {
        !self.stood.is_empty()
    }

    /// Saves the bucket's current contents, if the log answers.
    pub(super) async fn look(&mut self) {
        if let Ok(Some(stood)) = timeout(TIMEOUT, read(&self.log)).await {
            self.stood = stood;
        }
    }

    /// Restores what was saved; returns whether all of it was written.
    pub(super) async fn put_back(&self) -> bool {
        let putting = async {
            let bucket = open(&self.log).await?;
            for (key, value) in &self.stood {
                bucket.put(key, value.clone().into()).await.ok()?;
            }
            Some(())
        };
        matches!(timeout(TIMEOUT, putting).await, Ok(Some(())))
    }
}

async fn open(log: &EventLog) -> Option<Bucket> {
    log.bucket(CheckpointBucket::Runner.name(), None).await.ok()
}

async fn read(log: &EventLog) -> Option<Vec<(String, Vec<u8>)>> {
    let bucket = open(log).await?;
    let (mut stood, mut keys) = (Vec::new(), bucket.keys().await.ok()?);
    while let Some(key) = keys.next().await {
        let key = key.ok()?;
        if let Some(value) = bucket.get(&key).await.ok()? {
            stood.push((key, value.to_vec()));
        }
    }
    Some(stood)
}
