//! Carries out an owner's requests: finds the deliveries that a request is about, page by page, and
//! queues each by appending an event.
//!
//! **Once.** That event is appended right after the delivery's last one. An event after the end
//! that the deliveries' log had at the time of the request was written by the request itself or is
//! as good. So a process that repeats the request, after a crash or alongside another process,
//! queues nothing twice and finds what still waits.

mod selection;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use event_log::{AppendError, Commit, Expected, ReadError, Write};
use schemas::delivery::{Outcome, Queued};
use schemas::webhook::Replay;
use schemas::{AggregateType, Context, Event, EventId, Log, NewEvent, Recorded, WebhookId};
use tokio::time::sleep;
use uuid::Uuid;

use super::attempt;
use super::directory::Endpoint;
use super::payload::Payload;
use super::requests::RequestCursor;
use super::sender::{Sender, TOO_OLD};
use super::work::Retry;
use selection::Candidate;

/// Number of endpoint events read at a time.
const PAGE: usize = 100;
/// Pause before deliveries are retried that others write to or that the log did not accept.
const AGAIN: Duration = Duration::from_millis(50);

/// Continues an endpoint's requests.
pub(super) struct Replayer {
    pub(super) sender: Arc<Sender>,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) place: RequestCursor,
    /// The sequence up to which requests are known.
    pub(super) asked: u64,
    /// The queue has made the first attempts of the events it wants up to here, and makes the later
    /// ones.
    pub(super) first_attempts: u64,
}

/// The progress of a replay.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) place: RequestCursor,
    /// Deliveries that wait for an attempt, by the sequences of their events.
    pub(super) waiting: Vec<(u64, Retry)>,
    /// Some of their events, encoded.
    pub(super) payloads: Vec<Arc<Payload>>,
}

/// A request by the endpoint's owner.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) sequence: u64,
    pub(super) id: EventId,
    pub(super) what: What,
    /// The end of the deliveries' log at the time of the request.
    pub(super) attempts_through: u64,
    at: DateTime<Utc>,
    context: Context,
}

/// The kind of a request.
#[derive(Debug)]
pub(super) enum What {
    /// Replay of deliveries.
    Replay(Replay),
    /// A delivery that only tests the endpoint.
    Test,
}

/// What happens to a delivery that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is queued after its last event, with the number of attempts so far.
    Queue(Expected, u32),
    /// It is already waiting.
    Waits(Retry),
    /// It has ended since, and this request may or may not have caused that.
    Ended,
    /// It is not selected, or was sent since.
    Leave,
}

impl Request {
    fn of(recorded: &Recorded, webhook: &WebhookId) -> Option<Self> {
        let (id, what, attempts_through) = match &recorded.event {
            Event::WebhookReplayRequested(asked) => {
                let what = What::Replay(asked.replay.clone());
                (&asked.id, what, asked.attempts_through)
            }
            // The test's own delivery cannot have had earlier events.
            Event::WebhookTestRequested(asked) => (&asked.id, What::Test, 0),
            _ => return None,
        };
        (id == webhook).then(|| Self {
            sequence: recorded.sequence,
            id: recorded.id,
            what,
            attempts_through,
            at: recorded.time,
            context: Context::caused_by(recorded),
        })
    }

    fn judge(&self, candidate: &Candidate) -> Fate {
        let Some(last) = &candidate.last else {
            return Fate::Queue(Expected::Empty, 0);
        };
        let failed_at = candidate.failed_at;
        if last.sequence <= self.attempts_through {
            let attempts = attempt::tried(&last.event).map_or(0, |(_, attempts)| attempts);
            let is_meant = failed_at.is_none_or(|failed| failed == last.sequence);
            return if is_meant {
                Fate::Queue(Expected::At(last.sequence), attempts)
            } else {
                Fate::Leave
            };
        }
        if let Some(retry) = attempt::pending(last) {
            return Fate::Waits(retry);
        }
        match &last.event {
            Event::DeliveryAttempted(last) if last.outcome == Outcome::Failed => {
                // Its last attempt may have begun before the request.
                failed_at.map_or(Fate::Ended, |_| Fate::Leave)
            }
            _ => Fate::Leave,
        }
    }
}

impl Replayer {
    /// Performs one step.
    pub(super) async fn replay(&self) -> Result<Replayed, ReadError> {
        let over = |place| Replayed {
            place,
            waiting: Vec::new(),
            payloads: Vec::new(),
        };
        let Some(request) = self.next_request().await? else {
            return Ok(over(RequestCursor::behind(self.asked)));
        };
        let is_begun = self.place.cursor > 0;
        if !is_begun && self.sender.clock.now() - request.at > TOO_OLD {
            // As with events that were not tried for so long.
            return Ok(over(RequestCursor::behind(request.sequence)));
        }
        let found = self.find(&request).await?;
        let waiting = self.queue(&request, found.candidates).await?;
        let place = match found.rest {
            Some(cursor) => RequestCursor {
                cursor,
                ..self.place
            },
            None => RequestCursor::behind(request.sequence),
        };
        Ok(Replayed {
            place,
            waiting,
            payloads: found.payloads,
        })
    }

    async fn next_request(&self) -> Result<Option<Request>, ReadError> {
        let (log, org, id) = (&self.sender.log, &self.endpoint.org, &self.endpoint.id);
        let mut after = self.place.done;
        loop {
            let only = Some(AggregateType::Webhook);
            let page = log
                .catch_up()
                .page(Log::Events, org, only, after, PAGE)
                .await?;
            if let Some(request) = page.events().find_map(|event| Request::of(event, id)) {
                return Ok(Some(request));
            }
            if page.complete {
                return Ok(None);
            }
            after = page.through;
        }
    }

    /// Queues the candidates that are to be sent; returns all that wait for an attempt now.
    async fn queue(
        &self,
        request: &Request,
        mut open: Vec<Candidate>,
    ) -> Result<Vec<(u64, Retry)>, ReadError> {
        let mut waiting = Vec::with_capacity(open.len());
        loop {
            let (mut asked, mut commits) = (Vec::new(), Vec::new());
            for candidate in std::mem::take(&mut open) {
                let sequence = candidate.message.event_sequence;
                match self.fate(request, &candidate).await? {
                    Fate::Queue(expected, attempts) => {
                        let (commit, due) = self.queued(request, &candidate, expected, attempts);
                        commits.push(commit);
                        asked.push((candidate, due, attempts));
                    }
                    Fate::Waits(retry) => waiting.push((sequence, retry)),
                    Fate::Ended | Fate::Leave => {}
                }
            }
            let appended = self.sender.log.commit_each(commits).await;
            for ((candidate, due, attempts), appended) in asked.into_iter().zip(appended) {
                match appended {
                    Ok(position) => {
                        let retry = Retry {
                            due,
                            attempts,
                            recorded: position.sequence(),
                        };
                        waiting.push((candidate.message.event_sequence, retry));
                    }
                    Err(error) if error == AppendError::Conflict || error.passes() => {
                        open.push(candidate);
                    }
                    Err(error) => {
                        tracing::error!(%error, stream = %candidate.stream, "A delivery cannot be queued");
                    }
                }
            }
            if open.is_empty() {
                return Ok(waiting);
            }
            // Another writer appended to them, or our own append has an unknown result: their
            // events show it.
            sleep(AGAIN).await;
            self.look_up(&mut open).await?;
        }
    }

    async fn fate(&self, request: &Request, candidate: &Candidate) -> Result<Fate, ReadError> {
        let fate = request.judge(candidate);
        let (Fate::Ended, Some(last)) = (fate, &candidate.last) else {
            return Ok(fate);
        };
        let events = self.sender.log.load(&candidate.stream).await?;
        let is_ours = |recorded: &Recorded| match &recorded.event {
            Event::DeliveryQueued(queued) => queued.request_id == request.id,
            _ => false,
        };
        if events.iter().any(is_ours) {
            return Ok(Fate::Leave);
        }
        let attempts = attempt::tried(&last.event).map_or(0, |(_, attempts)| attempts);
        Ok(Fate::Queue(Expected::At(last.sequence), attempts))
    }

    fn queued(
        &self,
        request: &Request,
        candidate: &Candidate,
        expected: Expected,
        attempts: u32,
    ) -> (Commit, DateTime<Utc>) {
        let now = self.sender.clock.now();
        let queued = Queued {
            message: candidate.message.clone(),
            request_id: request.id,
            attempts,
        };
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: now,
            event: Event::DeliveryQueued(queued),
            context: request.context.clone(),
            receipt: None,
        };
        let write = Write {
            stream: candidate.stream.clone(),
            expected,
            events: vec![event],
        };
        (write.into(), now)
    }
}

#[cfg(test)]
mod tests {
    use schemas::delivery::Message;
    use schemas::{OrgId, StreamId};

    use super::*;

    const ASKED: u64 = 10;

    fn candidate(sequence: u64, event: fn(Message) -> Event) -> Candidate {
        let message = Message {
            delivery_id: "msg_1".into(),
            webhook_id: "h1".into(),
            event_id: EventId(Uuid::nil()),
            event_sequence: 7,
            event_type: "run.started".to_owned(),
        };
        let stream = StreamId::new(&OrgId::from("o1"), AggregateType::Delivery, "msg_1");
        let last = Recorded {
            sequence,
            stream: stream.clone(),
            id: EventId(Uuid::nil()),
            time: DateTime::UNIX_EPOCH,
            event: event(message.clone()),
            context: Context::default(),
            receipt: None,
        };
        Candidate {
            stream,
            message,
            last: Some(last),
            failed_at: None,
        }
    }

    fn queued(message: Message) -> Event {
        Event::DeliveryQueued(Queued {
            message,
            request_id: EventId(Uuid::nil()),
            attempts: 3,
        })
    }

    fn fate(candidate: &Candidate) -> Fate {
        let request = Request {
            sequence: 5,
            id: EventId(Uuid::nil()),
            what: What::Replay(Replay::Failed),
            attempts_through: ASKED,
            at: DateTime::UNIX_EPOCH,
            context: Context::default(),
        };
        request.judge(candidate)
    }

    #[test]
    fn only_what_stood_before_it_was_asked_is_queued() {
        let before = candidate(ASKED, queued);
        assert_eq!(fate(&before), Fate::Queue(Expected::At(ASKED), 3));
        let since = candidate(ASKED + 1, queued);
        assert!(matches!(fate(&since), Fate::Waits(retry) if retry.recorded == ASKED + 1));
        let untried = Candidate {
            last: None,
            ..candidate(1, queued)
        };
        assert_eq!(fate(&untried), Fate::Queue(Expected::Empty, 0));
        let failed_earlier = Candidate {
            failed_at: Some(ASKED - 1),
            ..candidate(ASKED, queued)
        };
        assert_eq!(fate(&failed_earlier), Fate::Leave);
    }
}
