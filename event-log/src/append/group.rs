//! Group commit: commits that come at the same time go out as one atomic batch and share its
//! flush to disk.
//!
//! A single publish costs the server one flush, a batch a few flushes whatever its size. So few
//! waiting commits go out each on its own and at once, many go out together; which of the two it
//! is follows from the load, with nothing to configure.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, Request, Subject};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::AppendError;
use super::appender::Pending;
use super::resolve::{Fate, resolve};
use super::wire::{Answer, BATCH_BYTES, BATCH_MESSAGES, read_answer};
use crate::read::StreamReader;
use crate::streams::LogStream;

/// With this many commits on their way, batches are cheaper than single publishes.
const BATCH_WORTH: usize = 20;
/// Batches under way at once: while the server flushes one, the next is on its way.
const MAX_BATCHES: usize = 2;
/// How long an acknowledgement is awaited before asking what became of it.
const ATTEMPT: Duration = Duration::from_millis(700);
/// The pause before a refused commit is tried again.
const BACKOFF: Duration = Duration::from_millis(20);

/// Gathers and sends the commits of one stream of the log.
pub(super) struct Group {
    sender: Sender,
    queue: VecDeque<Pending>,
    under_way: JoinSet<Done>,
    /// Commits sent and not yet settled.
    in_flight: usize,
    /// Batches among them.
    batches: usize,
}

/// What sending needs, shared by all that are under way.
#[derive(Clone)]
struct Sender {
    client: Client,
    reader: StreamReader,
}

/// A single or a batch that has ended, with the members that must go again.
struct Done {
    commits: usize,
    batch: bool,
    again: Vec<Pending>,
}

impl Group {
    pub(super) fn new(client: Client, stream: &LogStream) -> Self {
        let reader = StreamReader::new(client.clone(), stream);
        Self {
            sender: Sender { client, reader },
            queue: VecDeque::new(),
            under_way: JoinSet::new(),
            in_flight: 0,
            batches: 0,
        }
    }

    /// Runs until every [`super::Appender`] of the stream is gone.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Pending>) {
        loop {
            tokio::select! {
                Some(done) = self.under_way.join_next() => self.ended(done),
                next = waiting.recv() => match next {
                    Some(pending) => self.queue.push_back(pending),
                    None => break,
                },
            }
            while let Ok(pending) = waiting.try_recv() {
                self.queue.push_back(pending);
            }
            self.dispatch();
        }
    }

    fn ended(&mut self, done: Result<Done, tokio::task::JoinError>) {
        // A task that panicked has dropped its members' replies, so their callers know.
        let Ok(done) = done else { return };
        self.in_flight -= done.commits;
        self.batches -= usize::from(done.batch);
        for pending in done.again.into_iter().rev() {
            self.queue.push_front(pending);
        }
    }

    fn dispatch(&mut self) {
        while let Some(front) = self.queue.front() {
            let alone = front.prepared.messages.len() == 1;
            if alone && self.in_flight + self.queue.len() < BATCH_WORTH {
                self.send_one();
            } else if self.batches < MAX_BATCHES && self.gathered() {
                self.send_many();
            } else {
                return;
            }
        }
    }

    /// Whether enough wait for the next batch: a fair share of all that is on its way, so that
    /// callers who come back from one batch fill the next instead of going out in driblets.
    fn gathered(&self) -> bool {
        let waiting = self.queue.len();
        let all = self.in_flight + waiting;
        self.in_flight == 0 || waiting >= BATCH_MESSAGES || waiting * 5 >= all * 2
    }

    fn send_one(&mut self) {
        let Some(single) = self.queue.pop_front() else {
            return;
        };
        self.in_flight += 1;
        self.under_way
            .spawn(self.sender.clone().send_single(single));
    }

    fn send_many(&mut self) {
        let members = self.take_batch();
        self.batches += 1;
        self.in_flight += members.len();
        self.under_way
            .spawn(self.sender.clone().send_batch(members));
    }

    /// Takes commits from the front as far as one batch reaches. Two that touch one aggregate do
    /// not go together: the second's expectation can only be judged after the first.
    fn take_batch(&mut self) -> Vec<Pending> {
        let (mut messages, mut bytes) = (0, 0);
        let mut touched: HashSet<String> = HashSet::new();
        let mut members = Vec::new();
        while let Some(next) = self.queue.front() {
            messages += next.prepared.messages.len();
            bytes += next.prepared.bytes;
            let full = messages > BATCH_MESSAGES || bytes > BATCH_BYTES;
            let mut aggregates = next
                .prepared
                .expectations
                .iter()
                .map(|e| e.subject.as_str());
            let meets = aggregates.any(|subject| touched.contains(subject));
            if !members.is_empty() && (full || meets) {
                break;
            }
            let Some(next) = self.queue.pop_front() else {
                break;
            };
            touched.extend(
                next.prepared
                    .expectations
                    .iter()
                    .map(|e| e.subject.to_string()),
            );
            members.push(next);
        }
        members
    }
}

impl Sender {
    async fn send_single(self, pending: Pending) -> Done {
        let wire = &pending.prepared.messages[0];
        let request = self.request(&wire.subject, wire.single_headers(), wire.payload.clone());
        let answer = request.await;
        let again = self.settle(vec![pending], answer).await;
        Done {
            commits: 1,
            batch: false,
            again,
        }
    }

    async fn send_batch(self, members: Vec<Pending>) -> Done {
        let started = Instant::now();
        let messages: usize = members.iter().map(|m| m.prepared.messages.len()).sum();
        let commits = members.len();
        let answer = self.publish_batch(&members, messages).await;
        let size = u32::try_from(messages).unwrap_or(u32::MAX);
        metrics::histogram!("waypost_log_batch_messages").record(size);
        metrics::histogram!("waypost_log_batch_seconds").record(started.elapsed().as_secs_f64());
        let again = self.settle(members, answer).await;
        Done {
            commits,
            batch: true,
            again,
        }
    }

    async fn publish_batch(&self, members: &[Pending], total: usize) -> Answer {
        let batch = self.client.new_inbox();
        let batch = batch.rsplit('.').next().unwrap_or(&batch);
        let wires = members.iter().flat_map(|member| &member.prepared.messages);
        for (place, wire) in wires.enumerate() {
            let last = place + 1 == total;
            let headers = wire.batch_headers(batch, place + 1, last);
            let (subject, payload) = (wire.subject.clone(), wire.payload.clone());
            if last {
                return self.request(&subject, headers, payload).await;
            }
            let sent = self
                .client
                .publish_with_headers(subject, headers, payload)
                .await;
            if let Err(error) = sent {
                return Answer::Refused(error.to_string());
            }
        }
        Answer::Refused("an empty batch".to_owned())
    }

    async fn request(
        &self,
        subject: &Subject,
        headers: HeaderMap,
        payload: bytes::Bytes,
    ) -> Answer {
        let request = Request::new()
            .headers(headers)
            .payload(payload)
            .timeout(Some(ATTEMPT));
        let answer: Result<Message, _> = self.client.send_request(subject.clone(), request).await;
        match answer {
            Ok(message) => read_answer(&message),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// Tells members their fate; those whose events are surely not there go again.
    async fn settle(&self, members: Vec<Pending>, answer: Answer) -> Vec<Pending> {
        let reason = match answer {
            Answer::Stored(last) => {
                stored(members, last);
                return Vec::new();
            }
            Answer::Conflict => "conflicts do not end".to_owned(),
            Answer::Refused(reason) => {
                tracing::debug!(
                    reason,
                    "an append was not acknowledged, looking what became of it"
                );
                tokio::time::sleep(BACKOFF).await;
                reason
            }
        };
        let fates = match resolve(&self.reader, &members).await {
            Ok(fates) => fates,
            Err(error) => return wait_or_give_up(members, &error.to_string()),
        };
        let mut again = Vec::new();
        for (member, fate) in members.into_iter().zip(fates) {
            match fate {
                Fate::Stored(last) => member.answer(Ok(last)),
                Fate::Overtaken => member.answer(Err(AppendError::Conflict)),
                Fate::Absent => again.push(member),
            }
        }
        wait_or_give_up(again, &reason)
    }
}

/// Members whose time is up are told so; the others may go again.
fn wait_or_give_up(members: Vec<Pending>, reason: &str) -> Vec<Pending> {
    let now = Instant::now();
    let (late, again): (Vec<_>, Vec<_>) = members
        .into_iter()
        .partition(|member| member.deadline <= now);
    for member in late {
        member.answer(Err(AppendError::Unavailable(reason.to_owned())));
    }
    again
}

/// A batch's messages stand in the stream one behind the other, up to `last`.
fn stored(members: Vec<Pending>, last: u64) {
    let mut behind = 0;
    for member in members.into_iter().rev() {
        let messages = member.prepared.messages.len() as u64;
        member.answer(Ok(last - behind));
        behind += messages;
    }
}
