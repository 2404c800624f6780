//! The steps of workflows' definitions, by version: what a run shows before it has got there.

use std::collections::HashMap;
use std::sync::Arc;

use schemas::workflow::{Action, Saved};
use schemas::{Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::run::Outline;
use crate::projection::ApplyError;

/// Definitions held in memory at most.
const HELD: usize = 10_000;

/// Organization, workflow and version.
type Key = (String, String, u32);

/// The definitions that were used lately. A version never changes, so that what is held here is
/// right whatever becomes of the transaction it was read in.
#[derive(Default)]
pub(super) struct Outlines(HashMap<Key, Arc<[Outline]>>);

impl Outlines {
    /// Writes the definitions that `events` save, and reads those that their triggers need.
    pub(super) async fn prepare(
        &mut self,
        rows: &mut PgConnection,
        events: &[&Recorded],
    ) -> Result<(), ApplyError> {
        if self.0.len() > HELD {
            self.0.clear();
        }
        let mut saved = HashMap::new();
        for recorded in events {
            if let Event::WorkflowSaved(event) = &recorded.event {
                let outline: Arc<[Outline]> = outline(event).into();
                let id = event.workflow_id.to_string();
                saved.insert(
                    (recorded.stream.org.to_string(), id, event.version),
                    outline,
                );
            }
        }
        write(rows, &saved).await?;
        self.0.extend(saved);

        let mut missing: Vec<Key> = events
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::WorkflowTriggered(triggered) => Some((
                    recorded.stream.org.to_string(),
                    triggered.workflow_id.to_string(),
                    triggered.workflow_version,
                )),
                _ => None,
            })
            .filter(|key| !self.0.contains_key(key))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        self.0.extend(read(rows, &missing).await?);
        Ok(())
    }

    /// The steps of a definition.
    pub(super) fn get(&self, org: &str, workflow: &str, version: u32) -> Option<&[Outline]> {
        let key = (org.to_owned(), workflow.to_owned(), version);
        self.0.get(&key).map(|outline| &**outline)
    }
}

fn outline(saved: &Saved) -> Vec<Outline> {
    let steps = saved.definition.steps.iter().map(|step| {
        let kind = match step.action {
            Action::Trigger => "TRIGGER",
            Action::Http(_) => "HTTP",
            Action::Notify(_) => "NOTIFY",
        };
        Outline {
            id: step.id.clone(),
            kind: kind.to_owned(),
        }
    });
    steps.collect()
}

async fn write(
    rows: &mut PgConnection,
    saved: &HashMap<Key, Arc<[Outline]>>,
) -> Result<(), ApplyError> {
    if saved.is_empty() {
        return Ok(());
    }
    let steps: Result<Vec<String>, _> = saved
        .values()
        .map(|outline| serde_json::to_string(&**outline))
        .collect();
    let steps = steps.map_err(|error| ApplyError::Refused(error.to_string()))?;
    sqlx::query!(
        "INSERT INTO workflow_outlines (org_id, workflow_id, version, steps)
         SELECT org_id, workflow_id, version, steps::json
         FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::text[])
              AS saved (org_id, workflow_id, version, steps)",
        saved.keys().map(|(org, ..)| org).bind_iter() as _,
        saved.keys().map(|(_, id, _)| id).bind_iter() as _,
        saved
            .keys()
            .map(|(.., version)| i64::from(*version))
            .bind_iter() as _,
        steps.iter().bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn read(
    rows: &mut PgConnection,
    wanted: &[Key],
) -> Result<HashMap<Key, Arc<[Outline]>>, ApplyError> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let found = sqlx::query!(
        r#"SELECT o.org_id, o.workflow_id, o.version, o.steps::text AS "steps!"
           FROM UNNEST($1::text[], $2::text[], $3::bigint[])
                AS wanted (org_id, workflow_id, version)
           JOIN workflow_outlines o USING (org_id, workflow_id, version)"#,
        wanted.iter().map(|(org, ..)| org).bind_iter() as _,
        wanted.iter().map(|(_, id, _)| id).bind_iter() as _,
        wanted
            .iter()
            .map(|(.., version)| i64::from(*version))
            .bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    let outlines = found.into_iter().map(|row| {
        let unreadable = |_| ApplyError::Refused("a workflow's outline cannot be read".to_owned());
        let steps: Vec<Outline> = serde_json::from_str(&row.steps).map_err(unreadable)?;
        let version = u32::try_from(row.version).unwrap_or(u32::MAX);
        Ok(((row.org_id, row.workflow_id, version), steps.into()))
    });
    outlines.collect()
}
