//! Finds the deliveries that a request is about, one page of the log at a time.

use std::sync::Arc;

use domain::webhook::any_matches;
use event_log::ReadError;
use schemas::delivery::{Message, Outcome};
use schemas::webhook::{Replay, ReplayFeed};
use schemas::{AggregateType, DeliveryId, Event, EventId, Log, Recorded, StreamId, Visibility};

use super::super::attempt;
use super::super::feed::{self, Feed};
use super::super::payload::{ENCODED_BYTES, Payload, TEST};
use super::super::sender::TOO_OLD;
use super::{Replayer, Request, What};

/// Events read at a time.
const PAGE: usize = 1_000;

/// A delivery that a request may be about.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) stream: StreamId,
    pub(super) message: Message,
    /// Its last event.
    pub(super) last: Option<Recorded>,
    /// The event that recorded its failure, if it was selected as failed.
    pub(super) failed_at: Option<u64>,
}

/// A page of results.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    /// Where to continue; `None` if this was all.
    pub(super) rest: Option<u64>,
    /// Some of the events, encoded.
    pub(super) payloads: Vec<Arc<Payload>>,
}

impl Replayer {
    /// The next deliveries that a request is about. Requests about the other stream of the log are
    /// handled by the other dispatcher.
    pub(super) async fn find(&self, request: &Request) -> Result<Found, ReadError> {
        let candidates = match &request.what {
            What::Test => self.find_test(request).await?,
            What::Replay(Replay::Delivery { delivery_id }) => self.find_one(delivery_id).await?,
            What::Replay(Replay::Failed) => return self.find_failed(request).await,
            What::Replay(Replay::Events {
                feed,
                after,
                through,
                types,
            }) if feed_of(*feed) == self.sender.feed => {
                return self.find_events((*after, *through), types).await;
            }
            What::Replay(Replay::Events { .. }) => None,
        };
        Ok(Found {
            candidates: candidates.into_iter().collect(),
            ..Found::default()
        })
    }

    async fn find_test(&self, request: &Request) -> Result<Option<Candidate>, ReadError> {
        if self.sender.feed != Feed::Events {
            return Ok(None);
        }
        let mut candidate = self.candidate(request.id, request.sequence, TEST.to_owned());
        candidate.last = self.sender.log.last(&candidate.stream).await?;
        Ok(Some(candidate))
    }

    async fn find_one(&self, delivery: &DeliveryId) -> Result<Option<Candidate>, ReadError> {
        let stream = self.stream(delivery);
        let last = self.sender.log.last(&stream).await?;
        let tried = last.as_ref().and_then(|last| attempt::tried(&last.event));
        let message = tried.map(|(message, _)| message.clone());
        let message = message.filter(|message| {
            let feed = Feed::of(&message.event_type);
            message.webhook_id == self.endpoint.id && feed == self.sender.feed
        });
        Ok(message.map(|message| Candidate {
            stream,
            message,
            last,
            failed_at: None,
        }))
    }

    /// Selects events, whether they were tried or not.
    async fn find_events(
        &self,
        (after, through): (u64, u64),
        types: &[String],
    ) -> Result<Found, ReadError> {
        let (sender, org) = (&self.sender, &self.endpoint.org);
        if !sender.feed.has_any_of(types) {
            return Ok(Found::default());
        }
        let after = self.place.cursor.max(after);
        let (log, people) = (&sender.log, &sender.people);
        let page = sender.feed.page(log, people, org, after, PAGE).await?;
        sender.people.settle().await;
        let now = sender.clock.now();
        let wanted = |recorded: &&Recorded| {
            recorded.sequence <= through
                && recorded.event.visibility() == Visibility::Public
                && any_matches(types, &recorded.event.name())
                && feed::is_for(recorded, org, &sender.people, now)
        };
        let wanted: Vec<&Recorded> = page.events().filter(wanted).collect();
        let candidate = |recorded: &&Recorded| {
            let event_type = recorded.event.name().into_owned();
            self.candidate(recorded.id, recorded.sequence, event_type)
        };
        let mut found = Found {
            candidates: wanted.iter().map(candidate).collect(),
            rest: (!page.complete && page.through < through).then_some(page.through),
            payloads: Vec::new(),
        };
        self.look_up(&mut found.candidates).await?;
        let (mut encoded, mut nth) = (0, 0);
        found.candidates.retain(|candidate| {
            let recorded = wanted[nth];
            nth += 1;
            let is_meant = candidate.last.is_some() || !self.is_queues_own(recorded);
            if is_meant && encoded < ENCODED_BYTES {
                let payload = Payload::plain(&sender.log, recorded);
                encoded += payload.as_ref().map_or(0, |payload| payload.body.len());
                found.payloads.extend(payload);
            }
            is_meant
        });
        Ok(found)
    }

    /// Whether the queue is about to make the first attempt of this event anyway.
    fn is_queues_own(&self, recorded: &Recorded) -> bool {
        let when = self.sender.feed.when(recorded);
        recorded.sequence > self.first_attempts
            && self.endpoint.wants(when, &recorded.event.name())
            && self.sender.clock.now() - recorded.time <= TOO_OLD
    }

    /// Selects deliveries that had failed at the time of the request, and still have.
    async fn find_failed(&self, request: &Request) -> Result<Found, ReadError> {
        let (log, org) = (&self.sender.log, &self.endpoint.org);
        let (only, through) = (Some(AggregateType::Delivery), request.attempts_through);
        let after = self.place.cursor;
        let page = log
            .catch_up()
            .page(Log::Deliveries, org, only, after, PAGE)
            .await?;
        let failed = |recorded: &Recorded| {
            let Event::DeliveryAttempted(attempted) = &recorded.event else {
                return None;
            };
            let message = &attempted.message;
            let is_meant = recorded.sequence <= through
                && attempted.outcome == Outcome::Failed
                && message.webhook_id == self.endpoint.id
                && Feed::of(&message.event_type) == self.sender.feed;
            is_meant.then(|| Candidate {
                stream: recorded.stream.clone(),
                message: message.clone(),
                last: None,
                failed_at: Some(recorded.sequence),
            })
        };
        let mut candidates: Vec<Candidate> = page.events().filter_map(failed).collect();
        self.look_up(&mut candidates).await?;
        Ok(Found {
            candidates,
            rest: (!page.complete && page.through < through).then_some(page.through),
            payloads: Vec::new(),
        })
    }

    /// Finds the candidates' last events.
    pub(super) async fn look_up(&self, candidates: &mut [Candidate]) -> Result<(), ReadError> {
        let streams: Vec<StreamId> = candidates.iter().map(|one| one.stream.clone()).collect();
        let lasts = self.sender.log.catch_up().last_of_each(&streams).await?;
        for (candidate, last) in candidates.iter_mut().zip(lasts) {
            candidate.last = last;
        }
        Ok(())
    }

    fn candidate(&self, event_id: EventId, event_sequence: u64, event_type: String) -> Candidate {
        let webhook = &self.endpoint.id;
        let delivery_id = self.sender.log.keyring().delivery_id(webhook, event_id);
        Candidate {
            stream: self.stream(&delivery_id),
            message: Message {
                delivery_id,
                webhook_id: webhook.clone(),
                event_id,
                event_sequence,
                event_type,
            },
            last: None,
            failed_at: None,
        }
    }

    fn stream(&self, delivery: &DeliveryId) -> StreamId {
        let org = &self.endpoint.org;
        StreamId::new(org, AggregateType::Delivery, delivery.as_str())
    }
}

fn feed_of(feed: ReplayFeed) -> Feed {
    match feed {
        ReplayFeed::Events => Feed::Events,
        ReplayFeed::Locations => Feed::Locations,
    }
}
