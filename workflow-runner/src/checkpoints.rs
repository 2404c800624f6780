//! The saved progress of each partition, from which a restart or another process resumes.
//!
//! A checkpoint is not a fact: it may be older than the log's state but never newer, and without
//! one the log is read from its beginning. An older or a newer version may read what is stored.

mod before;
mod kind;
mod saving;

use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use event_log::checkpoint::{Unusable, decode, encode};
use event_log::{Bucket, CheckpointBucket, Error, EventLog, Mark, MarkError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::retry::retry_while;

pub(crate) use kind::Kind;
pub(crate) use saving::{SPREAD, Saving};

/// A checkpoint larger than this is no longer written: the next owner reads the log instead.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A server that is available answers much faster.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that such a server also takes within that time.
const BYTES_IN_TIME: usize = 2 * 1024 * 1024;
/// A checkpoint of any size is read within this time.
const READ_TIMEOUT: Duration = Duration::from_secs(64);
/// How often a log that has gone back is reported.
const WENT_BACK: Duration = Duration::from_secs(10);

/// The saved state of a partition.
pub(crate) trait Checkpoint: Sized + 'static {
    /// The version of the stored body's format; increase it when the format changes.
    const FORM: u8;

    /// What is stored besides the position.
    type Body: DeserializeOwned;

    /// Distinguishes a checkpoint from a later one of the same partition.
    type Mark: PartialEq + Send + 'static;

    /// Returns `None` if the body is invalid.
    fn new(through: u64, body: Self::Body) -> Option<Self>;

    fn mark(&self) -> Self::Mark;

    /// The sequence in its stream up to which everything is included.
    fn through(&self) -> u64;

    /// The value that [`Checkpoint::Body`] is read from.
    fn body(&self) -> impl Serialize;
}

/// Stores the checkpoints of one kind.
pub(crate) struct Checkpoints<T> {
    log: EventLog,
    kind: Kind,
    bucket: Bucket,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Checkpoints<T> {
    fn clone(&self) -> Self {
        Self {
            log: self.log.clone(),
            bucket: self.bucket.clone(),
            ..*self
        }
    }
}

impl<T: Checkpoint> Checkpoints<T> {
    /// Opens the bucket.
    pub(crate) async fn open(log: &EventLog, kind: Kind) -> Result<Self, Error> {
        let name = CheckpointBucket::Runner.name();
        Ok(Self {
            log: log.clone(),
            kind,
            bucket: log.bucket(name, None).await?,
            of: PhantomData,
        })
    }

    /// Returns the partition's last saved checkpoint; `None` if nothing usable is stored. Retries
    /// until there is an answer, since without one work would be done again, or not at all; also
    /// while the log has gone back to before the checkpoint, since resuming there would do what is
    /// not due and leave out what is.
    pub(crate) async fn read(&self, partition: u16) -> Option<T> {
        let (kind, feed) = (self.kind.name(), self.kind.log());
        loop {
            let ask = || async {
                let asked = timeout(READ_TIMEOUT, self.stored(partition)).await;
                asked.unwrap_or_else(|_| Err("no answer in time".to_owned()))
            };
            let (stored, mark) = retry_while(ask, |_| true).await.ok()??;
            let carries_on = |epoch| self.log.carries_on(feed, epoch);
            let read = match taken(&stored, carries_on) {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(kind, partition, %error, "Nothing can be taken from a checkpoint");
                    return None;
                }
            };
            let check = || self.log.check(feed, mark);
            match retry_while(check, |error| matches!(error, MarkError::Read(_))).await {
                Ok(()) => return Some(read),
                Err(error) => tracing::error!(kind, partition, %error, "Cannot go on"),
            }
            sleep(WENT_BACK).await;
        }
    }

    async fn stored(&self, partition: u16) -> Result<Option<(Bytes, Mark)>, String> {
        let stored = self.bucket.get_marked(&self.kind.key(partition)).await?;
        match stored {
            None => before::find(&self.log, self.kind, partition, self.epoch()).await,
            stored => Ok(stored),
        }
    }

    fn encode(&self, checkpoint: &T) -> Result<Vec<u8>, String> {
        stored(checkpoint, self.epoch())
    }

    /// Writes a checkpoint; if that fails, the previous one stays.
    async fn put(&self, partition: u16, stored: Vec<u8>) -> Result<(), String> {
        let bytes = stored.len();
        if bytes > MAX_BYTES {
            return Err("it is too large".to_owned());
        }
        let key = self.kind.key(partition);
        let mark = self.log.newest_taken(self.kind.log());
        let put = self.bucket.put_marked(&key, stored.into(), mark);
        let times = 1 + u32::try_from(bytes / BYTES_IN_TIME).unwrap_or(u32::MAX);
        let put = timeout(TIMEOUT.saturating_mul(times), put).await;
        put.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    fn epoch(&self) -> u32 {
        self.log.position(self.kind.log(), 0).epoch()
    }
}

fn stored<T: Checkpoint>(checkpoint: &T, epoch: u32) -> Result<Vec<u8>, String> {
    encode(epoch, checkpoint.through(), T::FORM, checkpoint.body())
}

fn taken<T: Checkpoint>(
    stored: &[u8],
    carries_on: impl FnOnce(u32) -> bool,
) -> Result<T, Unusable> {
    let (through, body) = decode(stored, T::FORM, carries_on)?;
    T::new(through, body).ok_or(Unusable::Damaged)
}

/// Test helpers for the checkpoints of the runner's parts.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Checkpoint, Kind, before};

    pub(crate) use super::before::recorded;

    const EPOCH: u32 = 7;

    pub(crate) fn stored<T: Checkpoint>(checkpoint: &T) -> Vec<u8> {
        super::stored(checkpoint, EPOCH).unwrap()
    }

    pub(crate) fn read<T: Checkpoint>(stored: &[u8]) -> Option<T> {
        super::taken(stored, |epoch| epoch == EPOCH).ok()
    }

    /// Reads what an older version stored.
    pub(crate) fn read_old<T: Checkpoint>(kind: Kind, stored: &[u8]) -> Option<T> {
        read(&before::renewed(kind, stored, EPOCH)?)
    }
}

#[cfg(test)]
mod tests;
