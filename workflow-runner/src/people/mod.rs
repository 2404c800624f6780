//! Persons as currently known from the log: their circles, whether they hide.
//!
//! What is pushed about a person must stop the moment they leave, hide or are forgotten, so nothing
//! here is judged by outdated knowledge: [`People::settle`] waits until everything is folded that
//! was in the log when it was called.

mod directory;
mod newest;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::circles::Circles;
use event_log::{
    Batch, Binding, EventLog, Fold, FoldCheckpoint, Follower, ReadError, TailError, VaultError,
};
use schemas::{AccountId, Event, Log, Recorded, StreamId};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use crate::retry::retry_while;
use crate::task::Task;

pub use directory::Directory;
pub use newest::Newest;
pub(crate) use newest::overtaken_by;

/// Events taken at a time.
const BATCH: usize = 1_000;
/// The pause before the log is queried again after it did not answer.
const AGAIN: Duration = Duration::from_millis(50);

/// All persons and circles. Clones are the same.
#[derive(Clone)]
pub struct People(Arc<Inner>);

struct Inner {
    log: EventLog,
    checkpoint: Arc<FoldCheckpoint>,
    directory: RwLock<Directory>,
    /// The sequence up to which events have been taken in.
    head: watch::Sender<u64>,
    look: Mutex<Option<Look>>,
}

/// A query of the log's end, shared by all callers that asked before it began.
#[derive(Clone, Copy)]
struct Look {
    began: Instant,
    end: u64,
}

/// Why the accounts and circles could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log does not answer.
    #[error("cannot read the accounts and circles from the log: {0}")]
    Read(#[from] ReadError),
    /// The log has a hole.
    #[error(transparent)]
    Tail(#[from] TailError),
}

impl People {
    /// Reads all accounts and circles, starting from the last checkpoint. Later events come from
    /// the tail, which carries every event: it is for [`People::take`], or [`People::follow`] if
    /// nothing else needs it.
    pub async fn start(log: &EventLog) -> Result<(Self, Follower), StartError> {
        let head = log.end(Log::Events).await?.sequence();
        let checkpoint = FoldCheckpoint::open(log, Fold::Circles, Circles::FORM).await?;
        let noted = checkpoint.read().await;
        let mut directory = noted.map_or_else(Directory::default, |(through, circles)| {
            Directory::beginning(through, circles)
        });
        let (after, kinds) = (directory.through(), Fold::Circles.kinds());
        let mut past = log.tail(Log::Events, after, kinds).await?;
        while !past.caught_up() && past.last_sequence() < head {
            let batch = past.next(BATCH).await?;
            directory.apply(&batch);
            checkpoint.count(&batch);
        }
        // Events after `head` are delivered again, and change nothing.
        let tail = log.follow(Log::Events, head, &[]).await?;
        let people = Self(Arc::new(Inner {
            log: log.clone(),
            checkpoint: Arc::new(checkpoint),
            directory: RwLock::new(directory),
            head: watch::Sender::new(head),
            look: Mutex::default(),
        }));
        people.note();
        Ok((people, tail))
    }

    /// Takes in a batch of the tail.
    pub fn take(&self, batch: &Batch) {
        let directory = self.0.directory.write();
        directory
            .unwrap_or_else(PoisonError::into_inner)
            .apply(batch);
        self.0.head.send_replace(batch.last_sequence);
        self.0.checkpoint.count(batch);
        self.note();
    }

    /// Saves the current state, if much is new.
    fn note(&self) {
        let known = self.clone();
        self.0.checkpoint.note(move |encoder| {
            known.read(|directory| encoder.encode(directory.through(), directory.circles()))
        });
    }

    /// Takes in everything the tail delivers, until it fails.
    pub async fn follow(&self, mut tail: Follower) -> TailError {
        loop {
            match tail.next(BATCH).await {
                Ok(batch) => self.take(&batch),
                Err(error) => return error,
            }
        }
    }

    /// Waits until everything currently in the log is known. While the log does not answer it keeps
    /// waiting: better late than wrong.
    pub async fn settle(&self) {
        let asked = Instant::now();
        let end = loop {
            match self.look(asked).await {
                Ok(end) => break end,
                Err(error) => {
                    tracing::debug!(%error, "Waiting for the log to read people's data");
                    sleep(AGAIN).await;
                }
            }
        };
        let head = self.0.head.subscribe();
        self.0.log.until_taken(Log::Events, head, end).await;
    }

    /// The log's end at a time not before `asked`. The query runs in its own task: the caller may
    /// turn to something else and come back to it later, or never, and must not keep the others
    /// waiting meanwhile.
    async fn look(&self, asked: Instant) -> Result<u64, ReadError> {
        let people = self.clone();
        Task::spawn(async move { people.look_in_turn(asked).await }).await
    }

    /// Callers that wait during a query share the next one.
    async fn look_in_turn(&self, asked: Instant) -> Result<u64, ReadError> {
        let mut look = self.0.look.lock().await;
        if let Some(look) = look.filter(|look| look.began >= asked) {
            return Ok(look.end);
        }
        let began = Instant::now();
        let end = self.0.log.end(Log::Events).await?.sequence();
        *look = Some(Look { began, end });
        Ok(end)
    }

    /// Reads the current state.
    pub fn read<T>(&self, read: impl FnOnce(&Directory) -> T) -> T {
        let directory = &self.0.directory;
        read(&directory.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The sequence of the last event of an account.
    pub fn accounts_through(&self) -> u64 {
        self.read(|directory| directory.circles().accounts_through())
    }

    /// The event's data as shown outside, including personal data unless its person was forgotten.
    /// Waits while the vault does not answer.
    pub async fn reveal(&self, recorded: &Recorded) -> Value {
        let about = recorded.event.personal().map(|(account, _)| account);
        let forgotten = |account| self.read(|directory| directory.circles().is_forgotten(account));
        // The vault may hold a destroyed key for a while yet.
        if !about.is_some_and(forgotten) {
            match retry_while(|| self.0.log.reveal(&recorded.event), VaultError::passes).await {
                Ok(data) => return data,
                Err(error) => {
                    let sequence = recorded.sequence;
                    tracing::error!(sequence, %error, "Personal data of an event is withheld");
                }
            }
        }
        // An event that was read has a JSON form.
        recorded.event.public_data().unwrap_or_default()
    }

    /// What a person sealed, unsealed; `None` if they were forgotten. Waits while the vault does
    /// not answer.
    pub async fn unseal(&self, binding: &Binding, sealed: &schemas::Sealed) -> Option<String> {
        let ask = || self.0.log.vault().unseal(binding, sealed);
        let unsealed = retry_while(ask, VaultError::passes).await;
        if let Err(VaultError::Broken) = &unsealed {
            tracing::error!(?binding, "A person's sealed data cannot be opened");
        }
        unsealed.ok()
    }

    /// The newest fixes of a person who was not forgotten. Waits while the log does not answer.
    pub async fn newest(&self, account: AccountId) -> Option<Newest> {
        let ask = || {
            let hidden = |at| self.read(|directory| directory.circles().hid(account, at));
            newest::newest(&self.0.log, account, hidden)
        };
        match retry_while(ask, ReadError::passes).await {
            Ok(newest) => {
                let forgotten = self.read(|directory| directory.circles().is_forgotten(account));
                newest.filter(|_| !forgotten)
            }
            Err(error) => {
                tracing::error!(%account, %error, "A person's positions cannot be read");
                None
            }
        }
    }

    /// The name under which a person registered, if it can be read; it is not held in memory here.
    /// Waits while the log does not answer.
    pub async fn name(&self, account: AccountId) -> Option<String> {
        if self.read(|directory| directory.circles().is_forgotten(account)) {
            return None;
        }
        let stream = StreamId::of_account(account);
        let first = retry_while(|| self.0.log.first(&stream), ReadError::passes).await;
        let first = first
            .inspect_err(|error| tracing::error!(%account, %error, "A name cannot be read"))
            .ok()??;
        let Event::AccountRegistered(registered) = &first.event else {
            return None;
        };
        self.unseal(&Binding::Name(account), &registered.name).await
    }
}
