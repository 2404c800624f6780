//! How far each partition has come, so that a restart or another process goes on from there.
//!
//! A checkpoint is no fact: it may be older than the truth and never newer, and without one the
//! log is read from its beginning. What is stored may be read by an older or a newer version.

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

/// What has grown larger than this is not written any more: who takes it over reads the log instead.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A server that is there answers in far less.
const PATIENCE: Duration = Duration::from_secs(2);
/// And takes within that time as much as this.
const BYTES_IN_TIME: usize = 2 * 1024 * 1024;
/// However large a checkpoint is, it is read within this time.
const READ_PATIENCE: Duration = Duration::from_secs(64);
/// How often it is said that the log has gone back.
const WENT_BACK: Duration = Duration::from_secs(10);

/// What a part of the runner notes of a partition.
pub(crate) trait Checkpoint: Sized + 'static {
    /// The version of the form that its body is stored in: whoever changes the form counts it up.
    const FORM: u8;

    /// What is stored beside the place.
    type Body: DeserializeOwned;

    /// What tells a checkpoint from one of the same partition that is further.
    type Mark: PartialEq + Send + 'static;

    /// `None` where the body makes no sense.
    fn new(through: u64, body: Self::Body) -> Option<Self>;

    fn mark(&self) -> Self::Mark;

    /// Up to where all is in here of the stream that it is a place in.
    fn through(&self) -> u64;

    /// What [`Checkpoint::Body`] is read from.
    fn body(&self) -> impl Serialize;
}

/// Keeps the checkpoints of one kind.
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

    /// The partition as it was noted last; `None` where nothing usable stands there. Asks until
    /// there is an answer, for without one work would be done again, or not at all; and while the
    /// log has gone back behind what was noted, for to go on there would be to do what is not due
    /// and to leave out what is.
    pub(crate) async fn read(&self, partition: u16) -> Option<T> {
        let (kind, feed) = (self.kind.name(), self.kind.log());
        loop {
            let ask = || async {
                let asked = timeout(READ_PATIENCE, self.stored(partition)).await;
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

    /// Writes one; where that fails, the one before stays.
    async fn put(&self, partition: u16, stored: Vec<u8>) -> Result<(), String> {
        let bytes = stored.len();
        if bytes > MAX_BYTES {
            return Err("it is too large".to_owned());
        }
        let key = self.kind.key(partition);
        let mark = self.log.newest_taken(self.kind.log());
        let put = self.bucket.put_marked(&key, stored.into(), mark);
        let times = 1 + u32::try_from(bytes / BYTES_IN_TIME).unwrap_or(u32::MAX);
        let put = timeout(PATIENCE.saturating_mul(times), put).await;
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

/// What the parts of the runner try their checkpoints with.
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
