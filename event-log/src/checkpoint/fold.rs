//! Checkpoints of what every process folds from the log and keeps in memory: with a million
//! accounts, a start reads what came since the last one, not the whole log.
//!
//! A process that has read much writes one, so that the next need not. Two that write at once may
//! spoil it. Then the next start takes as long as without one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schemas::{AggregateType, Log};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{CheckpointBucket, decode, encode};
use crate::{Batch, Bucket, EventLog, Item, Mark, ReadError};

/// Bytes worth writing for each event that need not be read again.
const BYTES_AN_EVENT: usize = 100;
/// A fold that has grown larger than this is no longer written.
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// Timeout for reading one, and for writing it, however large it is.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Delays writes, so that processes started together do not write at once.
const APART_MILLIS: u128 = 2_000;

/// A fold of the stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The state of accounts.
    Accounts,
    /// Who shares circles with whom.
    Circles,
}

impl Fold {
    const fn key(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::Circles => "circles",
        }
    }

    /// The kinds of aggregate whose events it is made of.
    pub const fn kinds(self) -> &'static [AggregateType] {
        match self {
            Self::Accounts => &[AggregateType::Account],
            Self::Circles => &[AggregateType::Account, AggregateType::Circle],
        }
    }
}

/// The checkpoint of a fold.
pub struct FoldCheckpoint {
    log: EventLog,
    bucket: Bucket,
    fold: Fold,
    /// The version of the form in which it is stored.
    form: u8,
    state: Mutex<State>,
}

struct State {
    /// Mark of the one found or written last.
    seen: Option<Mark>,
    /// Events folded since.
    events: usize,
    /// How many of them are worth another checkpoint.
    worth: usize,
    is_under_way: bool,
    /// Whether all of them could be read.
    is_whole: bool,
}

/// Encodes a fold.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    epoch: u32,
    form: u8,
}

impl Encoder {
    /// Encodes a fold of all events up to the sequence `through`.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn encode(self, through: u64, fold: &impl Serialize) -> Result<Vec<u8>, String> {
        encode(self.epoch, through, self.form, fold)
    }
}

impl FoldCheckpoint {
    /// Opens the bucket; `form` is the version of the form in which the fold is stored.
    ///
    /// # Errors
    /// If the log does not answer.
    pub async fn open(log: &EventLog, fold: Fold, form: u8) -> Result<Self, ReadError> {
        let bucket = log.bucket(CheckpointBucket::Folds.name(), None).await;
        Ok(Self {
            log: log.clone(),
            bucket: bucket.map_err(|error| ReadError::Unavailable(error.to_string()))?,
            fold,
            form,
            state: Mutex::new(State {
                seen: None,
                events: 0,
                worth: least_events(log),
                is_under_way: false,
                is_whole: true,
            }),
        })
    }

    /// Reads the last checkpoint, with the sequence up to which it is the fold of the log; `None`
    /// if it cannot be used and everything must be folded again.
    pub async fn read<T: DeserializeOwned>(&self) -> Option<(u64, T)> {
        let read = timeout(TIMEOUT, self.stored()).await;
        let read = read.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        read.unwrap_or_else(|error| {
            let fold = self.fold.key();
            tracing::warn!(
                fold,
                error,
                "Nothing can be taken from a checkpoint; the log is read from its beginning"
            );
            None
        })
    }

    async fn stored<T: DeserializeOwned>(&self) -> Result<Option<(u64, T)>, String> {
        let key = self.fold.key();
        let seen = self.bucket.mark(key).await?;
        self.state().seen = seen;
        let Some((stored, mark)) = self.bucket.get_marked(key).await? else {
            return Ok(None);
        };
        let carries_on = |epoch| self.log.carries_on(Log::Events, epoch);
        let read = decode(&stored, self.form, carries_on).map_err(|error| error.to_string())?;
        let check = self.log.check(Log::Events, mark).await;
        check.map_err(|error| error.to_string())?;
        self.state().worth = self.worth(stored.len());
        Ok(Some(read))
    }

    /// Counts what was folded from a batch. If an event could not be read, such as one of a newer
    /// version, this process saves no more checkpoints: others would fold something else.
    pub fn count(&self, batch: &Batch) {
        let kinds = self.fold.kinds();
        let (mut events, mut is_whole) = (0, true);
        for item in batch.items.iter().filter(|item| item.is_of(kinds)) {
            events += 1;
            is_whole &= matches!(item, Item::Event(_));
        }
        let mut state = self.state();
        state.events += events;
        state.is_whole &= is_whole;
    }

    /// Writes one in the background if it is due, as [`FoldCheckpoint::write`] does.
    pub fn note<F>(self: &Arc<Self>, fold: F)
    where
        F: FnOnce(Encoder) -> Result<Vec<u8>, String> + Send + 'static,
    {
        if self.is_due() {
            let checkpoint = Arc::clone(self);
            tokio::spawn(async move { checkpoint.write(fold).await });
        }
    }

    /// Whether enough was folded to make another [`FoldCheckpoint::write`] worthwhile. A caller
    /// that gets `true` must write it: no other caller gets it meanwhile.
    pub fn is_due(&self) -> bool {
        let mut state = self.state();
        let is_due = state.events >= state.worth && state.is_whole && !state.is_under_way;
        state.is_under_way |= is_due;
        is_due
    }

    /// Writes one, unless another process has done so meanwhile. `fold` encodes it, on a thread
    /// that it may block. If this fails, the one before stays.
    pub async fn write<F>(&self, fold: F)
    where
        F: FnOnce(Encoder) -> Result<Vec<u8>, String> + Send + 'static,
    {
        let apart = Uuid::new_v4().as_u128() % APART_MILLIS;
        sleep(Duration::from_millis(apart.try_into().unwrap_or_default())).await;
        // Some of what is folded from here on may not be in it.
        self.state().events = 0;
        let written = timeout(TIMEOUT, self.put(fold)).await;
        let written = written.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        if let Err(error) = written {
            tracing::warn!(
                fold = self.fold.key(),
                error,
                "A checkpoint was not written"
            );
        }
        self.state().is_under_way = false;
    }

    async fn put<F>(&self, fold: F) -> Result<(), String>
    where
        F: FnOnce(Encoder) -> Result<Vec<u8>, String> + Send + 'static,
    {
        let key = self.fold.key();
        let stored = self.bucket.mark(key).await?;
        if std::mem::replace(&mut self.state().seen, stored) != stored {
            return Ok(());
        }
        let encoder = Encoder {
            epoch: self.log.position(Log::Events, 0).epoch(),
            form: self.form,
        };
        let encoded = spawn_blocking(move || fold(encoder)).await;
        let encoded = encoded.map_err(|error| error.to_string())??;
        let bytes = encoded.len();
        if bytes > MAX_BYTES {
            return Err("it is too large".to_owned());
        }
        let mark = self.log.newest_taken(Log::Events);
        self.bucket.put_marked(key, encoded.into(), mark).await?;
        let worth = self.worth(bytes);
        let mut state = self.state();
        (state.seen, state.worth) = (Some(mark), worth);
        Ok(())
    }

    /// How many events are worth another one after one of this size.
    fn worth(&self, bytes: usize) -> usize {
        least_events(&self.log).max(bytes / BYTES_AN_EVENT)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn least_events(log: &EventLog) -> usize {
    usize::try_from(log.settings().fold_events).unwrap_or(usize::MAX)
}
