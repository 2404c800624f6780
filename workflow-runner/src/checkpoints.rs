//! How far each partition has come, so that a restart or another process goes on from there.
//!
//! A checkpoint is no fact: it may be older than the truth and never newer, and without one the
//! log is read from its beginning.

mod saving;

use std::marker::PhantomData;
use std::time::Duration;

use event_log::{Bucket, CheckpointBucket, Error, EventLog, MarkError};
use schemas::Log;
use tokio::time::{sleep, timeout};

use crate::retry::retry_while;

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

/// What a part of the runner notes of a partition. What is stored may be read by an older or a
/// newer program, so each keeps the form that it has always had.
pub(crate) trait Checkpoint: Sized + 'static {
    /// Where it is kept.
    const BUCKET: CheckpointBucket;

    /// What tells a checkpoint from one of the same partition that is further.
    type Mark: PartialEq + Send + 'static;

    fn mark(&self) -> Self::Mark;

    /// As it is stored.
    fn encode(&self, log: &EventLog) -> Vec<u8>;

    /// What was stored; `None` where it cannot be read or is of the log before a restore.
    fn decode(stored: &[u8], log: &EventLog) -> Option<Self>;
}

/// Keeps the checkpoints of one kind.
pub(crate) struct Checkpoints<T> {
    log: EventLog,
    /// The stream that they are places in.
    feed: Log,
    bucket: Bucket,
    prefix: &'static str,
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
    /// Opens the bucket, for places in a stream; a partition's key begins with `prefix`.
    pub(crate) async fn open(
        log: &EventLog,
        feed: Log,
        prefix: &'static str,
    ) -> Result<Self, Error> {
        Ok(Self {
            log: log.clone(),
            feed,
            bucket: log.bucket(T::BUCKET.name(), None).await?,
            prefix,
            of: PhantomData,
        })
    }

    /// The partition as it was noted last; `None` where nothing usable stands there. Asks until
    /// there is an answer, for without one work would be done again, or not at all; and while the
    /// log has gone back behind what was noted, for to go on there would be to do what is not due
    /// and to leave out what is.
    pub(crate) async fn read(&self, partition: u16) -> Option<T> {
        loop {
            let ask = || async {
                let key = self.key(partition);
                let asked = timeout(READ_PATIENCE, self.bucket.get_marked(&key)).await;
                asked.unwrap_or_else(|_| Err("no answer in time".to_owned()))
            };
            let (stored, mark) = retry_while(ask, |_| true).await.ok()??;
            let bucket = T::BUCKET.name();
            let Some(read) = T::decode(&stored, &self.log) else {
                tracing::warn!(bucket, partition, "Nothing can be taken from a checkpoint");
                return None;
            };
            let check = || self.log.check(self.feed, mark);
            match retry_while(check, |error| matches!(error, MarkError::Read(_))).await {
                Ok(()) => return Some(read),
                Err(error) => tracing::error!(bucket, partition, %error, "Cannot go on"),
            }
            sleep(WENT_BACK).await;
        }
    }

    /// Writes one; where that fails, the one before stays.
    async fn put(&self, partition: u16, stored: Vec<u8>) -> Result<(), String> {
        let bytes = stored.len();
        if bytes > MAX_BYTES {
            return Err("it is too large".to_owned());
        }
        let (key, mark) = (self.key(partition), self.log.newest_taken(self.feed));
        let put = self.bucket.put_marked(&key, stored.into(), mark);
        let times = 1 + u32::try_from(bytes / BYTES_IN_TIME).unwrap_or(u32::MAX);
        let put = timeout(PATIENCE.saturating_mul(times), put).await;
        put.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    fn key(&self, partition: u16) -> String {
        format!("{}{partition}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use event_log::{Keyring, LogSettings, Mark};
    use schemas::EventId;
    use uuid::Uuid;

    use super::*;

    /// How far, and whatever else.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct Text(pub(super) u8, pub(super) String);

    impl Checkpoint for Text {
        const BUCKET: CheckpointBucket = CheckpointBucket::Runs;

        type Mark = u8;

        fn mark(&self) -> u8 {
            self.0
        }

        fn encode(&self, _log: &EventLog) -> Vec<u8> {
            [&[self.0], self.1.as_bytes()].concat()
        }

        fn decode(stored: &[u8], _log: &EventLog) -> Option<Self> {
            let (mark, text) = stored.split_first()?;
            let text = String::from_utf8(text.to_vec()).ok()?;
            Some(Self(*mark, text))
        }
    }

    pub(super) async fn checkpoints() -> Checkpoints<Text> {
        let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
        let settings = LogSettings {
            log_prefix: format!("checkpoints-{}-", Uuid::new_v4().simple()),
            ..LogSettings::at(url)
        };
        let keyring = Keyring::from_master(&[7; 32]);
        let log = EventLog::connect(&settings, keyring).await.unwrap();
        Checkpoints::open(&log, Log::Events, "p-").await.unwrap()
    }

    #[tokio::test]
    async fn nobody_goes_on_from_a_checkpoint_of_a_log_that_has_gone_back() {
        let checkpoints = checkpoints().await;
        let mark = Mark {
            sequence: 7,
            event: Some(EventId(Uuid::new_v4())),
        };
        let put = checkpoints.bucket.put_marked("p-1", "1a".into(), mark);
        put.await.unwrap();
        let read = timeout(Duration::from_millis(300), checkpoints.read(1)).await;
        assert!(read.is_err(), "{read:?}");
        // What was put by a program that knew of no marks is taken as it is.
        checkpoints.bucket.put("p-1", "2b".into()).await.unwrap();
        let read = checkpoints.read(1).await;
        assert_eq!(read, Some(Text(b'2', "b".to_owned())));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_no_checkpoint() {
        let checkpoints = checkpoints().await;
        checkpoints.put(1, vec![1, 0xff]).await.unwrap();
        assert_eq!(checkpoints.read(1).await, None);
        assert_eq!(checkpoints.read(2).await, None);
    }
}
