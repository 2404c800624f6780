//! Group commit: commits that arrive at the same time go out as one atomic batch and share its
//! flush to disk.
//!
//! A single publish costs the server one flush, a batch a few flushes whatever its size. So with
//! few commits on their way each goes out alone, and many go out together. The load decides which,
//! with nothing to configure. Commits that arrive while a batch is in flight fill the next one, and
//! their parties take turns. That batch goes out when it is full or the other has ended: the server
//! is given the next while it writes the first.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use super::AppendError;
use super::load::Load;
use super::sender::{Sender, Verdict, is_late};
use super::turns::Turns;
use super::wire::{BATCH_BYTES, BATCH_MESSAGES, Prepared};

/// Commits that are sent concurrently if each goes alone.
const APART: usize = 32;
/// Commits that are received at once.
const RECEIVED_AT_ONCE: usize = 1_024;
/// Limits of a batch while several parties append: the next commit waits for it.
const SHARED_MESSAGES: usize = 64;
const SHARED_BYTES: usize = BATCH_BYTES / 8;
/// Batches in flight at a time, if waiting commits fill them.
const SIDE_BY_SIDE: usize = 2;
/// How often to check whether commits held back may go on.
const LOOK: Duration = Duration::from_millis(2);

/// A waiting commit, and where its result is sent.
pub(super) struct Pending {
    prepared: Prepared,
    deadline: Instant,
    reply: oneshot::Sender<Result<u64, AppendError>>,
    /// It has met another commit for one of its aggregates, so its expectation is wrong by now
    /// unless that one failed.
    doubtful: bool,
    /// It goes alone: the server refused something about a batch that it was in.
    apart: bool,
    /// Why it was not written when it was last sent, or not sent when it arrived.
    reason: Option<AppendError>,
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
            reason: None,
        }
    }

    /// Whether its caller no longer waits, or only for another moment.
    fn is_over(&self) -> bool {
        self.reply.is_closed() || is_late(self.deadline)
    }

    fn give_up(mut self) {
        let too_many = || AppendError::Unavailable("too many appends are waiting".to_owned());
        let reason = self.reason.take().unwrap_or_else(too_many);
        self.refuse(reason);
    }

    fn refuse(self, reason: AppendError) {
        // It does not matter if the caller is gone.
        let _ = self.reply.send(Err(reason));
    }

    /// Sends the caller the commit's result, or returns the commit if it may be sent again.
    fn hear(mut self, verdict: Verdict) -> Option<Self> {
        let fate = match verdict {
            Verdict::Settled(fate) => fate,
            Verdict::Again { reason, .. } if self.is_over() => Err(reason),
            Verdict::Again { reason, apart } => {
                self.reason = Some(reason);
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
    load: Load,
    turns: Turns<Pending>,
    /// Commits to send again. They go first and without any others: they were just looked up, so
    /// the wrong expectations of others delay them no more than once.
    again: VecDeque<Pending>,
    /// Batches in flight, and lookups for commits that came too late for one.
    under_way: JoinSet<Vec<Pending>>,
    /// The batches among them, and the aggregates that each writes to.
    batches: HashMap<Id, HashSet<u64>>,
    /// Messages of the commits that wait in turns.
    waiting: usize,
}

impl Group {
    pub(super) fn new(sender: Sender, load: Load) -> Self {
        Self {
            sender,
            load,
            turns: Turns::default(),
            again: VecDeque::new(),
            under_way: JoinSet::new(),
            batches: HashMap::new(),
            waiting: 0,
        }
    }

    /// Runs until the stream's [`super::Appender`] is gone.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Pending>) {
        let mut new = Vec::new();
        loop {
            let are_held = self.batches.is_empty() && !self.turns.is_empty();
            tokio::select! {
                () = sleep(LOOK), if are_held => {}
                Some(ended) = self.under_way.join_next_with_id() => self.ended(ended),
                count = waiting.recv_many(&mut new, RECEIVED_AT_ONCE) => {
                    if count == 0 {
                        break;
                    }
                    new.drain(..).for_each(|pending| self.take_in(pending));
                }
            }
            self.dispatch();
        }
    }

    fn take_in(&mut self, mut pending: Pending) {
        let party = pending.prepared.party;
        if !self.load.may_write(party) {
            let time = pending.deadline.saturating_duration_since(Instant::now());
            if self.turns.waiting(party) >= self.load.room(party, time) {
                return pending.refuse(AppendError::HeldBack);
            }
            pending.reason = Some(AppendError::HeldBack);
        }
        let messages = pending.prepared.len();
        match self.turns.push(party, pending) {
            Ok(()) => self.waiting += messages,
            Err(too_many) => too_many.give_up(),
        }
    }

    fn ended(&mut self, ended: Result<(Id, Vec<Pending>), JoinError>) {
        let id = match ended {
            Ok((id, again)) => {
                self.again.extend(again);
                id
            }
            // A task that panicked has dropped its members' replies, so their callers know.
            Err(error) => {
                tracing::error!(%error, "A batch of appends was dropped.");
                error.id()
            }
        };
        self.batches.remove(&id);
    }

    fn dispatch(&mut self) {
        while self.has_room() {
            let mut taken = self.take_again();
            if taken.is_empty() && self.may_take_turns() {
                taken = self.take_in_turns();
            }
            if taken.is_empty() {
                return;
            }
            self.send(taken);
        }
    }

    fn has_room(&self) -> bool {
        self.batches.len() < SIDE_BY_SIDE
    }

    /// Whether the next in turn may go. Beside another batch only a full one may, since fewer
    /// commits get cheaper the longer they wait for more.
    fn may_take_turns(&self) -> bool {
        let is_full = || self.waiting >= BATCH_MESSAGES && !self.load.is_shared();
        self.again.is_empty() && (self.batches.is_empty() || is_full())
    }

    fn send(&mut self, taken: Taken) {
        let Taken {
            members,
            touched,
            doubtful,
            ..
        } = taken;
        if !doubtful.is_empty() {
            self.under_way.spawn(look(self.sender.clone(), doubtful));
        }
        if !members.is_empty() {
            let batch = self.under_way.spawn(carry(self.sender.clone(), members));
            self.batches.insert(batch.id(), touched);
        }
    }

    fn take_again(&mut self) -> Taken {
        let mut taken = Taken::new(BATCH_MESSAGES, BATCH_BYTES);
        let mut staying = VecDeque::new();
        while let Some(next) = self.again.pop_front() {
            match taken.offer(next, &self.batches) {
                Fit::Taken(_) | Fit::Over => {}
                Fit::Stays(pending) => staying.push_back(pending),
                Fit::Full(pending) => {
                    self.again.push_front(pending);
                    break;
                }
            }
        }
        staying.append(&mut self.again);
        self.again = staying;
        taken
    }

    /// Takes commits until one batch is full, the next always from the party that was served least.
    fn take_in_turns(&mut self) -> Taken {
        let mut taken = if self.load.is_shared() {
            Taken::new(SHARED_MESSAGES, SHARED_BYTES)
        } else {
            Taken::new(BATCH_MESSAGES, BATCH_BYTES)
        };
        let mut staying = Vec::new();
        while let Some((party, next)) = self.turns.pop(|party| self.load.may_write(party)) {
            let messages = next.prepared.len();
            match taken.offer(next, &self.batches) {
                Fit::Taken(weight) => {
                    self.waiting -= messages;
                    self.turns.count(party, weight);
                    self.load.wrote(party, weight);
                }
                Fit::Over => self.waiting -= messages,
                Fit::Stays(pending) => staying.push((party, pending)),
                Fit::Full(pending) => {
                    staying.push((party, pending));
                    break;
                }
            }
        }
        self.turns.put_back(staying);
        taken
    }
}

/// The commits sent at one time.
struct Taken {
    /// The members of the batch.
    members: Vec<Pending>,
    /// The aggregates that the batch writes to, by [`Expectation::aggregate`].
    ///
    /// [`Expectation::aggregate`]: super::wire::Expectation::aggregate
    touched: HashSet<u64>,
    /// Commits that met a batch that has ended now. To look them up first costs one round trip. A
    /// wrong expectation would cost a whole batch another attempt.
    doubtful: Vec<Pending>,
    /// The room that is left.
    messages: usize,
    bytes: usize,
}

/// Whether a commit goes out with others.
enum Fit {
    /// It does, and counts for this number of messages.
    Taken(u64),
    /// Its caller no longer waits.
    Over,
    /// Commits for one aggregate never go at the same time, since a later one can only be judged
    /// after the one before. It keeps its place, and others pass it.
    Stays(Pending),
    /// There is no room for it, nor for any after it.
    Full(Pending),
}

impl Taken {
    fn new(messages: usize, bytes: usize) -> Self {
        Self {
            members: Vec::new(),
            touched: HashSet::new(),
            doubtful: Vec::new(),
            messages,
            bytes,
        }
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.doubtful.is_empty()
    }

    fn offer(&mut self, mut next: Pending, under_way: &HashMap<Id, HashSet<u64>>) -> Fit {
        if next.is_over() {
            next.give_up();
            return Fit::Over;
        }
        let weight = next.prepared.weight();
        let aggregates = next.prepared.expectations.iter().map(|e| e.aggregate);
        let is_written = |aggregate| under_way.values().any(|batch| batch.contains(&aggregate));
        if aggregates.clone().any(is_written) {
            next.doubtful = true;
            return Fit::Stays(next);
        } else if next.doubtful {
            self.doubtful.push(next);
        } else if aggregates.clone().any(|a| self.touched.contains(&a)) {
            next.doubtful = true;
            return Fit::Stays(next);
        } else if self.is_full_for(&next) {
            return Fit::Full(next);
        } else {
            self.messages = self.messages.saturating_sub(next.prepared.len());
            self.bytes = self.bytes.saturating_sub(next.prepared.bytes);
            self.touched.extend(aggregates);
            self.members.push(next);
        }
        Fit::Taken(weight)
    }

    /// Whether there is no room for a commit among the members. The first always fits.
    fn is_full_for(&self, next: &Pending) -> bool {
        self.members.first().is_some_and(|first| {
            let full = if first.apart {
                self.members.len() >= APART
            } else {
                next.prepared.len() > self.messages || next.prepared.bytes > self.bytes
            };
            full || first.apart != next.apart
        })
    }
}

/// Sends a batch and reports the results to its members; returns those that may go again.
async fn carry(sender: Sender, mut members: Vec<Pending>) -> Vec<Pending> {
    if members.iter().any(|member| member.apart) {
        let each = members.into_iter().map(|member| carry_one(&sender, member));
        return join_all(each).await.into_iter().flatten().collect();
    }
    let by = latest(&members);
    let mut prepared: Vec<&mut Prepared> = members.iter_mut().map(|m| &mut m.prepared).collect();
    let verdicts = sender.attempt(&mut prepared, by).await;
    tell(members, verdicts)
}

async fn carry_one(sender: &Sender, mut member: Pending) -> Option<Pending> {
    let by = member.deadline;
    let mut verdicts = sender.attempt(&mut [&mut member.prepared], by).await;
    member.hear(verdicts.pop()?)
}

/// Notifies callers that came too late; returns commits that may go.
async fn look(sender: Sender, doubtful: Vec<Pending>) -> Vec<Pending> {
    let by = latest(&doubtful);
    let prepared: Vec<&Prepared> = doubtful.iter().map(|member| &member.prepared).collect();
    let busy = AppendError::Unavailable("the aggregate is busy".to_owned());
    let verdicts = sender.look(&prepared, &busy, false, by).await;
    tell(doubtful, verdicts)
}

/// Until when a caller waits for one of these.
fn latest(members: &[Pending]) -> Instant {
    let deadlines = members.iter().map(|member| member.deadline);
    deadlines.max().unwrap_or_else(Instant::now)
}

fn tell(members: Vec<Pending>, verdicts: Vec<Verdict>) -> Vec<Pending> {
    let heard = members.into_iter().zip(verdicts);
    heard
        .filter_map(|(member, verdict)| member.hear(verdict))
        .collect()
}
