use std::ops::Range;

use chrono::{DateTime, TimeDelta};
use event_log::{Commit, Expected, Keyring, LogSettings, Write};
use schemas::delivery::{Attempted, Outcome, Queued};
use schemas::{AggregateType, Context, Event, EventId, NewEvent, OrgId, StreamId};
use serde_json::json;
use uuid::Uuid;

use super::super::open_records::RECENT;
use super::*;

const OURS: &str = "ours";
/// As many at a time as a loaded machine stores before the log's timeout.
const AT_A_TIME: usize = 250;

async fn log() -> EventLog {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let settings = LogSettings {
        log_prefix: format!("takeover-{}-", Uuid::new_v4().simple()),
        ..LogSettings::at(url)
    };
    let keyring = Keyring::from_master(&[7; 32]);
    EventLog::connect(&settings, keyring).await.unwrap()
}

fn message(webhook: &str, delivery: u64) -> Message {
    Message {
        delivery_id: format!("msg_{webhook}_{delivery}").as_str().into(),
        webhook_id: webhook.into(),
        event_id: EventId(Uuid::from_u128(delivery.into())),
        event_sequence: delivery,
        event_type: "run.started".to_owned(),
    }
}

fn retrying() -> Outcome {
    Outcome::Retrying {
        next_attempt_at: DateTime::UNIX_EPOCH + TimeDelta::days(2),
    }
}

fn attempted(message: Message, outcome: Outcome) -> Event {
    Event::DeliveryAttempted(Attempted {
        message,
        attempt: 1,
        at: DateTime::UNIX_EPOCH,
        duration_ms: 7,
        status: Some(500),
        error: None,
        response: None,
        outcome,
    })
}

fn commit(event: Event, expected: Expected) -> Commit {
    let (message, _) = attempt::tried(&event).unwrap();
    let org = OrgId::from("o1");
    let stream = StreamId::new(&org, AggregateType::Delivery, message.delivery_id.as_str());
    let event = NewEvent {
        id: EventId(Uuid::new_v4()),
        time: DateTime::UNIX_EPOCH,
        event,
        context: Context::default(),
        receipt: None,
    };
    let write = Write {
        stream,
        expected,
        events: vec![event],
    };
    write.into()
}

async fn append(log: &EventLog, event: Event, expected: Expected) -> u64 {
    let appended = log.commit(commit(event, expected)).await;
    appended.unwrap().sequence()
}

/// Adds a waiting delivery of ours; returns the sequence of its attempt.
async fn wait(log: &EventLog, delivery: u64) -> u64 {
    let event = attempted(message(OURS, delivery), retrying());
    append(log, event, Expected::Empty).await
}

/// Adds successful deliveries of others.
async fn deliver(log: &EventLog, deliveries: Range<u64>) {
    let event = |delivery| attempted(message("theirs", delivery), Outcome::Succeeded);
    let commits: Vec<Commit> = deliveries
        .map(|delivery| commit(event(delivery), Expected::Empty))
        .collect();
    for some in commits.chunks(AT_A_TIME) {
        for appended in log.commit_each(some.to_vec()).await {
            appended.unwrap();
        }
    }
}

/// Open records after `after`, with names each given as the difference from the one before.
fn open(after: u64, named: &[u64]) -> OpenRecords {
    serde_json::from_value(json!({ "after": after, "named": named })).unwrap()
}

/// What another process finds from the open records that the previous one saved.
async fn load(log: &EventLog, open: &OpenRecords) -> Loaded {
    let end = end(log, Log::Deliveries).await;
    let is_ours = |webhook: &WebhookId| webhook.as_str() == OURS;
    let mut loaded = load_retries(log, Feed::Events, is_ours, open, end).await;
    loaded.waiting.sort_by_key(|waiting| waiting.sequence);
    loaded
}

/// The waiting deliveries, with the sequences of their last attempts.
fn places(loaded: &Loaded) -> Vec<(u64, u64)> {
    let waiting = loaded.waiting.iter();
    waiting
        .map(|waiting| (waiting.sequence, waiting.retry.recorded))
        .collect()
}

#[tokio::test]
async fn what_waits_for_long_is_found_without_what_others_had_delivered_since() {
    let log = log().await;
    let old = wait(&log, 1).await;
    deliver(&log, 0..RECENT).await;
    let recent = wait(&log, 2).await;
    deliver(&log, RECENT..RECENT + 10).await;
    let open = OpenRecords::new(vec![old, recent], end(&log, Log::Deliveries).await);
    let loaded = load(&log, &open).await;
    assert_eq!(places(&loaded), [(1, old), (2, recent)]);
    assert_eq!(loaded.read, 12);
}

#[tokio::test]
async fn a_named_delivery_is_loaded_in_the_state_of_its_last_event() {
    let log = log().await;
    let mut records = Vec::new();
    for delivery in 1..=4 {
        records.push(wait(&log, delivery).await);
    }
    let again = |delivery, outcome| {
        let at = records[usize::try_from(delivery).unwrap() - 1];
        append(
            &log,
            attempted(message(OURS, delivery), outcome),
            Expected::At(at),
        )
    };
    let waits_on = again(1, retrying()).await;
    again(2, Outcome::Succeeded).await;
    let failed = again(3, Outcome::Failed).await;
    let queued = Event::DeliveryQueued(Queued {
        message: message(OURS, 3),
        request_id: EventId(Uuid::nil()),
        attempts: 2,
    });
    let queued = append(&log, queued, Expected::At(failed)).await;
    // The last one names a record that does not exist.
    let all_named = open(99, &[1, 1, 1, 1, 90]);
    assert_eq!(records, [1, 2, 3, 4]);
    let loaded = load(&log, &all_named).await;
    let expected = [(1, waits_on), (3, queued), (4, records[3])];
    assert_eq!(places(&loaded), expected);
    assert_eq!(loaded.read, 5);
    for open in [open(3, &[1, 1, 1]), open(0, &[])] {
        assert_eq!(places(&load(&log, &open).await), expected, "{open:?}");
    }
}
