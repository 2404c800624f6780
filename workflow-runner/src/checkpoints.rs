//! How far each partition has come, so that a restart or another process goes on from there.
//!
//! A checkpoint is no fact: it may be older than the truth and never newer, and without one the
//! log is read from its beginning.

use std::marker::PhantomData;
use std::time::Duration;

use event_log::{Bucket, CheckpointBucket, Error, EventLog, MarkError};
use futures::future::join_all;
use schemas::Log;
use tokio::time::{sleep, timeout};

use crate::retry::retry_while;

/// Over how long the checkpoints of all partitions are written by whoever looks every second
/// whether they have moved. Each is a flush of the disk, and appends wait for those of all at once.
pub(crate) const SPREAD: Duration = Duration::from_secs(3);
/// Over no time: at the end, when nobody waits for anything else.
pub(crate) const NO_TIME: Duration = Duration::ZERO;

/// What one value of a bucket may hold, with room for what surrounds it.
const MAX_BYTES: usize = 900 * 1024;
/// A server that is there answers in far less.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is said that the log has gone back.
const WENT_BACK: Duration = Duration::from_secs(10);

/// What a part of the runner notes of a partition. What is stored may be read by an older or a
/// newer program, so each keeps the form that it has always had.
pub(crate) trait Checkpoint: Sized {
    /// Where it is kept.
    const BUCKET: CheckpointBucket;

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
                let asked = timeout(PATIENCE, self.bucket.get_marked(&key)).await;
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

    /// A checkpoint as it is stored.
    pub(crate) fn encode(&self, checkpoint: &T) -> Vec<u8> {
        checkpoint.encode(&self.log)
    }

    /// Writes checkpoints, spread evenly over a time, and gives back those that were written; of
    /// the others the one before stays.
    pub(crate) async fn write(&self, news: Vec<(u16, T)>, over: Duration) -> Vec<(u16, T)> {
        let encoded = news.iter();
        let encoded = encoded.map(|(partition, checkpoint)| (*partition, self.encode(checkpoint)));
        let written = self.store(encoded.collect(), over).await;
        let news = news.into_iter().zip(written);
        news.filter_map(|(one, written)| written.then_some(one))
            .collect()
    }

    /// As [`Self::write`], of checkpoints that are encoded already; says which were written.
    pub(crate) async fn store(&self, encoded: Vec<(u16, Vec<u8>)>, over: Duration) -> Vec<bool> {
        let count = u32::try_from(encoded.len()).unwrap_or(u32::MAX);
        let apart = over / count.max(1);
        let writes = (0_u32..)
            .zip(encoded)
            .map(async |(before, (partition, encoded))| {
                sleep(apart * before).await;
                let put = self.put(partition, encoded).await;
                if let Err(error) = &put {
                    let bucket = T::BUCKET.name();
                    tracing::warn!(bucket, partition, error, "A checkpoint was not written");
                }
                put.is_ok()
            });
        join_all(writes).await
    }

    async fn put(&self, partition: u16, stored: Vec<u8>) -> Result<(), String> {
        if stored.len() > MAX_BYTES {
            return Err("it is too large".to_owned());
        }
        let (key, mark) = (self.key(partition), self.log.newest_taken(self.feed));
        let put = self.bucket.put_marked(&key, stored.into(), mark);
        let put = timeout(PATIENCE, put).await;
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
    use tokio::time::Instant;
    use uuid::Uuid;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Text(String);

    impl Checkpoint for Text {
        const BUCKET: CheckpointBucket = CheckpointBucket::Runs;

        fn encode(&self, _log: &EventLog) -> Vec<u8> {
            self.0.clone().into_bytes()
        }

        fn decode(stored: &[u8], _log: &EventLog) -> Option<Self> {
            String::from_utf8(stored.to_vec()).ok().map(Self)
        }
    }

    async fn checkpoints() -> Checkpoints<Text> {
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
    async fn the_last_that_was_written_of_a_partition_is_read() {
        let checkpoints = checkpoints().await;
        assert_eq!(checkpoints.read(1).await, None);
        let (first, second) = ((1, Text("a".to_owned())), (2, Text("b".to_owned())));
        let news = vec![first.clone(), second.clone()];
        assert_eq!(checkpoints.write(news.clone(), NO_TIME).await, news);
        assert_eq!(checkpoints.read(1).await, Some(first.1));
        assert_eq!(checkpoints.read(2).await, Some(second.1));
    }

    #[tokio::test]
    async fn they_do_not_all_ask_for_the_disk_at_once() {
        let checkpoints = checkpoints().await;
        let news: Vec<(u16, Text)> = (0..4).map(|part| (part, Text("a".to_owned()))).collect();
        let begun = Instant::now();
        let over = Duration::from_millis(200);
        assert_eq!(checkpoints.write(news.clone(), over).await, news);
        // The last begins a quarter of the time before its end.
        assert!(begun.elapsed() >= over * 3 / 4, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn of_one_that_is_too_large_the_one_before_stays() {
        let checkpoints = checkpoints().await;
        let before = vec![(1, Text("a".to_owned()))];
        checkpoints.write(before.clone(), NO_TIME).await;
        let large = Text("x".repeat(MAX_BYTES + 1));
        let small = (2, Text("b".to_owned()));
        let news = vec![(1, large), small.clone()];
        let written = checkpoints.write(news, NO_TIME).await;
        assert_eq!(written, [small]);
        assert_eq!(checkpoints.read(1).await, Some(before[0].1.clone()));
    }

    #[tokio::test]
    async fn nobody_goes_on_from_a_checkpoint_of_a_log_that_has_gone_back() {
        let checkpoints = checkpoints().await;
        let mark = Mark {
            sequence: 7,
            event: Some(EventId(Uuid::new_v4())),
        };
        let put = checkpoints.bucket.put_marked("p-1", "a".into(), mark);
        put.await.unwrap();
        let read = timeout(Duration::from_millis(300), checkpoints.read(1)).await;
        assert!(read.is_err(), "{read:?}");
        // What was put by a program that knew of no marks is taken as it is.
        checkpoints.bucket.put("p-1", "b".into()).await.unwrap();
        assert_eq!(checkpoints.read(1).await, Some(Text("b".to_owned())));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_no_checkpoint() {
        let checkpoints = checkpoints().await;
        let encoded = vec![(1, vec![0xff])];
        assert_eq!(checkpoints.store(encoded, NO_TIME).await, [true]);
        assert_eq!(checkpoints.read(1).await, None);
    }
}
