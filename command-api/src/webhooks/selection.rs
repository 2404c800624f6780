//! Counts what a replay sends again, as the runner will find it: page by page, however much there
//! is.

use chrono::{DateTime, Utc};
use domain::circles::Viewer;
use domain::webhook::any_matches;
use event_log::{EventLog, ReadError};
use schemas::delivery::Outcome;
use schemas::{AggregateType, Event, Log, OrgId, Recorded, StreamId, Visibility, WebhookId};

use crate::circles;

const PAGE: usize = 1_000;

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

/// Counts the events of the span that may be sent to the organization.
pub(super) async fn count_events(
    log: &EventLog,
    circles: &circles::Directory,
    org: &OrgId,
    span: &Span<'_>,
    now: DateTime<Utc>,
) -> Result<u64, ReadError> {
    let viewer = Viewer::Organization(org.clone());
    let counts = |recorded: &Recorded| {
        let event = &recorded.event;
        recorded.sequence <= span.through
            && event.visibility() == Visibility::Public
            && any_matches(span.types, &event.name())
            && circles.look(|circles| circles.shows(&viewer, event, now))
    };
    let (mut count, mut after) = (0, span.after);
    while after < span.through {
        let page = match span.log {
            Log::Locations => log.page_of_kind(AggregateType::Track, after, PAGE).await?,
            other => log.page(other, org, None, after, PAGE).await?,
        };
        count += page.events().filter(|recorded| counts(recorded)).count() as u64;
        if page.complete {
            break;
        }
        after = page.through;
    }
    Ok(count)
}

/// Counts the endpoint's deliveries that have failed and are still failed.
pub(super) async fn count_failed(
    log: &EventLog,
    org: &OrgId,
    webhook: &WebhookId,
    through: u64,
) -> Result<u64, ReadError> {
    let (mut count, mut after) = (0, 0);
    let only = Some(AggregateType::Delivery);
    while after < through {
        let page = log.page(Log::Deliveries, org, only, after, PAGE).await?;
        let failed = |recorded: &&Recorded| match &recorded.event {
            Event::DeliveryAttempted(attempted) => {
                attempted.message.webhook_id == *webhook && attempted.outcome == Outcome::Failed
            }
            _ => false,
        };
        let failed: Vec<&Recorded> = page.events().filter(failed).collect();
        let streams: Vec<StreamId> = failed.iter().map(|found| found.stream.clone()).collect();
        let lasts = log.last_of_each(&streams).await?;
        // A delivery that was queued or tried again since counts at its last failure, if any.
        let is_last = |(failed, last): (&&Recorded, &Option<Recorded>)| {
            let last = last.as_ref().map(|last| last.sequence);
            last == Some(failed.sequence)
        };
        count += failed
            .iter()
            .zip(&lasts)
            .filter(|pair| is_last(*pair))
            .count() as u64;
        if page.complete {
            break;
        }
        after = page.through;
    }
    Ok(count)
}
