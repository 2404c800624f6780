//! Reads what a caller may see, in order and without gaps.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use event_log::{EventLog, Item, Position, ReadError, Tail, TailError, VaultError, Whose};
use futures::{Stream, stream};
use schemas::{Log, OrgId, Recorded, Visibility};
use service::{Clock, Share, Shares};
use tokio::time::{Instant, sleep, timeout};

use super::asked::{Asked, Form};
use super::line::line;
use super::places::TURN;
use super::sharing::Sharing;

/// Events per batch: enough to be fast, few enough to hold little for a slow reader.
const CHUNK: usize = 64;
/// How long to retry if the log does not provide who may be seen, or sealed data.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(100);
/// The cost of beginning for the log's server, as bytes that are read.
const BEGINNING: usize = 64 * 1024;

/// The reason why a feed is cut off.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Tail(#[from] TailError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error("event {0} cannot be read: {1}")]
    Undecodable(u64, String),
}

impl FeedError {
    /// Whether a retry may help.
    fn passes(&self) -> bool {
        match self {
            Self::Read(error) => error.passes(),
            Self::Vault(error) => error.passes(),
            Self::Tail(_) | Self::Undecodable(..) => false,
        }
    }
}

impl From<FeedError> for io::Error {
    /// The connection is broken off, so that no client mistakes a part for the whole.
    fn from(error: FeedError) -> Self {
        tracing::error!(%error, "A feed was cut off");
        Self::other(error)
    }
}

/// One requested event.
pub(super) struct FeedLine {
    pub(super) position: Position,
    pub(super) line: Vec<u8>,
}

/// Follows a feed for one caller.
pub(super) struct Reader {
    log: EventLog,
    clock: Arc<dyn Clock>,
    tail: Tail,
    /// The organization; `None` for callers with access to the log itself, who see all events.
    org: Option<OrgId>,
    /// Turns to catch up in; `None` if the reader yields to no one.
    turns: Option<Shares<OrgId>>,
    /// The persons that may be seen, once events concern any.
    sharing: Option<Sharing>,
    /// Events taken from the log that have not been sent yet.
    taken: Vec<Item>,
    /// Bytes that were sent last and may not have been taken yet.
    held: usize,
    asked: Asked,
    /// The position after which it began.
    start: Position,
    /// The last sequence to send. Server-sent events continue forever.
    end: Option<u64>,
    /// How many events may still be sent.
    left: u64,
}

impl Reader {
    /// Starts reading. Callers for an organization must first wait until it may read.
    pub(super) async fn open(
        log: &EventLog,
        clock: &Arc<dyn Clock>,
        feed: Log,
        org: Option<&OrgId>,
        asked: Asked,
    ) -> Result<Self, ReadError> {
        if let Some(org) = org {
            log.count_read(org, BEGINNING);
        }
        let end = log.end(feed).await?.sequence();
        let (after, end) = match asked.form {
            Form::Lines => (asked.after.unwrap_or(0), Some(end)),
            Form::ServerSent => (asked.after.unwrap_or(end), None),
        };
        let (tail, sharing) = match org {
            None => (log.read_for(feed, Whose::All, after).await?, None),
            Some(org) if feed == Log::Locations => {
                let sharing = Sharing::load(log, org).await?;
                (sharing.tail(log, after, end).await?, Some(sharing))
            }
            Some(org) => {
                let whose = Whose::Organization(org, None);
                (log.read_for(feed, whose, after).await?, None)
            }
        };
        Ok(Self {
            log: log.clone(),
            clock: Arc::clone(clock),
            tail,
            org: org.cloned(),
            turns: None,
            sharing,
            taken: Vec::new(),
            held: 0,
            left: asked.limit.unwrap_or(u64::MAX),
            asked,
            start: log.position(feed, after),
            end,
        })
    }

    /// Returns where it began. A client that resumes from there misses nothing.
    pub(super) fn start(&self) -> Position {
        self.start
    }

    /// Takes turns with other readers that catch up.
    pub(super) fn in_turns(mut self, turns: Shares<OrgId>) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Sends nothing after this sequence.
    pub(super) fn through(mut self, sequence: u64) -> Self {
        self.end = Some(self.end.map_or(sequence, |end| end.min(sequence)));
        self
    }

    /// Returns the next events, possibly none of those read, or `None` at the end. Waits for them
    /// if the feed continues. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<FeedLine>>, FeedError> {
        self.hold(0);
        let ended = self
            .end
            .is_some_and(|end| self.tail.caught_up() || self.tail.last_sequence() >= end);
        if self.left == 0 || (ended && self.taken.is_empty()) {
            return Ok(None);
        }
        if self.taken.is_empty()
            && let Some(org) = &self.org
        {
            self.log.until_read(org).await;
        }
        let mut turn = self.turn().await;
        if self.taken.is_empty() {
            let batch = if let Ok(batch) = timeout(TURN, self.tail.next(CHUNK)).await {
                batch
            } else {
                drop(turn.take());
                self.tail.next(CHUNK).await
            };
            let batch = batch?;
            if let Some(org) = &self.org {
                self.log.count_read(org, batch.bytes);
            }
            self.taken = batch.items;
        }
        let begun = Instant::now();
        loop {
            let told = self.tell().await;
            drop(turn.take());
            match told {
                Err(error) if error.passes() && begun.elapsed() < PATIENCE => sleep(AGAIN).await,
                told => return told.map(Some),
            }
        }
    }

    /// Waits for a turn if there is something to catch up with.
    async fn turn(&self) -> Option<Share<OrgId>> {
        let (turns, org) = (self.turns.as_ref()?, self.org.clone()?);
        if self.tail.caught_up() {
            return None;
        }
        Some(turns.enter(org).await)
    }

    /// Converts the taken events to lines. Nothing changes until all of them can be sent.
    async fn tell(&mut self) -> Result<Vec<FeedLine>, FeedError> {
        let mut events = self.taken.iter().filter_map(Item::event);
        if events.any(|recorded| recorded.event.personal().is_some()) {
            self.look().await?;
        }
        let mut told = Vec::with_capacity(self.taken.len());
        for item in &self.taken {
            let recorded = match item {
                Item::Event(recorded) => recorded,
                Item::Undecodable {
                    sequence, reason, ..
                } => return Err(FeedError::Undecodable(*sequence, reason.clone())),
            };
            let beyond = self.end.is_some_and(|end| recorded.sequence > end);
            if told.len() as u64 == self.left || beyond || !self.is_told(recorded) {
                continue;
            }
            let feed = recorded.stream.aggregate.log();
            told.push(FeedLine {
                position: self.log.position(feed, recorded.sequence),
                line: line(&self.log, recorded).await?,
            });
        }
        self.taken.clear();
        self.left -= told.len() as u64;
        self.hold(told.iter().map(|told| told.line.len()).sum());
        Ok(told)
    }

    /// Updates who may be seen.
    async fn look(&mut self) -> Result<(), ReadError> {
        match (&mut self.sharing, &self.org) {
            (Some(sharing), _) => sharing.catch_up(&self.log).await?,
            (None, Some(org)) => self.sharing = Some(Sharing::load(&self.log, org).await?),
            (None, None) => {}
        }
        Ok(())
    }

    fn hold(&mut self, bytes: usize) {
        let gauge = metrics::gauge!("waypost_feed_held_bytes");
        gauge.decrement(amount(self.held));
        gauge.increment(amount(bytes));
        self.held = bytes;
    }

    fn is_told(&self, recorded: &Recorded) -> bool {
        recorded.event.visibility() == Visibility::Public
            && self.asked.wants(&recorded.event.name())
            && self
                .sharing
                .as_ref()
                .is_none_or(|sharing| sharing.sees(recorded, self.clock.now()))
    }

    /// Streams everything as lines.
    pub(super) fn lines(self) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        stream::try_unfold(self, |mut reader| async move {
            while let Some(told) = reader.next().await? {
                if !told.is_empty() {
                    return Ok(Some((lines(told), reader)));
                }
            }
            Ok(None)
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure of metrics")]
fn amount(bytes: usize) -> f64 {
    bytes as f64
}

fn lines(told: Vec<FeedLine>) -> Bytes {
    let mut lines = BytesMut::new();
    for FeedLine { line, .. } in told {
        lines.put_slice(&line);
        lines.put_u8(b'\n');
    }
    lines.freeze()
}
