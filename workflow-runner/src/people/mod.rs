//! Persons as the log knows them now: their circles, whether they hide, their names.
//!
//! What is pushed of a person must stop the moment they leave, hide or are forgotten, so nobody
//! here judges by what was known some time ago: [`Roll::settle`] waits until everything is folded
//! that stood in the log when it was asked.

mod book;
mod newest;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use event_log::{Batch, Binding, EventLog, ReadError, Tail, TailError, VaultError};
use schemas::{AccountId, AggregateType, Log, Recorded};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

pub use book::Book;
pub use newest::Newest;
pub(crate) use newest::overtaken_by;

/// Events taken at a time.
const BATCH: usize = 1_000;
/// The pause before the log is asked again that did not answer.
const AGAIN: Duration = Duration::from_millis(50);

/// All persons and circles. Clones are the same.
#[derive(Clone)]
pub struct Roll(Arc<Inner>);

struct Inner {
    log: EventLog,
    book: RwLock<Book>,
    /// The sequence up to which events have been taken in.
    head: watch::Sender<u64>,
    look: Mutex<Option<Look>>,
}

/// A look at the log's end, shared by all who asked before it began.
#[derive(Clone, Copy)]
struct Look {
    began: Instant,
    end: u64,
}

/// Why the accounts and circles could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log has a hole.
    #[error(transparent)]
    Tail(#[from] TailError),
}

impl Roll {
    /// Reads all accounts and circles. What follows comes by the tail, which carries every event:
    /// it is for [`Roll::take`], or [`Roll::follow`] where nobody else needs it.
    pub async fn start(log: &EventLog) -> Result<(Self, Tail), StartError> {
        let head = log.end(Log::Events).await?.sequence();
        let mut book = Book::default();
        let kinds = [AggregateType::Account, AggregateType::Circle];
        let mut past = log.tail(Log::Events, 0, &kinds).await?;
        while !past.caught_up() && past.last_sequence() < head {
            take_in(&mut book, &past.next(BATCH).await?);
        }
        // What came behind `head` comes again, and changes nothing.
        let tail = log.tail(Log::Events, head, &[]).await?;
        let roll = Self(Arc::new(Inner {
            log: log.clone(),
            book: RwLock::new(book),
            head: watch::Sender::new(head),
            look: Mutex::default(),
        }));
        Ok((roll, tail))
    }

    /// Takes in what the tail brought.
    pub fn take(&self, batch: &Batch) {
        let book = &self.0.book;
        take_in(
            &mut book.write().unwrap_or_else(PoisonError::into_inner),
            batch,
        );
        self.0.head.send_replace(batch.last_sequence);
    }

    /// Takes in whatever the tail brings, for ever.
    pub async fn follow(&self, mut tail: Tail) -> TailError {
        loop {
            match tail.next(BATCH).await {
                Ok(batch) => self.take(&batch),
                Err(error) => return error,
            }
        }
    }

    /// Waits until all is known that stands in the log now. While the log does not answer it is
    /// waited for: better late than wrong.
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
        let mut head = self.0.head.subscribe();
        // The sender lives as long as this roll.
        let _ = head.wait_for(|head| *head >= end).await;
    }

    /// The log's end at a moment not before `asked`. Those who wait while somebody looks share
    /// the next look.
    async fn look(&self, asked: Instant) -> Result<u64, ReadError> {
        let mut look = self.0.look.lock().await;
        if let Some(look) = look.filter(|look| look.began >= asked) {
            return Ok(look.end);
        }
        let began = Instant::now();
        let end = self.0.log.end(Log::Events).await?.sequence();
        *look = Some(Look { began, end });
        Ok(end)
    }

    /// Reads what is known at this moment.
    pub fn read<T>(&self, read: impl FnOnce(&Book) -> T) -> T {
        let book = &self.0.book;
        read(&book.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The sequence of the last event of an account.
    pub fn accounts_through(&self) -> u64 {
        self.read(Book::accounts_through)
    }

    /// The event's data as it is shown outside, with what is personal in it unless its person was
    /// forgotten. While the vault does not answer it is waited for.
    pub async fn reveal(&self, recorded: &Recorded) -> Value {
        let about = recorded.event.personal().map(|(account, _)| account);
        let forgotten = |account| self.read(|book| book.circles().is_forgotten(account));
        // The vault may hold a destroyed key for a while yet.
        if !about.is_some_and(forgotten) {
            match insist(|| self.0.log.reveal(&recorded.event)).await {
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

    /// What a person sealed, unsealed; `None` where they were forgotten. While the vault does not
    /// answer it is waited for.
    pub async fn unseal(&self, binding: &Binding, sealed: &schemas::Sealed) -> Option<String> {
        let unsealed = insist(|| self.0.log.vault().unseal(binding, sealed)).await;
        if let Err(VaultError::Broken) = &unsealed {
            tracing::error!(?binding, "A person's sealed data cannot be opened");
        }
        unsealed.ok()
    }

    /// The newest fixes of a person who was not forgotten. While the log does not answer it is
    /// waited for.
    pub async fn newest(&self, account: AccountId) -> Option<Newest> {
        loop {
            let hidden = |at| self.read(|book| book.circles().hid(account, at));
            match newest::newest(&self.0.log, account, hidden).await {
                Ok(newest) => {
                    let forgotten = self.read(|book| book.circles().is_forgotten(account));
                    return newest.filter(|_| !forgotten);
                }
                Err(ReadError::Unavailable(_)) => sleep(AGAIN).await,
                Err(error) => {
                    tracing::error!(%account, %error, "A person's positions cannot be read");
                    return None;
                }
            }
        }
    }

    /// What a person is called, where that can be read.
    pub async fn name(&self, account: AccountId) -> Option<String> {
        let sealed = self.read(|book| book.name(account).cloned())?;
        self.unseal(&Binding::Name(account), &sealed).await
    }
}

fn take_in(book: &mut Book, batch: &Batch) {
    for recorded in batch.readable("persons") {
        book.apply(recorded);
    }
}

/// Asks the vault until it answers.
async fn insist<T, F>(ask: impl Fn() -> F) -> Result<T, VaultError>
where
    F: Future<Output = Result<T, VaultError>>,
{
    loop {
        match ask().await {
            Err(VaultError::Unavailable(_)) => sleep(AGAIN).await,
            answer => return answer,
        }
    }
}
