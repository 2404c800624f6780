//! Counts what a replay sends again, as the runner will find it: page by page, however much there
//! is, and in turns with other organizations.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use domain::circles::{Circles, FOLLOWED_ONE_BY_ONE, Viewer};
use domain::webhook::any_matches;
use event_log::{EventLog, Page, ReadError};
use schemas::delivery::Outcome;
use schemas::{AggregateType, Event, Log, OrgId, Recorded, StreamId, Visibility, WebhookId};
use service::{Share, Shares};

use crate::circles;

const PAGE: usize = 1_000;
/// Pages that are read at a time for all counts.
const AT_ONCE: usize = 4;
/// What a read counts as besides what it returns, in bytes.
const READ_BYTES: usize = 1_024;

/// Turns to read a page and to count in it, shared by organization.
pub(crate) struct ReplayTurns(Shares<OrgId>);

impl Default for ReplayTurns {
    fn default() -> Self {
        Self(Shares::new(AT_ONCE))
    }
}

/// The events of a replay.
#[derive(Debug)]
pub(super) struct Span<'s> {
    /// The stream they are in.
    pub(super) log: Log,
    /// The sequence after which they are.
    pub(super) after: u64,
    /// The sequence up to which they are.
    pub(super) through: u64,
    /// Their types.
    pub(super) types: &'s [String],
}

/// A part of the log in which events are counted.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// The organization's own.
    Organization,
    /// One person's positions.
    Track(StreamId),
    /// Everybody's positions.
    AllTracks,
}

/// Counts on behalf of an organization.
pub(super) struct Counter<'a> {
    pub(super) log: &'a EventLog,
    pub(super) turns: &'a ReplayTurns,
    pub(super) org: &'a OrgId,
}

impl Counter<'_> {
    /// Counts the events of the span that may be sent to the organization.
    pub(super) async fn events(
        &self,
        circles: &circles::Directory,
        span: &Span<'_>,
        now: DateTime<Utc>,
    ) -> Result<u64, ReadError> {
        let viewer = Viewer::Organization(self.org.clone());
        let counts = |recorded: &Recorded| {
            let event = &recorded.event;
            recorded.sequence <= span.through
                && event.visibility() == Visibility::Public
                && any_matches(span.types, &event.name())
                && circles.look(|circles| circles.shows(&viewer, event, now))
        };
        let sources = circles.look(|circles| sources(circles, self.org, span));
        let mut count = 0;
        for source in &sources {
            let mut after = span.after;
            while after < span.through {
                let _turn = self.turn().await;
                let page = self.page(source, span.log, after).await?;
                count += page.events().filter(|recorded| counts(recorded)).count() as u64;
                if page.complete {
                    break;
                }
                after = page.through;
            }
        }
        Ok(count)
    }

    async fn page(&self, source: &Source, log: Log, after: u64) -> Result<Page, ReadError> {
        let page = match source {
            Source::Organization => self.log.page(log, self.org, None, after, PAGE).await?,
            Source::Track(track) => self.log.page_of(track, after, PAGE).await?,
            Source::AllTracks => {
                let kind = AggregateType::Track;
                self.log.page_of_kind(kind, after, PAGE).await?
            }
        };
        self.charge(&page);
        Ok(page)
    }

    /// Waits until the organization may read, then for its turn.
    async fn turn(&self) -> Share<OrgId> {
        self.log.until_read(self.org).await;
        self.turns.0.enter(self.org.clone()).await
    }

    /// Counts what was read as read by the organization, which gives way to others accordingly.
    fn charge(&self, page: &Page) {
        self.log.count_read(self.org, READ_BYTES + page.bytes);
    }

    /// Counts the endpoint's deliveries that have failed and are still failed.
    pub(super) async fn failed(&self, webhook: &WebhookId, through: u64) -> Result<u64, ReadError> {
        let (mut count, mut after) = (0, 0);
        let only = Some(AggregateType::Delivery);
        while after < through {
            let _turn = self.turn().await;
            let page = self.log.page(Log::Deliveries, self.org, only, after, PAGE);
            let page = page.await?;
            self.charge(&page);
            count += self.still_failed(webhook, through, &page).await?;
            if page.complete {
                break;
            }
            after = page.through;
        }
        Ok(count)
    }

    /// How many of the page's events up to `through` are the last of such a delivery.
    async fn still_failed(
        &self,
        webhook: &WebhookId,
        through: u64,
        page: &Page,
    ) -> Result<u64, ReadError> {
        let failed = |recorded: &&Recorded| match &recorded.event {
            Event::DeliveryAttempted(attempted) => {
                recorded.sequence <= through
                    && attempted.message.webhook_id == *webhook
                    && attempted.outcome == Outcome::Failed
            }
            _ => false,
        };
        let failed: Vec<&Recorded> = page.events().filter(failed).collect();
        let streams: Vec<StreamId> = failed.iter().map(|found| found.stream.clone()).collect();
        let lasts = self.log.last_of_each_for_reader(&streams).await?;
        self.log.count_read(self.org, READ_BYTES * streams.len());
        // A delivery that was queued or tried again since counts at its last failure, if any.
        let is_last = |(failed, last): (&&Recorded, &Option<Recorded>)| {
            let last = last.as_ref().map(|last| last.sequence);
            last == Some(failed.sequence)
        };
        let pairs = failed.iter().zip(&lasts);
        Ok(pairs.filter(|pair| is_last(*pair)).count() as u64)
    }
}

/// Where the events of a span may be that the organization can see at present. Of positions it sees
/// only those of persons who are in its circles now.
fn sources(circles: &Circles, org: &OrgId, span: &Span<'_>) -> Vec<Source> {
    if span.log != Log::Locations {
        return vec![Source::Organization];
    }
    if !any_matches(span.types, "location.updated") {
        return Vec::new();
    }
    let mut members = BTreeSet::new();
    for member in circles.members_of(org) {
        members.insert(member);
        if members.len() > FOLLOWED_ONE_BY_ONE {
            return vec![Source::AllTracks];
        }
    }
    let tracks = members.into_iter().map(StreamId::of_track);
    tracks.map(Source::Track).collect()
}

#[cfg(test)]
mod tests {
    use event_log::{Expected, Write};
    use schemas::circle::{CircleOwner, Created, MemberJoined, MemberLeft};
    use schemas::delivery::{Attempted, Message};
    use schemas::{AccountId, CircleId, Context, EventId, NewEvent, Sealed};
    use uuid::Uuid;

    use super::*;
    use crate::test_log;

    const TRACKS: u64 = FOLLOWED_ONE_BY_ONE as u64;

    fn org() -> OrgId {
        OrgId::from("o1")
    }

    fn owned_by(owner: CircleOwner) -> Event {
        Event::CircleCreated(Created {
            circle_id: CircleId::from("c1"),
            owner,
            name: Sealed::from_ciphertext(String::new()),
        })
    }

    fn joined(member: u64) -> Event {
        Event::CircleMemberJoined(MemberJoined {
            circle_id: CircleId::from("c1"),
            user_id: AccountId(member),
        })
    }

    fn left(member: u64) -> Event {
        Event::CircleMemberLeft(MemberLeft {
            circle_id: CircleId::from("c1"),
            user_id: AccountId(member),
        })
    }

    /// What is read of positions if these events came after the circle of `owner` was created.
    fn read(
        owner: CircleOwner,
        events: impl IntoIterator<Item = Event>,
        types: &[&str],
    ) -> Vec<Source> {
        let mut circles = Circles::default();
        let events = std::iter::once(owned_by(owner)).chain(events);
        for (sequence, event) in (1..).zip(events) {
            circles.apply(&Recorded {
                sequence,
                stream: StreamId::new(&org(), AggregateType::Circle, "c1"),
                id: EventId(Uuid::nil()),
                time: DateTime::UNIX_EPOCH,
                event,
                context: Context::default(),
                receipt: None,
            });
        }
        let types: Vec<String> = types.iter().map(|kind| (*kind).to_owned()).collect();
        let span = Span {
            log: Log::Locations,
            after: 0,
            through: 1_000,
            types: &types,
        };
        sources(&circles, &org(), &span)
    }

    #[test]
    fn nobodys_positions_are_read_without_members_or_for_other_types() {
        let ours = || CircleOwner::Organization(org());
        let others = CircleOwner::Organization(OrgId::from("o2"));
        assert!(read(ours(), [], &["location.updated"]).is_empty());
        assert!(read(ours(), [joined(1), left(1)], &["*"]).is_empty());
        assert!(read(others, [joined(1)], &["*"]).is_empty());
        assert!(read(ours(), [joined(1)], &["place.*", "sos.*"]).is_empty());
        let track = Source::Track(StreamId::of_track(AccountId(1)));
        assert_eq!(read(ours(), [joined(1)], &[]), [track]);
    }

    #[test]
    fn everybodys_positions_are_read_only_for_many_members() {
        let read = |members| {
            let owner = CircleOwner::Organization(org());
            read(owner, (1..=members).map(joined), &["location.*"])
        };
        assert_eq!(read(TRACKS).len(), FOLLOWED_ONE_BY_ONE);
        assert_eq!(read(TRACKS + 1), [Source::AllTracks]);
    }

    /// An endpoint's delivery fails at its first attempt.
    async fn fail(log: &EventLog, org: &OrgId, webhook: &WebhookId, delivery: &str) {
        let attempted = Event::DeliveryAttempted(Attempted {
            message: Message {
                delivery_id: delivery.into(),
                webhook_id: webhook.clone(),
                event_id: EventId(Uuid::nil()),
                event_sequence: 1,
                event_type: "run.started".to_owned(),
            },
            attempt: 1,
            at: DateTime::UNIX_EPOCH,
            duration_ms: 1,
            status: Some(500),
            error: None,
            response: None,
            outcome: Outcome::Failed,
        });
        let event = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: DateTime::UNIX_EPOCH,
            event: attempted,
            context: Context::default(),
            receipt: None,
        };
        let write = Write {
            stream: StreamId::new(org, AggregateType::Delivery, delivery),
            expected: Expected::Empty,
            events: vec![event],
        };
        log.commit(write.into()).await.unwrap();
    }

    #[tokio::test]
    async fn what_failed_after_the_request_is_not_counted() {
        let (log, org) = (test_log::connect().await, OrgId::from(Uuid::new_v4()));
        let (webhook, turns) = (WebhookId::from("h1"), ReplayTurns::default());
        fail(&log, &org, &webhook, "before").await;
        let through = log.end(Log::Deliveries).await.unwrap().sequence();
        fail(&log, &org, &webhook, "after").await;
        let counter = Counter {
            log: &log,
            turns: &turns,
            org: &org,
        };
        assert_eq!(counter.failed(&webhook, through).await.unwrap(), 1);
        let through = log.end(Log::Deliveries).await.unwrap().sequence();
        assert_eq!(counter.failed(&webhook, through).await.unwrap(), 2);
    }
}
