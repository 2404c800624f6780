//! The rows of runs: read and written for a whole batch at once.

use std::collections::HashMap;

use domain::run::State;
use indexmap::IndexMap;
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::run::{Origin, Run};
use crate::projection::ApplyError;
use crate::projection::text::optional;

/// Postgres accepts no message of more than 1 GiB, and the output of steps may be large.
const STATEMENT_BYTES: usize = 32 * 1024 * 1024;

/// A run's organization and id.
pub(super) type Key<'a> = (&'a str, &'a str);

/// Runs by their key, in the order of the batch.
pub(super) type Folded<'a> = IndexMap<Key<'a>, Run<'a>>;

/// Reads the runs that exist already.
pub(super) async fn read<'a>(
    rows: &mut PgConnection,
    wanted: &[Key<'a>],
) -> Result<Folded<'a>, ApplyError> {
    if wanted.is_empty() {
        return Ok(Folded::new());
    }
    let found = sqlx::query!(
        r#"SELECT wanted.place AS "place!", r.workflow_id, r.workflow_version, r.state, r.created_at,
                  r.started_at, r.ended_at, r.error, r.steps::text AS "steps!"
           FROM UNNEST($1::text[], $2::text[]) WITH ORDINALITY AS wanted (org_id, run_id, place)
           JOIN runs r USING (org_id, run_id)"#,
        wanted.iter().map(|(org, _)| *org).bind_iter() as _,
        wanted.iter().map(|(_, id)| *id).bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    let unreadable = || ApplyError::Refused("the run's row cannot be read".to_owned());
    let mut runs = HashMap::with_capacity(found.len());
    for row in found {
        let state = State::named(&row.state).ok_or_else(unreadable)?;
        let run = Run {
            workflow_id: row.workflow_id,
            workflow_version: u32::try_from(row.workflow_version).map_err(|_| unreadable())?,
            plan: None,
            origin: None,
            before: Some(state),
            state,
            created_at: row.created_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            error: row.error,
            steps: serde_json::from_str(&row.steps).map_err(|_| unreadable())?,
        };
        runs.insert(row.place, run);
    }
    let in_order = (1..).zip(wanted);
    Ok(in_order
        .filter_map(|(place, key)| Some((*key, runs.remove(&place)?)))
        .collect())
}

/// Inserts the rows of new runs and updates the others.
pub(super) async fn write(rows: &mut PgConnection, folded: &Folded<'_>) -> Result<(), ApplyError> {
    let (mut added, mut changed, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (key, run) in folded {
        let unwritable = |error: serde_json::Error| ApplyError::Refused(error.to_string());
        let steps = serde_json::to_string(&run.steps).map_err(unwritable)?;
        bytes += steps.len();
        match &run.origin {
            Some(origin) => {
                let payload = &origin.triggered.trigger_payload;
                let payload = serde_json::to_string(payload).map_err(unwritable)?;
                bytes += payload.len();
                added.push((key, run, steps, origin, payload));
            }
            None => changed.push((key, run, steps)),
        }
        if bytes >= STATEMENT_BYTES {
            insert(rows, &added).await?;
            update(rows, &changed).await?;
            (added, changed, bytes) = (Vec::new(), Vec::new(), 0);
        }
    }
    insert(rows, &added).await?;
    update(rows, &changed).await?;
    Ok(())
}

async fn insert(
    rows: &mut PgConnection,
    added: &[(&Key<'_>, &Run<'_>, String, &Origin<'_>, String)],
) -> Result<(), sqlx::Error> {
    if added.is_empty() {
        return Ok(());
    }
    let runs = || added.iter().map(|(_, run, ..)| *run);
    let origins = || added.iter().map(|(.., origin, _)| *origin);
    sqlx::query!(
        "INSERT INTO runs (org_id, run_id, workflow_id, workflow_version, state, trigger_payload,
             created_at, started_at, ended_at, error, steps)
         SELECT org_id, run_id, workflow_id, workflow_version, state, trigger_payload::json,
             created_at, started_at, ended_at, error, steps::json
         FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[],
                     $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::text[],
                     $11::text[])
              AS added (org_id, run_id, workflow_id, workflow_version, state, trigger_payload,
                        created_at, started_at, ended_at, error, steps)",
        added.iter().map(|((org, _), ..)| *org).bind_iter() as _,
        added.iter().map(|((_, id), ..)| *id).bind_iter() as _,
        runs().map(|run| run.workflow_id.as_str()).bind_iter() as _,
        origins()
            .map(|origin| i64::from(origin.triggered.workflow_version))
            .bind_iter() as _,
        runs().map(|run| run.state.name()).bind_iter() as _,
        added.iter().map(|(.., payload)| payload).bind_iter() as _,
        runs().map(|run| run.created_at).bind_iter() as _,
        runs().map(|run| run.started_at).bind_iter() as _,
        runs().map(|run| run.ended_at).bind_iter() as _,
        runs().map(|run| optional(run.error.as_ref())).bind_iter() as _,
        added.iter().map(|(_, _, steps, ..)| steps).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn update(
    rows: &mut PgConnection,
    changed: &[(&Key<'_>, &Run<'_>, String)],
) -> Result<(), sqlx::Error> {
    if changed.is_empty() {
        return Ok(());
    }
    let runs = || changed.iter().map(|(_, run, _)| *run);
    sqlx::query!(
        "UPDATE runs SET
             state = changed.state, started_at = changed.started_at, ended_at = changed.ended_at,
             error = changed.error, steps = changed.steps::json
         FROM UNNEST($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[],
                     $6::text[], $7::text[])
              AS changed (org_id, run_id, state, started_at, ended_at, error, steps)
         WHERE runs.org_id = changed.org_id AND runs.run_id = changed.run_id",
        changed.iter().map(|((org, _), ..)| *org).bind_iter() as _,
        changed.iter().map(|((_, id), ..)| *id).bind_iter() as _,
        runs().map(|run| run.state.name()).bind_iter() as _,
        runs().map(|run| run.started_at).bind_iter() as _,
        runs().map(|run| run.ended_at).bind_iter() as _,
        runs().map(|run| optional(run.error.as_ref())).bind_iter() as _,
        changed.iter().map(|(.., steps)| steps).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
