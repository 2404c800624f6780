//! Webhook deliveries with their last attempts.

mod expired;

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use schemas::delivery::{Attempted, Message, Outcome};
use schemas::{AggregateType, Event, Recorded};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::blocks::{self, Blocks, RowKey, Rows};
use super::text::optional;
use super::totals::Totals;
use super::{ApplyError, Projection, Role, bigint};

pub(crate) use expired::{delete_expired, delete_expired_attempts};

const KIND: &str = "deliveries";

/// The number of attempts that a delivery keeps: its last ones, since it may be replayed any number
/// of times. The statement in [`upsert`] has the same number.
const KEPT_ATTEMPTS: usize = 100;

/// How deliveries are listed: by their endpoint, and by their event's type.
const ROWS: Rows = Rows {
    table: KIND,
    id: "delivery_id",
    parent: Some("webhook_id"),
    state: Some(blocks::State::Word("event_type")),
};

/// The deliveries of every organization.
pub(super) struct Deliveries(pub(super) Role);

/// What a batch adds to one delivery.
struct Progress<'a> {
    org_id: &'a str,
    message: &'a Message,
    began_at: DateTime<Utc>,
    changed_at: DateTime<Utc>,
    status: DeliveryStatus,
    attempts: Vec<Attempt<'a>>,
}

/// The counters of deliveries.
struct Counts {
    totals: Totals,
    blocks: Blocks,
}

/// A delivery as it is counted.
struct Counted {
    org_id: String,
    webhook_id: String,
    delivery_id: String,
    event_type: String,
    created_at: DateTime<Utc>,
    status: String,
    /// One for the new state, minus one for the old one.
    change: i64,
}

/// The state of a delivery.
#[derive(Clone, Copy)]
enum DeliveryStatus {
    Succeeded,
    Pending(DateTime<Utc>),
    Failed,
}

/// An attempt as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Attempt<'a> {
    at: DateTime<Utc>,
    status: Option<u16>,
    duration_ms: u64,
    error: Option<Cow<'a, str>>,
    response: Option<Cow<'a, str>>,
}

impl Projection for Deliveries {
    fn name(&self) -> &'static str {
        KIND
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Delivery]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["deliveries"]
    }

    fn folds_by(&self) -> Vec<String> {
        ROWS.indexes()
    }

    fn lives_by(&self) -> Option<&'static str> {
        Some("created_at")
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let progress = fold(events);
            // Nobody deletes rows of a copy, and a copy is filled in long transactions.
            if self.0 == Role::Serving && !progress.is_empty() {
                expired::keep(rows).await?;
            }
            let counts = upsert(rows, &progress).await?;
            counts.write(rows).await?;
            Ok(())
        })
    }
}

impl Counts {
    fn of(counted: &[Counted]) -> Self {
        let (mut totals, mut blocks) = (Totals::default(), Blocks::of(ROWS));
        for one in counted {
            totals.add_within(&one.org_id, KIND, &one.webhook_id, &one.status, one.change);
            let row = RowKey {
                org_id: &one.org_id,
                parent: &one.webhook_id,
                state: &one.event_type,
                created_at: one.created_at,
                id: &one.delivery_id,
            };
            blocks.change(row, one.change);
        }
        Self { totals, blocks }
    }

    async fn write(self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.totals.write(rows).await?;
        self.blocks.write(rows).await
    }
}

impl<'a> From<&'a Attempted> for Attempt<'a> {
    fn from(attempted: &'a Attempted) -> Self {
        Self {
            at: attempted.at,
            status: attempted.status,
            duration_ms: attempted.duration_ms,
            error: optional(attempted.error.as_ref()),
            response: optional(attempted.response.as_ref()),
        }
    }
}

/// Collects the attempts of each delivery in order; its last event decides its state.
fn fold<'a>(events: &[&'a Recorded]) -> Vec<Progress<'a>> {
    let mut deliveries: IndexMap<(&str, &str), Progress<'a>> = IndexMap::new();
    for recorded in events {
        let (message, began_at, status, attempt) = match &recorded.event {
            Event::DeliveryAttempted(attempted) => {
                let (status, attempt) =
                    (DeliveryStatus::after(attempted), Attempt::from(attempted));
                (&attempted.message, attempted.at, status, Some(attempt))
            }
            Event::DeliveryQueued(queued) => {
                let due = recorded.time;
                (&queued.message, due, DeliveryStatus::Pending(due), None)
            }
            _ => continue,
        };
        let org_id = recorded.stream.org.as_str();
        let progress = deliveries
            .entry((org_id, message.delivery_id.as_str()))
            .or_insert_with(|| Progress {
                org_id,
                message,
                began_at,
                changed_at: recorded.time,
                status,
                attempts: Vec::new(),
            });
        progress.changed_at = recorded.time;
        progress.status = status;
        progress.attempts.extend(attempt);
    }
    deliveries.into_values().collect()
}

impl DeliveryStatus {
    fn after(attempted: &Attempted) -> Self {
        match &attempted.outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Retrying { next_attempt_at } => Self::Pending(*next_attempt_at),
            Outcome::Failed => Self::Failed,
        }
    }
}

impl Progress<'_> {
    fn last_attempts(&self) -> &[Attempt<'_>] {
        let older = self.attempts.len().saturating_sub(KEPT_ATTEMPTS);
        &self.attempts[older..]
    }

    fn status(&self) -> &'static str {
        match self.status {
            DeliveryStatus::Succeeded => "SUCCEEDED",
            DeliveryStatus::Pending(_) => "PENDING",
            DeliveryStatus::Failed => "FAILED",
        }
    }

    fn next_attempt_at(&self) -> Option<DateTime<Utc>> {
        match self.status {
            DeliveryStatus::Pending(next) => Some(next),
            DeliveryStatus::Succeeded | DeliveryStatus::Failed => None,
        }
    }
}

async fn upsert(
    rows: &mut PgConnection,
    deliveries: &[Progress<'_>],
) -> Result<Counts, ApplyError> {
    if deliveries.is_empty() {
        return Ok(Counts::of(&[]));
    }
    let attempts: Result<Vec<String>, _> = deliveries
        .iter()
        .map(|delivery| serde_json::to_string(delivery.last_attempts()))
        .collect();
    let attempts = attempts.map_err(|error| ApplyError::Refused(error.to_string()))?;
    let messages = || deliveries.iter().map(|delivery| delivery.message);
    // All parts of one statement see the table as it was before: `before` has the old states.
    // Attempts that stay the same are assigned as they are: long ones are then not written again.
    let counted = sqlx::query_as!(
        Counted,
        r#"WITH attempted AS MATERIALIZED (
               SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[],
                   $6::text[], $7::text[], $8::timestamptz[], $9::text[], $10::timestamptz[],
                   $11::timestamptz[])
               AS a (org_id, delivery_id, webhook_id, event_id, event_sequence, event_type,
                     status, next_attempt_at, attempts, created_at, changed_at)
           ), before AS (
               SELECT org_id, deliveries.webhook_id, delivery_id, deliveries.event_type,
                      deliveries.created_at, deliveries.status
               FROM attempted JOIN deliveries USING (org_id, delivery_id)
           ), written AS (
               INSERT INTO deliveries (org_id, delivery_id, webhook_id, event_id, event_sequence,
                   event_type, status, next_attempt_at, attempts, created_at, changed_at)
               SELECT org_id, delivery_id, webhook_id, event_id, event_sequence, event_type,
                   status, next_attempt_at, attempts::jsonb, created_at, changed_at
               FROM attempted
               ON CONFLICT (org_id, delivery_id) DO UPDATE SET
                   status = excluded.status, next_attempt_at = excluded.next_attempt_at,
                   attempts = CASE WHEN excluded.attempts = '[]' THEN deliveries.attempts
                       ELSE jsonb_path_query_array(deliveries.attempts || excluded.attempts,
                                                   '$[last - 99 to last]') END,
                   changed_at = excluded.changed_at
               RETURNING org_id, webhook_id, delivery_id, event_type, created_at, status
           )
           SELECT org_id AS "org_id!", webhook_id AS "webhook_id!", delivery_id AS "delivery_id!",
                  event_type AS "event_type!", created_at AS "created_at!",
                  status AS "status!", 1::bigint AS "change!"
           FROM written
           UNION ALL
           SELECT *, -1 FROM before"#,
        deliveries
            .iter()
            .map(|delivery| delivery.org_id)
            .bind_iter() as _,
        messages()
            .map(|message| message.delivery_id.as_str())
            .bind_iter() as _,
        messages()
            .map(|message| message.webhook_id.as_str())
            .bind_iter() as _,
        messages().map(|message| message.event_id.0).bind_iter() as _,
        messages()
            .map(|message| bigint(message.event_sequence))
            .bind_iter() as _,
        messages()
            .map(|message| message.event_type.as_str())
            .bind_iter() as _,
        deliveries.iter().map(Progress::status).bind_iter() as _,
        deliveries.iter().map(Progress::next_attempt_at).bind_iter() as _,
        attempts.iter().map(String::as_str).bind_iter() as _,
        deliveries
            .iter()
            .map(|delivery| delivery.began_at)
            .bind_iter() as _,
        deliveries
            .iter()
            .map(|delivery| delivery.changed_at)
            .bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    Ok(Counts::of(&counted))
}
