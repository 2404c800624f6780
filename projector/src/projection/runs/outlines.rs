//! The steps of workflows' definitions, by version: what a run shows before it reaches them.

use std::collections::HashMap;
use std::sync::Arc;

use domain::run::Ways;
use schemas::run::Way;
use schemas::workflow::Saved;
use schemas::{Event, Recorded, StepId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::rows::Folded;
use super::run::{Outline, Plan};
use crate::projection::ApplyError;

/// The maximum number of definitions held in memory.
const HELD: usize = 10_000;

/// Organization, workflow and version.
type Key = (String, String, u32);

/// A step as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    outline: Outline,
    /// Where its ways lead; absent if it was stored before steps could branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ways: Vec<(Way, Vec<StepId>)>,
}

/// The recently used definitions. A version never changes, so what is held here is right even if
/// the transaction that read it is rolled back.
#[derive(Default)]
pub(super) struct Outlines(HashMap<Key, Arc<Plan>>);

impl Outlines {
    /// Writes the definitions that `events` save, and reads those that their triggers and the
    /// stored runs need.
    pub(super) async fn prepare(
        &mut self,
        rows: &mut PgConnection,
        events: &[&Recorded],
        folded: &Folded<'_>,
    ) -> Result<(), ApplyError> {
        if self.0.len() > HELD {
            self.0.clear();
        }
        let mut saved = HashMap::new();
        for recorded in events {
            if let Event::WorkflowSaved(event) = &recorded.event {
                let id = event.workflow_id.to_string();
                let key = (recorded.stream.org.to_string(), id, event.version);
                saved.insert(key, kept(event));
            }
        }
        write(rows, &saved).await?;
        let saved = saved.into_iter();
        self.0.extend(saved.map(|(key, kept)| (key, plan(kept))));

        let triggered = events.iter().filter_map(|recorded| match &recorded.event {
            Event::WorkflowTriggered(triggered) => Some((
                recorded.stream.org.to_string(),
                triggered.workflow_id.to_string(),
                triggered.workflow_version,
            )),
            _ => None,
        });
        let branching = folded.iter().filter(|(_, run)| run.branches());
        let branching = branching.map(|((org, _), run)| {
            let workflow = run.workflow_id.clone();
            ((*org).to_owned(), workflow, run.workflow_version)
        });
        let mut missing: Vec<Key> = triggered
            .chain(branching)
            .filter(|key| !self.0.contains_key(key))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        self.0.extend(read(rows, &missing).await?);
        Ok(())
    }

    /// The steps of a definition.
    pub(super) fn get(&self, org: &str, workflow: &str, version: u32) -> Option<&Arc<Plan>> {
        self.0.get(&(org.to_owned(), workflow.to_owned(), version))
    }
}

fn kept(saved: &Saved) -> Vec<Kept> {
    let steps = saved.definition.steps.iter().map(|step| Kept {
        outline: Outline {
            id: step.id.clone(),
            kind: step.action.step_type(),
        },
        ways: step
            .ways()
            .into_iter()
            .map(|(way, steps)| (way, steps.to_vec()))
            .collect(),
    });
    steps.collect()
}

fn plan(kept: Vec<Kept>) -> Arc<Plan> {
    let branches = kept.iter().any(|step| step.outline.branches());
    let ways = branches.then(|| {
        let steps = kept.iter().map(|step| {
            let ways = step.ways.iter();
            let ways = ways.map(|(way, steps)| (*way, steps.as_slice()));
            (&step.outline.id, ways.collect())
        });
        Ways::new(&steps.collect::<Vec<_>>())
    });
    let steps = kept.into_iter().map(|step| step.outline).collect();
    Arc::new(Plan { steps, ways })
}

async fn write(rows: &mut PgConnection, saved: &HashMap<Key, Vec<Kept>>) -> Result<(), ApplyError> {
    if saved.is_empty() {
        return Ok(());
    }
    let steps: Result<Vec<String>, _> = saved.values().map(serde_json::to_string).collect();
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
) -> Result<HashMap<Key, Arc<Plan>>, ApplyError> {
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
        let steps: Vec<Kept> = serde_json::from_str(&row.steps).map_err(unreadable)?;
        let version = u32::try_from(row.version).unwrap_or(u32::MAX);
        Ok(((row.org_id, row.workflow_id, version), plan(steps)))
    });
    outlines.collect()
}
