//! The newest version of workflows.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use schemas::workflow::{Action, Saved, Status};
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::text::storable;
use super::{ApplyError, Projection, bigint};

/// The workflows of every organization.
pub(super) struct Workflows;

/// A workflow to write.
struct Put<'a> {
    org_id: &'a str,
    saved: &'a Saved,
    steps: String,
    /// When the batch first saved it: its creation time, unless the row is older.
    first_saved_at: DateTime<Utc>,
    last_saved_at: DateTime<Utc>,
}

impl Projection for Workflows {
    fn name(&self) -> &'static str {
        "workflows"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Workflow]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["workflows"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            upsert(rows, &last_of_each(events)?).await?;
            Ok(())
        })
    }
}

fn last_of_each<'a>(events: &[&'a Recorded]) -> Result<Vec<Put<'a>>, ApplyError> {
    let mut last = IndexMap::new();
    for recorded in events {
        let Event::WorkflowSaved(saved) = &recorded.event else {
            continue;
        };
        let org_id = recorded.stream.org.as_str();
        let (_, latest) = last
            .entry((org_id, saved.workflow_id.as_str()))
            .or_insert((recorded.time, (saved, recorded.time)));
        *latest = (saved, recorded.time);
    }
    last.into_iter()
        .map(|((org_id, _), (first_saved_at, (saved, last_saved_at)))| {
            let steps = serde_json::to_string(&saved.definition.steps)
                .map_err(|error| ApplyError::Refused(error.to_string()))?;
            Ok(Put {
                org_id,
                saved,
                steps,
                first_saved_at,
                last_saved_at,
            })
        })
        .collect()
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Draft => "DRAFT",
        Status::Active => "ACTIVE",
        Status::Paused => "PAUSED",
        Status::Archived => "ARCHIVED",
    }
}

fn has_trigger(saved: &Saved) -> bool {
    let mut steps = saved.definition.steps.iter();
    steps.any(|step| matches!(step.action, Action::Trigger(_)))
}

async fn upsert(rows: &mut PgConnection, put: &[Put<'_>]) -> Result<(), sqlx::Error> {
    if put.is_empty() {
        return Ok(());
    }
    let saved = || put.iter().map(|put| put.saved);
    sqlx::query!(
        "INSERT INTO workflows (org_id, workflow_id, name, status, version, timeout_seconds,
             has_trigger, steps, created_at, updated_at)
         SELECT org_id, workflow_id, name, status, version, timeout_seconds, has_trigger,
             steps::json, created_at, updated_at
         FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[],
                     $7::boolean[], $8::text[], $9::timestamptz[], $10::timestamptz[])
              AS saved (org_id, workflow_id, name, status, version, timeout_seconds, has_trigger,
                        steps, created_at, updated_at)
         ON CONFLICT (org_id, workflow_id) DO UPDATE SET
             name = excluded.name, status = excluded.status, version = excluded.version,
             timeout_seconds = excluded.timeout_seconds, has_trigger = excluded.has_trigger,
             steps = excluded.steps, updated_at = excluded.updated_at",
        put.iter().map(|put| put.org_id).bind_iter() as _,
        saved().map(|saved| saved.workflow_id.as_str()).bind_iter() as _,
        saved()
            .map(|saved| storable(&saved.definition.name))
            .bind_iter() as _,
        saved()
            .map(|saved| status_name(saved.definition.status))
            .bind_iter() as _,
        saved().map(|saved| i64::from(saved.version)).bind_iter() as _,
        saved()
            .map(|saved| bigint(saved.definition.timeout_seconds))
            .bind_iter() as _,
        saved().map(has_trigger).bind_iter() as _,
        put.iter().map(|put| put.steps.as_str()).bind_iter() as _,
        put.iter().map(|put| put.first_saved_at).bind_iter() as _,
        put.iter().map(|put| put.last_saved_at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
