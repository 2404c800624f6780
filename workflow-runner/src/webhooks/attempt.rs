//! The outcome of an attempt, and what follows from it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use schemas::delivery::{Attempted, Message, Outcome};
use schemas::{Event, Recorded};

use super::schedule::Schedule;
use super::work::{Retry, Verdict};

/// Number of bytes of a receiver's response that are kept.
pub(super) const RESPONSE_BYTES: usize = 1_024;

/// A request to a receiver and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// When the attempt began.
    pub(super) at: DateTime<Utc>,
    pub(super) duration: Duration,
    /// The response, or why there was none.
    pub(super) answer: Result<Response, SendError>,
}

/// A receiver's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// The start of the body.
    pub(super) body: Vec<u8>,
    /// The wait that the receiver asks for.
    pub(super) retry_after: Option<Duration>,
}

/// Why there was no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// The connection or the request failed, or timed out; in words for people.
    Failed(String),
    /// Nothing can ever be sent, for instance because the secret was destroyed.
    Impossible(&'static str),
}

const GONE: u16 = 410;

impl Exchange {
    pub(super) fn succeeded(&self) -> bool {
        matches!(&self.answer, Ok(received) if (200..300).contains(&received.status))
    }

    /// Whether the receiver asked to get nothing any more.
    pub(super) fn is_gone(&self) -> bool {
        matches!(&self.answer, Ok(received) if received.status == GONE)
    }

    /// The verdict on the endpoint.
    pub(super) fn verdict(&self) -> Verdict {
        match &self.answer {
            Ok(_) if self.succeeded() => Verdict::Well,
            Ok(received) if matches!(received.status, 429 | 502 | 503 | 504) => {
                Verdict::Overwhelmed
            }
            Ok(_) => Verdict::Badly,
            Err(SendError::Failed(_)) => Verdict::Overwhelmed,
            Err(SendError::Impossible(_)) => Verdict::NotSent,
        }
    }

    fn error(&self) -> Option<String> {
        match &self.answer {
            Ok(_) if self.succeeded() => None,
            Ok(received) if (300..400).contains(&received.status) => Some(format!(
                "the receiver redirects ({}); redirects are not followed",
                received.status
            )),
            Ok(received) => Some(format!("the receiver answered {}", received.status)),
            Err(SendError::Failed(reason)) => Some(reason.clone()),
            Err(SendError::Impossible(reason)) => Some((*reason).to_owned()),
        }
    }

    /// The attempt as an event; `attempt` is its number, and `nth` its number within its round,
    /// which a replay restarts.
    pub(super) fn attempted(
        self,
        message: Message,
        attempt: u32,
        nth: u32,
        schedule: &Schedule,
    ) -> Attempted {
        let outcome = self.outcome(&message, nth, schedule);
        let error = self.error();
        let received = self.answer.ok();
        Attempted {
            message,
            attempt,
            at: self.at,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            status: received.as_ref().map(|received| received.status),
            error,
            response: received.map(|received| readable(&received.body)),
            outcome,
        }
    }

    fn outcome(&self, message: &Message, nth: u32, schedule: &Schedule) -> Outcome {
        let retry_after = match &self.answer {
            Ok(_) if self.succeeded() => return Outcome::Succeeded,
            Ok(_) if self.is_gone() => return Outcome::Failed,
            Ok(received) => received.retry_after,
            Err(SendError::Failed(_)) => None,
            Err(SendError::Impossible(_)) => return Outcome::Failed,
        };
        let wait = schedule.wait(nth, retry_after, luck(message, nth));
        let wait = wait.and_then(|wait| TimeDelta::from_std(self.duration + wait).ok());
        match wait {
            Some(wait) => Outcome::Retrying {
                next_attempt_at: self.at + wait,
            },
            None => Outcome::Failed,
        }
    }
}

/// A number from 0 to 1 that differs between deliveries, and is the same for one attempt.
fn luck(message: &Message, attempt: u32) -> f64 {
    let mut hasher = DefaultHasher::new();
    (message.delivery_id.as_str(), attempt).hash(&mut hasher);
    f64::from((hasher.finish() >> 32) as u32) / f64::from(u32::MAX)
}

/// The start of a response as text that can be stored anywhere.
fn readable(body: &[u8]) -> String {
    let start = &body[..body.len().min(RESPONSE_BYTES)];
    String::from_utf8_lossy(start).replace('\0', "")
}

/// The next attempt of a delivery after an attempt recorded at `recorded`.
pub(super) fn retry(attempted: &Attempted, recorded: u64) -> Option<Retry> {
    match attempted.outcome {
        Outcome::Retrying { next_attempt_at } => Some(Retry {
            due: next_attempt_at,
            attempts: attempted.attempt,
            recorded,
        }),
        Outcome::Succeeded | Outcome::Failed => None,
    }
}

/// The next attempt of a delivery whose last event is `last`.
pub(super) fn pending(last: &Recorded) -> Option<Retry> {
    match &last.event {
        Event::DeliveryAttempted(attempted) => retry(attempted, last.sequence),
        Event::DeliveryQueued(queued) => Some(Retry {
            due: last.time,
            attempts: queued.attempts,
            recorded: last.sequence,
        }),
        _ => None,
    }
}

/// The message that a delivery's event is about, and the number of attempts so far.
pub(super) fn tried(event: &Event) -> Option<(&Message, u32)> {
    match event {
        Event::DeliveryAttempted(attempted) => Some((&attempted.message, attempted.attempt)),
        Event::DeliveryQueued(queued) => Some((&queued.message, queued.attempts)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use schemas::EventId;
    use uuid::Uuid;

    use super::*;

    fn received(status: u16) -> Exchange {
        exchange(Ok(Response {
            status,
            body: b"ok".to_vec(),
            retry_after: None,
        }))
    }

    fn exchange(answer: Result<Response, SendError>) -> Exchange {
        Exchange {
            at: DateTime::UNIX_EPOCH,
            duration: Duration::from_secs(1),
            answer,
        }
    }

    fn attempted(exchange: Exchange, attempt: u32) -> Attempted {
        let message = Message {
            delivery_id: "msg_1".into(),
            webhook_id: "h1".into(),
            event_id: EventId(Uuid::nil()),
            event_sequence: 7,
            event_type: "run.started".to_owned(),
        };
        let schedule = Schedule::new(vec![Duration::from_secs(10)]);
        exchange.attempted(message, attempt, attempt, &schedule)
    }

    #[test]
    fn only_2xx_succeeds() {
        for (status, answer) in [
            (200, Verdict::Well),
            (204, Verdict::Well),
            (301, Verdict::Badly),
            (404, Verdict::Badly),
            (429, Verdict::Overwhelmed),
            (500, Verdict::Badly),
            (503, Verdict::Overwhelmed),
        ] {
            assert_eq!(received(status).verdict(), answer, "{status}");
            let outcome = attempted(received(status), 1).outcome;
            let good = answer == Verdict::Well;
            assert_eq!(outcome == Outcome::Succeeded, good, "{status}");
        }
    }

    #[test]
    fn a_failure_is_tried_again_after_its_end_until_the_schedule_ends() {
        let first = attempted(received(500), 1);
        let retry = retry(&first, 99).unwrap();
        assert!(retry.due >= DateTime::UNIX_EPOCH + TimeDelta::seconds(11));
        assert!(retry.due <= DateTime::UNIX_EPOCH + TimeDelta::seconds(13));
        assert_eq!((retry.attempts, retry.recorded), (1, 99));
        assert_eq!(first.error.as_deref(), Some("the receiver answered 500"));
        assert_eq!(attempted(received(500), 2).outcome, Outcome::Failed);
    }

    #[test]
    fn gone_and_impossible_are_not_tried_again() {
        assert_eq!(attempted(received(410), 1).outcome, Outcome::Failed);
        let impossible = exchange(Err(SendError::Impossible("the secret was destroyed")));
        assert_eq!(impossible.verdict(), Verdict::NotSent);
        assert_eq!(attempted(impossible, 1).outcome, Outcome::Failed);
    }

    #[test]
    fn a_redirect_is_explained() {
        let error = attempted(received(302), 1).error.unwrap();
        assert!(error.contains("not followed"), "{error}");
    }

    #[test]
    fn only_the_start_of_an_answer_is_kept_and_only_text() {
        let mut exchange = received(200);
        if let Ok(received) = &mut exchange.answer {
            received.body = [vec![0], vec![b'x'; 5_000]].concat();
        }
        let response = attempted(exchange, 1).response.unwrap();
        assert_eq!(response, "x".repeat(RESPONSE_BYTES - 1));
    }
}
