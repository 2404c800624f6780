//! Reads what a caller may see, in order and without gaps.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use event_log::{EventLog, Item, Position, ReadError, TailError, VaultError, Whose};
use futures::{Stream, stream};
use schemas::{AccountId, AggregateType, Log, OrgId, Recorded, Visibility};
use service::{Clock, Share};
use tokio::time::{Instant, sleep, timeout};

use super::followed::{Followed, Taken};
use super::kept::KeptSharings;
use super::line::line;
use super::places::{Crowded, TURN, Turns};
use super::query::{FeedQuery, Form};
use super::sharing::Sharing;

/// Events per batch: enough to be fast, few enough to hold little for a slow reader.
const CHUNK: usize = 64;
/// How long to retry if the log does not provide who may be seen, or sealed data.
const TIMEOUT: Duration = Duration::from_secs(10);
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
    #[error(transparent)]
    Crowded(#[from] Crowded),
}

impl FeedError {
    /// Whether a retry may help.
    fn passes(&self) -> bool {
        match self {
            Self::Read(error) => error.passes(),
            Self::Vault(error) => error.passes(),
            Self::Tail(_) | Self::Undecodable(..) | Self::Crowded(_) => false,
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
    followed: Followed,
    /// The organization; `None` for callers with access to the log itself, who see all events.
    org: Option<OrgId>,
    /// Turns to catch up in; `None` if the reader yields to no one.
    turns: Option<Turns>,
    /// The place that is held while everybody's positions are read.
    scan: Option<Share<OrgId>>,
    /// What other readers know about who may be seen.
    sharings: KeptSharings,
    /// The persons that may be seen, once events concern any.
    sharing: Option<Sharing>,
    /// Whether somebody may have joined since they were looked up.
    may_have_joined: bool,
    /// Events taken from the log that have not been sent yet.
    taken: Vec<Item>,
    /// The sequence up to which events were sent or passed over.
    passed: u64,
    /// Bytes that were sent last and may not have been taken yet.
    held: usize,
    query: FeedQuery,
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
        sharings: &KeptSharings,
        feed: Log,
        org: Option<&OrgId>,
        query: FeedQuery,
    ) -> Result<Self, ReadError> {
        if let Some(org) = org {
            log.count_read(org, BEGINNING);
        }
        let end = log.end_for_reader(feed).await?.sequence();
        let (after, end) = match query.form {
            Form::Lines => (query.after.unwrap_or(0), Some(end)),
            Form::ServerSent => (query.after.unwrap_or(end), None),
        };
        let (followed, sharing) = match org {
            None => {
                let events = log.read_for(feed, Whose::All, after).await?;
                (Followed::all(events), None)
            }
            Some(org) if feed == Log::Locations => {
                let sharing = sharings.current(log, org).await?;
                let positions = Followed::positions(log, &sharing, after, end.is_none());
                (positions.await?, Some(sharing))
            }
            Some(org) => (Followed::of_organization(log, org, after).await?, None),
        };
        Ok(Self {
            log: log.clone(),
            clock: Arc::clone(clock),
            followed,
            org: org.cloned(),
            turns: None,
            scan: None,
            sharings: sharings.clone(),
            sharing,
            may_have_joined: false,
            taken: Vec::new(),
            passed: after,
            held: 0,
            left: query.limit.unwrap_or(u64::MAX),
            query,
            start: log.position(feed, after),
            end,
        })
    }

    /// Returns where it began. A client that resumes from there misses nothing.
    pub(super) fn start(&self) -> Position {
        self.start
    }

    /// Takes turns with other readers that catch up, and one of the places for reading everybody's
    /// positions if it does.
    pub(super) fn in_turns(mut self, turns: Turns) -> Result<Self, Crowded> {
        self.turns = Some(turns);
        self.hold_scan()?;
        Ok(self)
    }

    fn hold_scan(&mut self) -> Result<(), Crowded> {
        if let (Some(turns), Some(org)) = (&self.turns, &self.org)
            && self.followed.scans()
            && self.scan.is_none()
        {
            self.scan = Some(turns.scan(org)?);
        }
        Ok(())
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
        let is_past = |end| self.followed.last_sequence().is_none_or(|last| last >= end);
        let ended = self
            .end
            .is_some_and(|end| self.followed.caught_up() || is_past(end));
        if self.left == 0 || (ended && self.taken.is_empty()) {
            return Ok(None);
        }
        let waits = self.taken.is_empty() && !self.may_have_joined;
        if waits && let Some(org) = &self.org {
            self.log.until_read(org).await;
        }
        let mut turn = self.turn().await;
        if waits {
            let taken = if let Ok(taken) = timeout(TURN, self.followed.next(CHUNK)).await {
                taken
            } else {
                drop(turn.take());
                self.followed.next(CHUNK).await
            };
            self.take(taken?);
        }
        let begun = Instant::now();
        loop {
            let lines = self.next_lines().await;
            drop(turn.take());
            match lines {
                Err(error) if error.passes() && begun.elapsed() < TIMEOUT => sleep(AGAIN).await,
                lines => return lines.map(Some),
            }
        }
    }

    fn take(&mut self, taken: Taken) {
        match taken {
            Taken::Circles => self.may_have_joined = true,
            Taken::Events(batch) => {
                if let Some(org) = &self.org {
                    self.log.count_read(org, batch.bytes);
                }
                self.taken = batch.items;
            }
        }
    }

    /// Waits for a turn if there is something to catch up with.
    async fn turn(&self) -> Option<Share<OrgId>> {
        let (turns, org) = (self.turns.as_ref()?, self.org.clone()?);
        if self.followed.caught_up() {
            return None;
        }
        Some(turns.catch_up(org).await)
    }

    /// Converts the taken events to lines, up to one that cannot be sent now: what comes before it
    /// is sent first. Nothing changes until all of these can be sent.
    async fn next_lines(&mut self) -> Result<Vec<FeedLine>, FeedError> {
        if self.may_have_joined || self.concerns_persons() {
            self.look().await?;
        }
        if self.follow_newcomers().await? {
            return Ok(Vec::new());
        }
        let mut lines = Vec::with_capacity(self.taken.len());
        let mut passed = 0;
        for item in &self.taken {
            let recorded = match self.wanted(item, lines.len() as u64) {
                Ok(recorded) => recorded,
                Err(_) if !lines.is_empty() => break,
                Err(error) => return Err(error),
            };
            if let Some(recorded) = recorded {
                let feed = recorded.stream.aggregate.log();
                let position = self.log.position(feed, recorded.sequence);
                match line(&self.log, recorded).await {
                    Ok(line) => lines.push(FeedLine { position, line }),
                    Err(_) if !lines.is_empty() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            passed += 1;
        }
        if let Some(last) = self.taken.drain(..passed).next_back() {
            self.passed = last.sequence();
        }
        self.left -= lines.len() as u64;
        self.hold(lines.iter().map(|one| one.line.len()).sum());
        Ok(lines)
    }

    /// Whether any of the taken events that may be sent is about a person.
    fn concerns_persons(&self) -> bool {
        let mut events = self.taken.iter().filter_map(Item::event);
        events.any(|recorded| recorded.event.personal().is_some() && self.is_asked_for(recorded))
    }

    /// Updates who may be seen.
    async fn look(&mut self) -> Result<(), ReadError> {
        if let Some(org) = &self.org {
            let current = self.sharings.current(&self.log, org).await?;
            self.sharing = Some(current);
        }
        Ok(())
    }

    /// Follows those who have joined since as well, and returns whether there are any. What was
    /// taken and not sent is then taken again with theirs, so that all of it is sent in order: who
    /// joined before it was stored was found just now.
    async fn follow_newcomers(&mut self) -> Result<bool, FeedError> {
        if let Some(sharing) = &self.sharing
            && self.followed.lacks_any_of(sharing)
        {
            let followed = Followed::positions(&self.log, sharing, self.passed, true).await?;
            self.followed = followed;
            self.taken.clear();
            self.may_have_joined = false;
            self.hold_scan()?;
            return Ok(true);
        }
        self.may_have_joined = false;
        Ok(false)
    }

    /// Returns the event of an entry that is to be sent after so many others; `None` if it is not.
    fn wanted<'i>(&self, item: &'i Item, sent: u64) -> Result<Option<&'i Recorded>, FeedError> {
        if sent == self.left || self.end.is_some_and(|end| item.sequence() > end) {
            return Ok(None);
        }
        match item {
            Item::Event(recorded) => Ok(self.is_sent(recorded).then_some(&**recorded)),
            Item::Undecodable {
                sequence,
                subject,
                reason,
            } if self.might_be_sent(subject) => {
                Err(FeedError::Undecodable(*sequence, reason.clone()))
            }
            Item::Undecodable { .. } => Ok(None),
        }
    }

    fn hold(&mut self, bytes: usize) {
        let gauge = metrics::gauge!("waypost_feed_held_bytes");
        gauge.decrement(amount(self.held));
        gauge.increment(amount(bytes));
        self.held = bytes;
    }

    fn is_sent(&self, recorded: &Recorded) -> bool {
        self.is_asked_for(recorded)
            && self
                .sharing
                .as_ref()
                .is_none_or(|sharing| sharing.sees(recorded, self.clock.now()))
    }

    fn is_asked_for(&self, recorded: &Recorded) -> bool {
        recorded.event.visibility() == Visibility::Public
            && self.query.wants(&recorded.event.name())
    }

    /// Whether an entry that cannot be read may be an event that would have to be sent, judging by
    /// its subject.
    fn might_be_sent(&self, subject: &str) -> bool {
        let Some(kind) = EventLog::kind_of(subject) else {
            return true;
        };
        let id = EventLog::ids_of(subject).and_then(|(_, id)| id.parse().ok());
        match (kind, &self.sharing, id.map(AccountId)) {
            (AggregateType::Track, Some(sharing), Some(person)) => sharing.knows(person),
            _ => self.query.wants_of(kind),
        }
    }

    /// Streams everything as lines.
    pub(super) fn lines(self) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        stream::try_unfold(self, |mut reader| async move {
            while let Some(batch) = reader.next().await? {
                if !batch.is_empty() {
                    return Ok(Some((lines(batch), reader)));
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

fn lines(batch: Vec<FeedLine>) -> Bytes {
    let mut lines = BytesMut::new();
    for FeedLine { line, .. } in batch {
        lines.put_slice(&line);
        lines.put_u8(b'\n');
    }
    lines.freeze()
}
