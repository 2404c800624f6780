//! Following a whole stream of the log, together with the other followers in this process.

use std::sync::Arc;
use std::time::Duration;

use schemas::{AggregateType, Log};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::batch::Batch;
use crate::mark::Mark;
use crate::shared::{Share, SharedStream, Taken};
use crate::tail::Tail;
use crate::{EventLog, ReadError, TailError};

/// How long a follower may take to reach an end of the log before checking whether it can.
const COMING: Duration = Duration::from_millis(250);

/// Follows a stream of the log: with its own tail up to the end, and from there with what the
/// process reads once for all of its followers.
pub struct Follower {
    log: EventLog,
    stream: Arc<SharedStream>,
    feed: Log,
    /// If it names any, events of other kinds are left out.
    only: Vec<AggregateType>,
    /// The last event taken.
    last: Mark,
    /// Events that wait after it in the log.
    pending: u64,
    source: Source,
}

enum Source {
    Own(Box<Tail>),
    Shared(Share),
}

impl EventLog {
    /// Follows a whole stream of the log after the sequence `after` (0: from the first event), and
    /// returns the events of some kinds of aggregate if `only` names any. It sees every hole,
    /// including those between other kinds.
    pub async fn follow(
        &self,
        feed: Log,
        after: u64,
        only: &[AggregateType],
    ) -> Result<Follower, ReadError> {
        let tail = self.tail(feed, after, &[]).await?;
        Ok(Follower {
            log: self.clone(),
            stream: Arc::clone(self.followed(feed)),
            feed,
            only: only.to_vec(),
            last: Mark::at(after),
            pending: tail.pending(),
            source: Source::Own(Box::new(tail)),
        })
    }

    /// Waits until a follower of a whole stream, which reports the last sequence that it has
    /// `taken`, has reached `end`, or until nothing is left in between: what was erased before it
    /// was taken reaches no follower.
    pub async fn until_taken(&self, feed: Log, mut taken: watch::Receiver<u64>, end: u64) {
        // A follower that no longer reports is not waited for.
        while timeout(COMING, taken.wait_for(|taken| *taken >= end))
            .await
            .is_err()
        {
            let taken = *taken.borrow();
            let none = self.reader(feed).has_none_between(&[], taken, end).await;
            // While the log does not answer, the events may still arrive.
            if none.is_ok_and(|none| none) {
                return;
            }
        }
    }
}

impl Follower {
    /// Waits for an event, then takes what is ready, up to `max` events. The batch is empty if
    /// these are of other kinds only, or if the log turns out to have no more meanwhile.
    ///
    /// Recovers from faults of the server and the connection. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// If events are missing that nobody deleted: continuing would hide a loss.
    pub async fn next(&mut self, max: usize) -> Result<Batch, TailError> {
        let max = max.max(1);
        let mut batch = loop {
            self.share_at_the_end();
            match &mut self.source {
                Source::Own(tail) => {
                    let batch = tail.next(max).await?;
                    self.pending = tail.pending();
                    break batch;
                }
                Source::Shared(share) => match share.take(self.last.sequence, max) {
                    Taken::Events(batch, pending) => {
                        self.pending = pending;
                        break batch;
                    }
                    Taken::Nothing(0) if self.pending > 0 => {
                        self.pending = 0;
                        return Ok(Batch::end(self.last));
                    }
                    Taken::Nothing(_) => share.changed().await,
                    Taken::Gone => {
                        let tail = self.log.tail_later(self.feed, self.last);
                        self.source = Source::Own(Box::new(tail));
                    }
                },
            }
        };
        self.last = batch.mark();
        if !self.only.is_empty() {
            let only = &self.only;
            batch.items.retain(|item| item.is_of(only));
        }
        Ok(batch)
    }

    /// The sequence of the last event taken.
    pub fn last_sequence(&self) -> u64 {
        self.last.sequence
    }

    /// How many events waited after the last one taken, when the server last reported.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Whether none did, and the leader had none at some time since this began to follow; true at
    /// once for one that starts at the end.
    pub fn caught_up(&self) -> bool {
        self.pending == 0
    }

    fn share_at_the_end(&mut self) {
        if let Source::Own(tail) = &self.source
            && tail.caught_up()
            && let Some(share) = self.stream.join(self.last.sequence, || {
                self.log.tail_later(self.feed, self.last)
            })
        {
            self.source = Source::Shared(share);
        }
    }
}
