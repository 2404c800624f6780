//! Reads an endpoint's wanted events from the log: after a restart, and when there were more than a
//! queue holds.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use event_log::{EventLog, ReadError};
use schemas::{AggregateType, Recorded, StreamId, Visibility};

use super::attempt;
use super::directory::Endpoint;
use super::feed::{self, Feed};
use super::payload::{ENCODED_BYTES, Payload};
use super::work::{Gap, Refill, Retry};
use crate::people::People;

/// Events read at a time.
const PAGE: usize = 1_000;
/// Wanted events that are enough for one refill.
const ENOUGH: usize = 1_000;
/// Maximum number of pages for one refill, so that a queue with few wanted events shows progress.
const PAGES: usize = 20;

/// The result of a refill: the wanted events, and the first of them encoded.
pub(super) type Found = (Refill, Vec<Arc<Payload>>);

/// State of a delivery.
enum DeliveryState {
    Untried,
    Waiting(Retry),
    Ended,
}

/// Reads events and decides which are wanted.
pub(super) struct Reader {
    pub(super) log: EventLog,
    pub(super) people: People,
    pub(super) feed: Feed,
    pub(super) now: DateTime<Utc>,
}

/// Reads the wanted events after `gap.after`, up to `head_before`: that is how far the log is
/// known, and with it what the endpoint wants. Later events are offered to the queue as they come.
pub(super) async fn read(
    reader: &Reader,
    endpoint: &Endpoint,
    gap: Gap,
    head_before: u64,
) -> Result<Found, ReadError> {
    let log = &reader.log;
    let (mut payloads, mut encoded) = (Vec::new(), 0);
    let mut refill = Refill::empty(gap.after, head_before);
    for _ in 0..PAGES {
        if refill.complete || refill.untried.len() >= ENOUGH {
            break;
        }
        let page = reader
            .feed
            .page(log, &reader.people, &endpoint.org, refill.through, PAGE)
            .await?;
        reader.people.settle().await;
        refill.reached(page.through, page.complete);
        let is_wanted = |recorded: &&Recorded| {
            recorded.sequence <= head_before && is_wanted(reader, endpoint, recorded)
        };
        let wanted: Vec<&Recorded> = page.events().filter(is_wanted).collect();
        let states = delivery_states(log, endpoint, gap, &wanted).await?;
        for (recorded, state) in wanted.into_iter().zip(states) {
            match state {
                DeliveryState::Untried => refill.untried.push(recorded.sequence),
                DeliveryState::Waiting(retry) => refill.waiting.push((recorded.sequence, retry)),
                DeliveryState::Ended => continue,
            }
            if encoded < ENCODED_BYTES {
                let payload = Payload::plain(log, recorded);
                encoded += payload.as_ref().map_or(0, |payload| payload.body.len());
                payloads.extend(payload);
            }
        }
    }
    Ok((refill, payloads))
}

fn is_wanted(reader: &Reader, endpoint: &Endpoint, recorded: &Recorded) -> bool {
    let public = recorded.event.visibility() == Visibility::Public;
    let when = reader.feed.when(recorded);
    let wanted = public && endpoint.wants(when, &recorded.event.name());
    wanted && feed::is_for(recorded, &endpoint.org, &reader.people, reader.now)
}

/// The state of the events' deliveries; events that no other process can have tried are not looked
/// up.
async fn delivery_states(
    log: &EventLog,
    endpoint: &Endpoint,
    gap: Gap,
    events: &[&Recorded],
) -> Result<Vec<DeliveryState>, ReadError> {
    let unsure = events.partition_point(|recorded| recorded.sequence <= gap.unsure_through);
    let streams: Vec<StreamId> = events[..unsure]
        .iter()
        .map(|recorded| {
            let delivery = log.keyring().delivery_id(&endpoint.id, recorded.id);
            StreamId::new(&endpoint.org, AggregateType::Delivery, delivery.as_str())
        })
        .collect();
    let lasts = log.catch_up().last_of_each(&streams).await?;
    let mut states: Vec<DeliveryState> = lasts
        .iter()
        .map(|last| delivery_state(last.as_ref()))
        .collect();
    states.resize_with(events.len(), || DeliveryState::Untried);
    Ok(states)
}

fn delivery_state(last: Option<&Recorded>) -> DeliveryState {
    match last {
        None => DeliveryState::Untried,
        Some(last) => attempt::pending(last).map_or(DeliveryState::Ended, DeliveryState::Waiting),
    }
}

#[cfg(test)]
#[path = "refill_tests.rs"]
mod tests;
