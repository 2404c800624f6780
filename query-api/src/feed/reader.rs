//! Reads what a caller may know, in order and without gaps.

use std::io;

use bytes::{BufMut as _, Bytes, BytesMut};
use event_log::{EventLog, Item, Position, ReadError, Tail, TailError, VaultError};
use futures::{Stream, stream};
use schemas::{Log, OrgId, Recorded, Visibility};

use super::asked::{Asked, Form};
use super::line::line;
use super::sight::Sight;

/// Events told at a time: enough to be quick, few enough to be flat.
const CHUNK: usize = 500;

/// Why a feed breaks off.
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

impl From<FeedError> for io::Error {
    /// What carries the feed breaks, so that nobody takes a part for the whole.
    fn from(error: FeedError) -> Self {
        tracing::error!(%error, "A feed breaks off");
        Self::other(error)
    }
}

/// One event that was asked for.
pub(super) struct Told {
    pub(super) position: Position,
    pub(super) line: Vec<u8>,
}

/// Follows a feed for one caller.
pub(super) struct Reader {
    log: EventLog,
    tail: Tail,
    /// Who is seen where: of positions alone.
    sight: Option<Sight>,
    asked: Asked,
    /// The last sequence that is told; server-sent events go on for ever.
    end: Option<u64>,
    /// How many may still be told.
    left: u64,
}

impl Reader {
    pub(super) async fn open(
        log: &EventLog,
        feed: Log,
        org: Option<&OrgId>,
        asked: Asked,
    ) -> Result<Self, ReadError> {
        let end = log.end(feed).await?.sequence();
        let (after, end) = match asked.form {
            Form::Lines => (asked.after.unwrap_or(0), Some(end)),
            Form::ServerSent => (asked.after.unwrap_or(end), None),
        };
        let (tail, sight) = match org {
            None => (log.tail(feed, after, &[]).await?, None),
            Some(org) if feed == Log::Locations => {
                let sight = Sight::load(log, org).await?;
                (sight.tail(log, after, end).await?, Some(sight))
            }
            Some(org) => (log.tail_organization(feed, org, after).await?, None),
        };
        Ok(Self {
            log: log.clone(),
            tail,
            sight,
            left: asked.limit.unwrap_or(u64::MAX),
            asked,
            end,
        })
    }

    /// What is told next, which may be nothing of what was read; `None` at the end. Waits for it
    /// where the feed goes on. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Told>>, FeedError> {
        let ended = self
            .end
            .is_some_and(|end| self.tail.caught_up() || self.tail.last_sequence() >= end);
        if ended || self.left == 0 {
            return Ok(None);
        }
        let batch = self.tail.next(CHUNK).await?;
        self.tell(batch.items).await.map(Some)
    }

    async fn tell(&mut self, items: Vec<Item>) -> Result<Vec<Told>, FeedError> {
        if let Some(sight) = &mut self.sight {
            sight.catch_up(&self.log).await?;
        }
        let mut told = Vec::with_capacity(items.len());
        for item in items {
            let recorded = match item {
                Item::Event(recorded) => recorded,
                Item::Undecodable {
                    sequence, reason, ..
                } => return Err(FeedError::Undecodable(sequence, reason)),
            };
            let beyond = self.end.is_some_and(|end| recorded.sequence > end);
            if self.left == 0 || beyond || !self.is_told(&recorded) {
                continue;
            }
            self.left -= 1;
            let feed = recorded.stream.aggregate.log();
            told.push(Told {
                position: self.log.position(feed, recorded.sequence),
                line: line(&self.log, &recorded).await?,
            });
        }
        Ok(told)
    }

    fn is_told(&self, recorded: &Recorded) -> bool {
        recorded.event.visibility() == Visibility::Public
            && self.asked.wants(&recorded.event.name())
            && self.sight.as_ref().is_none_or(|sight| sight.sees(recorded))
    }

    /// All of it as lines.
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

fn lines(told: Vec<Told>) -> Bytes {
    let mut lines = BytesMut::new();
    for Told { line, .. } in told {
        lines.put_slice(&line);
        lines.put_u8(b'\n');
    }
    lines.freeze()
}
