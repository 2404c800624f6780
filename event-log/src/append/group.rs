//! Group commit: commits that come at the same time go out as one atomic batch and share its
//! flush to disk.
//!
//! A single publish costs the server one flush, a batch a few flushes whatever its size. So where
//! few commits are on their way each goes out on its own, and many go out together; which of the
//! two it is follows from the load, with nothing to configure. One batch is under way at a time:
//! whoever comes meanwhile fills the next one.

use std::collections::{HashSet, VecDeque};

use futures::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::AppendError;
use super::sender::{Sender, Verdict, is_late};
use super::wire::{BATCH_BYTES, BATCH_MESSAGES, Prepared};

/// Commits that are sent side by side where they go each by itself.
const APART: usize = 32;
/// Commits that may wait here; further ones wait where they come from.
const QUEUE: usize = 8_192;

/// A commit that waits, and where its fate is told.
pub(super) struct Pending {
    prepared: Prepared,
    deadline: Instant,
    reply: oneshot::Sender<Result<u64, AppendError>>,
    /// It has met another commit for one of its aggregates, so its expectation is wrong by now
    /// unless that one failed.
    doubtful: bool,
    /// It goes by itself: the server refused something about a batch that it was in.
    apart: bool,
}

impl Pending {
    pub(super) fn new(
        prepared: Prepared,
        deadline: Instant,
        reply: oneshot::Sender<Result<u64, AppendError>>,
    ) -> Self {
        Self {
            prepared,
            deadline,
            reply,
            doubtful: false,
            apart: false,
        }
    }

    /// Whether nobody waits for it any more, or only for another moment.
    fn is_over(&self) -> bool {
        self.reply.is_closed() || is_late(self.deadline)
    }

    fn give_up(self) {
        let reason = AppendError::Unavailable("too many appends are waiting".to_owned());
        // A caller that has gone away is nobody's concern.
        let _ = self.reply.send(Err(reason));
    }

    /// Tells the caller its commit's fate, or gives the commit back if it may go again.
    fn hear(mut self, verdict: Verdict) -> Option<Self> {
        let fate = match verdict {
            Verdict::Settled(fate) => fate,
            Verdict::Again { reason, .. } if self.is_over() => Err(reason),
            Verdict::Again { apart, .. } => {
                self.apart |= apart;
                self.doubtful = false;
                return Some(self);
            }
        };
        let _ = self.reply.send(fate);
        None
    }
}

/// Gathers and sends the commits of one stream of the log.
pub(super) struct Group {
    sender: Sender,
    queue: VecDeque<Pending>,
    /// The batch under way, and questions about what came too late for one.
    under_way: JoinSet<Vec<Pending>>,
    batch: Option<Id>,
}

impl Group {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            sender,
            queue: VecDeque::new(),
            under_way: JoinSet::new(),
            batch: None,
        }
    }

    /// Runs until the stream's [`super::Appender`] is gone.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Pending>) {
        let mut new = Vec::new();
        loop {
            let room = QUEUE.saturating_sub(self.queue.len());
            tokio::select! {
                Some(ended) = self.under_way.join_next_with_id() => self.ended(ended),
                count = waiting.recv_many(&mut new, room), if room > 0 => {
                    if count == 0 {
                        break;
                    }
                    self.queue.extend(new.drain(..));
                }
            }
            self.dispatch();
        }
    }

    fn ended(&mut self, ended: Result<(Id, Vec<Pending>), JoinError>) {
        let id = match ended {
            Ok((id, again)) => {
                for pending in again.into_iter().rev() {
                    self.queue.push_front(pending);
                }
                id
            }
            // A task that panicked has dropped its members' replies, so their callers know.
            Err(error) => {
                tracing::error!(%error, "A batch of appends was dropped.");
                error.id()
            }
        };
        self.batch.take_if(|batch| *batch == id);
    }

    fn dispatch(&mut self) {
        if self.batch.is_some() || self.queue.is_empty() {
            return;
        }
        let Taken {
            members, doubtful, ..
        } = self.take();
        if !doubtful.is_empty() {
            self.under_way.spawn(look(self.sender.clone(), doubtful));
        }
        if !members.is_empty() {
            let batch = self.under_way.spawn(carry(self.sender.clone(), members));
            self.batch = Some(batch.id());
        }
    }

    /// Takes commits from the front as far as one batch reaches. Commits for one aggregate never
    /// go at the same time, since a later one can only be judged after the one before: it stays
    /// in its place, and others pass it.
    fn take(&mut self) -> Taken {
        let (mut taken, mut staying) = (Taken::default(), VecDeque::new());
        let (mut messages, mut bytes) = (0, 0);
        while let Some(mut next) = self.queue.pop_front() {
            if next.is_over() {
                next.give_up();
                continue;
            }
            let aggregates = next.prepared.expectations.iter().map(|e| e.aggregate);
            if next.doubtful {
                taken.doubtful.push(next);
            } else if aggregates.clone().any(|a| taken.touched.contains(&a)) {
                next.doubtful = true;
                staying.push_back(next);
            } else {
                messages += next.prepared.len();
                bytes += next.prepared.bytes;
                if taken.is_full(&next, messages, bytes) {
                    self.queue.push_front(next);
                    break;
                }
                taken.touched.extend(aggregates);
                taken.members.push(next);
            }
        }
        staying.append(&mut self.queue);
        self.queue = staying;
        taken
    }
}

/// What goes from the queue at one time.
#[derive(Default)]
struct Taken {
    /// What makes up a batch.
    members: Vec<Pending>,
    /// The aggregates that the batch writes to, by [`Expectation::aggregate`].
    ///
    /// [`Expectation::aggregate`]: super::wire::Expectation::aggregate
    touched: HashSet<u64>,
    /// What has met a batch that has ended now. To look first costs one round trip; a wrong
    /// expectation would cost a whole batch another attempt.
    doubtful: Vec<Pending>,
}

impl Taken {
    /// Whether `next`, with which it would have so many messages and bytes, has no place in it.
    /// The first always has one.
    fn is_full(&self, next: &Pending, messages: usize, bytes: usize) -> bool {
        self.members.first().is_some_and(|first| {
            let full = if first.apart {
                self.members.len() >= APART
            } else {
                messages > BATCH_MESSAGES || bytes > BATCH_BYTES
            };
            full || first.apart != next.apart
        })
    }
}

/// Sends a batch and tells its members their fate; gives back those that may go again.
async fn carry(sender: Sender, mut members: Vec<Pending>) -> Vec<Pending> {
    if members.iter().any(|member| member.apart) {
        let each = members.into_iter().map(|member| carry_one(&sender, member));
        return join_all(each).await.into_iter().flatten().collect();
    }
    let mut prepared: Vec<&mut Prepared> = members.iter_mut().map(|m| &mut m.prepared).collect();
    let verdicts = sender.attempt(&mut prepared).await;
    tell(members, verdicts)
}

async fn carry_one(sender: &Sender, mut member: Pending) -> Option<Pending> {
    let verdict = sender.attempt(&mut [&mut member.prepared]).await.pop()?;
    member.hear(verdict)
}

/// Tells those who came too late; gives back those that may go.
async fn look(sender: Sender, doubtful: Vec<Pending>) -> Vec<Pending> {
    let prepared: Vec<&Prepared> = doubtful.iter().map(|member| &member.prepared).collect();
    let busy = AppendError::Unavailable("the aggregate is busy".to_owned());
    let verdicts = sender.look(&prepared, &busy, false).await;
    tell(doubtful, verdicts)
}

fn tell(members: Vec<Pending>, verdicts: Vec<Verdict>) -> Vec<Pending> {
    let heard = members.into_iter().zip(verdicts);
    heard
        .filter_map(|(member, verdict)| member.hear(verdict))
        .collect()
}
