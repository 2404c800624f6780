//! `GET /sos`: the open calls for help of the caller and of those who alerted the caller.

use axum::Json;
use axum::extract::State as AppState;
use chrono::{DateTime, Utc};
use schemas::{AccountId, SYSTEM_ORG};
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::{LAST, MOST, OpenCall, Row, read_calls};
use crate::locations::bigint;
use crate::progress::Projection;
use crate::reading::PersonalReading;
use crate::state::State;

const PROJECTIONS: &[Projection] = &[
    Projection::Accounts,
    Projection::Circles,
    Projection::SosCalls,
];

/// Calls per person, so that one person's many calls do not hide another's.
const OF_ONE: i64 = 10;

#[derive(Debug, Serialize)]
pub(super) struct OpenCalls {
    data: Vec<OpenCall>,
}

pub(super) async fn list_open(
    reading: PersonalReading,
    AppState(state): AppState<State>,
) -> Result<Json<OpenCalls>, HttpError> {
    let models = reading.models(PROJECTIONS).await?;
    let viewer = reading.account();
    let rows = find(viewer, state.clock.now() - LAST, models).await?;
    // Persons who joined after the call were not alerted by it.
    let is_for =
        |call: &schemas::sos::Triggered| call.user_id == viewer || call.audience.contains(&viewer);
    let data = read_calls(&state, rows, is_for).await?;
    Ok(Json(OpenCalls { data }))
}

/// The open calls of the viewer and of those who now share a circle with the viewer, newest first.
///
/// Of the members of the viewer's circles, who may be many, only those with an open call are
/// considered, all of them: a call must not be missed because a circle is large.
async fn find(
    viewer: AccountId,
    since: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as!(
        Row,
        r#"SELECT call.sequence AS "sequence!", person.name AS "name!",
                  call.acknowledged_at IS NOT NULL AS "acknowledged!"
           FROM (
               SELECT theirs.account_id
               FROM circle_members AS mine JOIN circle_members AS theirs USING (circle_id)
               WHERE mine.account_id = $1 AND mine.left_at IS NULL AND theirs.left_at IS NULL
                 AND EXISTS (
                     SELECT FROM sos_calls AS open
                     WHERE open.account_id = theirs.account_id AND open.org_id = $2
                       AND open.resolved_at IS NULL AND open.triggered_at > $3
                 )
               UNION SELECT $1
           ) AS near
           JOIN accounts AS person USING (account_id)
           CROSS JOIN LATERAL (
               SELECT sequence, acknowledged_at, triggered_at FROM sos_calls
               WHERE account_id = near.account_id AND org_id = $2
                 AND resolved_at IS NULL AND triggered_at > $3
               ORDER BY triggered_at DESC LIMIT $4
           ) AS call
           ORDER BY call.triggered_at DESC LIMIT $5"#,
        bigint(viewer),
        SYSTEM_ORG,
        since,
        OF_ONE,
        MOST,
    )
    .fetch_all(models)
    .await
}
