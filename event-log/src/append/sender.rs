//! Sending commits, one or many at once, and finding out what became of them.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, Request};
use tokio::time::Instant;

use super::AppendError;
use super::load::Load;
use super::resolve::{Fate, resolve};
use super::wire::{Outcome, Prepared, Wire, read_answer};
use crate::answer_times::AnswerTimes;
use crate::connection;
use crate::read::{ReadTimeout, StreamReader};
use crate::streams::LogStream;

/// The pause before a commit that was not stored is sent again.
const BACKOFF: Duration = Duration::from_millis(20);

/// With less time than this left, the caller gets the reason instead of another attempt.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// Whether there is no time for another attempt.
pub(super) fn is_late(deadline: Instant) -> bool {
    deadline.saturating_duration_since(Instant::now()) < LAST_MOMENT
}

const ATTEMPTS_FAILED: &str = "waypost_log_attempts_failed_total";

/// Sends to one stream of the log.
#[derive(Clone)]
pub(super) struct Sender {
    client: Client,
    reader: StreamReader,
    load: Load,
    times: AnswerTimes,
}

/// What is known of a commit after an attempt.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The result for its caller.
    Settled(Result<u64, AppendError>),
    /// As far as known it is not in the log, and it may be sent again.
    Again {
        /// The error for its caller if there is no time left.
        reason: AppendError,
        /// It must go alone: the server refused something about its batch.
        apart: bool,
    },
}

impl Sender {
    pub(super) fn new(context: &Context, stream: &LogStream, load: Load) -> Self {
        let reader = StreamReader::new(context, stream);
        // A counter that first appears with its first fault shows no increase to an observer.
        let silence = Outcome::Silence(String::new()).reason();
        metrics::counter!(ATTEMPTS_FAILED, "reason" => silence).absolute(0);
        Self {
            client: context.client(),
            reader,
            load,
            times: AnswerTimes::of_appends(),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends commits as one atomic batch (a lone event as it is) and returns a verdict on each,
    /// which is of use until `by`.
    pub(super) async fn attempt(&self, members: &mut [&mut Prepared], by: Instant) -> Vec<Verdict> {
        if members.is_empty() {
            return Vec::new();
        }
        let asked = Instant::now();
        let timeout = ReadTimeout::of(self.times.timeout_by(by));
        let answer = timeout.wait(&self.client, self.publish(members)).await;
        self.load.answered(asked.elapsed());
        self.times.learn(asked.elapsed());
        let answer = answer.unwrap_or_else(|_| Outcome::Silence("no acknowledgement".to_owned()));
        let members: Vec<&Prepared> = members.iter().map(|member| &**member).collect();
        if let Outcome::Stored(last) = answer {
            return stored(&members, last);
        }
        tracing::debug!(?answer, "An append was not acknowledged.");
        metrics::counter!(ATTEMPTS_FAILED, "reason" => answer.reason()).increment(1);
        let verdicts = self.judge(&members, answer, by).await;
        if verdicts.iter().all(|v| matches!(v, Verdict::Again { .. })) {
            // The cause may be gone a moment later.
            tokio::time::sleep(BACKOFF).await;
        }
        verdicts
    }

    async fn judge(&self, members: &[&Prepared], answer: Outcome, by: Instant) -> Vec<Verdict> {
        let endless = || AppendError::Unavailable("conflicts do not end".to_owned());
        let (reason, apart, for_good) = match answer {
            Outcome::Silence(reason) => (AppendError::Unavailable(reason), false, false),
            Outcome::NotNow(reason) => (AppendError::Unavailable(reason), true, false),
            Outcome::Never(error) => (error, true, members.len() == 1),
            Outcome::Conflict | Outcome::Stored(_) => (endless(), false, false),
        };
        let verdicts = self.look(members, &reason, apart, by).await;
        let last_word = |verdict| match verdict {
            Verdict::Again { reason, .. } if for_good => Verdict::Settled(Err(reason)),
            other => other,
        };
        verdicts.into_iter().map(last_word).collect()
    }

    /// Looks up in the log what became of commits. Those without a trace may be sent again.
    pub(super) async fn look(
        &self,
        members: &[&Prepared],
        reason: &AppendError,
        apart: bool,
        by: Instant,
    ) -> Vec<Verdict> {
        let again = || Verdict::Again {
            reason: reason.clone(),
            apart,
        };
        let verdict = |fate| match fate {
            Some(Fate::Stored(last)) => Verdict::Settled(Ok(last)),
            Some(Fate::Overtaken) => Verdict::Settled(Err(AppendError::Conflict)),
            Some(Fate::Absent) | None => again(),
        };
        let asked = Instant::now();
        let timeout = self.times.timeout_by(by);
        let fates = resolve(&self.reader, members, asked + timeout).await;
        self.times.learn(asked.elapsed());
        fates.into_iter().map(verdict).collect()
    }

    async fn publish(&self, members: &mut [&mut Prepared]) -> Outcome {
        if let Err(reason) = connection::check(&self.client) {
            return Outcome::Silence(reason);
        }
        let mut wires = Vec::new();
        for member in members {
            match member.take_wires() {
                Ok(some) => wires.extend(some),
                Err(error) => return Outcome::Never(error),
            }
        }
        match wires.pop() {
            Some(last) if wires.is_empty() => self.request(last).await,
            Some(last) => self.publish_batch(wires, last).await,
            None => Outcome::NotNow("nothing to append".to_owned()),
        }
    }

    async fn publish_batch(&self, wires: Vec<Wire>, mut last: Wire) -> Outcome {
        let started = Instant::now();
        let inbox = self.client.new_inbox();
        let batch = inbox.rsplit('.').next().unwrap_or(&inbox);
        let size = wires.len() + 1;
        for (place, mut wire) in wires.into_iter().enumerate() {
            wire.place_in_batch(batch, place + 1);
            let Wire {
                subject,
                headers,
                payload,
            } = wire;
            let sent = self.client.publish_with_headers(subject, headers, payload);
            if let Err(error) = sent.await {
                return Outcome::Silence(error.to_string());
            }
        }
        last.place_in_batch(batch, size);
        last.commit_batch();
        let answer = self.request(last).await;
        metrics::histogram!("waypost_log_batch_messages")
            .record(u32::try_from(size).unwrap_or(u32::MAX));
        metrics::histogram!("waypost_log_batch_seconds").record(started.elapsed().as_secs_f64());
        answer
    }

    async fn request(&self, wire: Wire) -> Outcome {
        let request = Request::new()
            .headers(wire.headers)
            .payload(wire.payload)
            .timeout(None);
        match self.client.send_request(wire.subject, request).await {
            Ok(message) => read_answer(&message.payload),
            Err(error) => Outcome::Silence(error.to_string()),
        }
    }
}

/// A batch's messages are consecutive in the stream, up to `last`.
fn stored(members: &[&Prepared], last: u64) -> Vec<Verdict> {
    let total: u64 = members.iter().map(|member| member.messages()).sum();
    let mut place = last.saturating_sub(total);
    let verdict = |member: &&Prepared| {
        place += member.messages();
        Verdict::Settled(Ok(place))
    };
    members.iter().map(verdict).collect()
}
