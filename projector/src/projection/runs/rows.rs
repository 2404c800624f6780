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

/// The steps of stored runs that are held in memory at once, unless a single run has more.
const LOADED_BYTES: i64 = 16 * 1024 * 1024;

/// A run's organization and id.
pub(super) type Key<'a> = (&'a str, &'a str);

/// Runs by their key, in the order of the batch.
pub(super) type Folded<'a> = IndexMap<Key<'a>, Run<'a>>;

/// Reads the runs that exist already; of large ones only the first, so that they fit into memory.
/// Returns also how many of the wanted ones that covers: at least one.
pub(super) async fn read<'a>(
    rows: &mut PgConnection,
    wanted: &[Key<'a>],
) -> Result<(Folded<'a>, usize), ApplyError> {
    if wanted.is_empty() {
        return Ok((Folded::new(), 0));
    }
    let found = sqlx::query!(
        r#"SELECT place AS "place!", workflow_id AS "workflow_id!",
                  workflow_version AS "workflow_version!", state AS "state!",
                  created_at AS "created_at!", started_at, ended_at, error,
                  CASE WHEN bytes_before < $3 THEN steps::text END AS "steps?"
           FROM (
               SELECT wanted.place, r.workflow_id, r.workflow_version, r.state, r.created_at,
                      r.started_at, r.ended_at, r.error, r.steps,
                      coalesce(sum(octet_length(r.steps::text)) OVER (
                          ORDER BY wanted.place
                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
               FROM UNNEST($1::text[], $2::text[]) WITH ORDINALITY
                    AS wanted (org_id, run_id, place)
               JOIN runs r USING (org_id, run_id)
           ) AS sized"#,
        wanted.iter().map(|(org, _)| *org).bind_iter() as _,
        wanted.iter().map(|(_, id)| *id).bind_iter() as _,
        LOADED_BYTES,
    )
    .fetch_all(rows)
    .await?;
    let unreadable = || ApplyError::Refused("the run's row cannot be read".to_owned());
    let (mut runs, mut covered) = (HashMap::with_capacity(found.len()), wanted.len());
    for row in found {
        let Some(steps) = row.steps else {
            let before = usize::try_from(row.place - 1).unwrap_or_default();
            covered = covered.min(before);
            continue;
        };
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
            steps: serde_json::from_str(&steps).map_err(|_| unreadable())?,
        };
        runs.insert(row.place, run);
    }
    let in_order = (1..).zip(wanted);
    let in_order = in_order.filter_map(|(place, key)| Some((*key, runs.remove(&place)?)));
    Ok((in_order.collect(), covered))
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

/// Deletes the rows of runs that have any.
pub(super) async fn delete(rows: &mut PgConnection, gone: &Folded<'_>) -> Result<(), sqlx::Error> {
    if gone.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM runs USING UNNEST($1::text[], $2::text[]) AS gone (org_id, run_id)
         WHERE runs.org_id = gone.org_id AND runs.run_id = gone.run_id",
        gone.keys().map(|(org, _)| *org).bind_iter() as _,
        gone.keys().map(|(_, id)| *id).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
