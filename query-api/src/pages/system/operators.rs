//! The operators' view: all projections, and the dead letters of all organizations.

use std::collections::HashMap;

use access::Operator;
use chrono::{DateTime, Utc};
use minijinja::{Value, context};
use schemas::Log;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::operations;
use crate::pages::frame::shown;
use crate::state::State;

/// Maximum number of dead letters on the page, for all kinds of projections together.
const SHOWN: i64 = 100;

#[derive(Serialize)]
struct Projection {
    name: String,
    log: String,
    position: Option<String>,
    lag: Option<u64>,
    generation: i64,
    /// Dead letters that can be retried or skipped.
    letters: i64,
    /// Events that wait behind them.
    waiting: i64,
    /// The last of the dead letters that an action on all of them applies to.
    up_to: i64,
}

#[derive(Serialize)]
struct Letter {
    projection: String,
    sequence: i64,
    org_id: Option<String>,
    subject: String,
    event_type: Option<String>,
    reason: String,
    attempts: i32,
    waiting: i64,
    created_at: DateTime<Utc>,
}

/// Reads everything that the page only shows to operators.
pub(super) async fn look(_: &Operator, state: &State, models: &PgPool) -> Result<Value, HttpError> {
    // Read before their outcomes: once all have ended, the page stops polling, so it must not show
    // older data beside their end.
    let operations = operations::last(models).await?;
    let letters = letters(models).await?;
    let projections = projections(state, models).await?;
    let all: i64 = projections.iter().map(|one| one.letters).sum();
    Ok(context! {
        projections => shown(&projections),
        operations => shown(operations),
        letters => shown(&letters),
        all,
    })
}

async fn projections(state: &State, models: &PgPool) -> Result<Vec<Projection>, sqlx::Error> {
    let mut ends = HashMap::new();
    for (log, name) in [
        (Log::Events, "events"),
        (Log::Locations, "locations"),
        (Log::Deliveries, "deliveries"),
    ] {
        if let Ok(end) = state.log.end(log).await {
            ends.insert(name, end);
        }
    }
    let found = sqlx::query!(
        r#"SELECT known.name, known.log, known.epoch, known.sequence, known.generation,
                  count(letters.reason) AS "letters!",
                  count(letters.behind) AS "waiting!",
                  coalesce(max(letters.sequence) FILTER (WHERE letters.reason IS NOT NULL), 0)
                      AS "up_to!"
           FROM projection_checkpoints AS known
           LEFT JOIN dead_letters AS letters ON letters.projection = known.name
           GROUP BY known.name ORDER BY known.name"#
    )
    .fetch_all(models)
    .await?;
    let projections = found.into_iter().map(|row| {
        let sequence = u64::try_from(row.sequence).unwrap_or_default();
        let end = ends.get(row.log.as_str());
        let end = end.filter(|end| i64::from(end.epoch()) == row.epoch);
        Projection {
            position: end.map(|end| state.log.position(end.log(), sequence).to_string()),
            lag: end.map(|end| end.sequence().saturating_sub(sequence)),
            name: row.name,
            log: row.log,
            generation: row.generation,
            letters: row.letters,
            waiting: row.waiting,
            up_to: row.up_to,
        }
    });
    Ok(projections.collect())
}

async fn letters(models: &PgPool) -> Result<Vec<Letter>, sqlx::Error> {
    sqlx::query_as!(
        Letter,
        r#"SELECT projection, sequence, org_id,
                  coalesce(aggregate || '/' || aggregate_id, subject) AS "subject!",
                  event_type, reason AS "reason!", attempts, created_at,
                  (SELECT count(*) FROM dead_letters AS later
                   WHERE later.projection = letters.projection
                     AND later.behind = letters.sequence) AS "waiting!"
           FROM dead_letters AS letters WHERE reason IS NOT NULL
           ORDER BY projection, sequence LIMIT $1"#,
        SHOWN,
    )
    .fetch_all(models)
    .await
}
