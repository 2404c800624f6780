//! `GET /location/latest`: the last positions of those in the caller's circles.

use axum::Json;
use axum::extract::State as AppState;
use chrono::{DateTime, Utc};
use schemas::AccountId;
use service::HttpError;
use sqlx::PgPool;

use super::{PROJECTIONS, Position, Positions, bigint};
use crate::reading::PersonalReading;
use crate::state::State;

/// Maximum number of persons shown: those whose last positions are the newest.
const PERSONS: i64 = 1_000;

pub(super) async fn get_latest(
    reading: PersonalReading,
    AppState(state): AppState<State>,
) -> Result<Json<Positions>, HttpError> {
    let models = reading.models(PROJECTIONS).await?;
    let data = find_latest(reading.account(), state.clock.now(), models).await?;
    Ok(Json(Positions { data }))
}

/// Returns the newest fix of each visible person, newest first. A fix that arrived late is not the
/// newest.
///
/// What exactly may be seen of a person is only found out for as many as are shown. The others in
/// the viewer's circles cost a look at their last position, and those who hide are passed over.
async fn find_latest(
    viewer: AccountId,
    now: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Position>, sqlx::Error> {
    sqlx::query_as!(
        Position,
        r#"SELECT person.account_id AS "user_id!", person.name AS "name!", fix.lat AS "lat!",
                  fix.lng AS "lng!", fix.accuracy, fix.speed, fix.place_name, fix.battery,
                  fix.recorded_at AS "recorded_at!"
           FROM (
               SELECT near.account_id
               FROM (
                   SELECT theirs.account_id
                   FROM circle_members AS mine JOIN circle_members AS theirs USING (circle_id)
                   WHERE mine.account_id = $1 AND mine.left_at IS NULL AND theirs.left_at IS NULL
                   UNION SELECT $1
               ) AS near
               CROSS JOIN LATERAL (
                   SELECT p.recorded_at FROM positions AS p
                   WHERE p.account_id = near.account_id
                   ORDER BY p.recorded_at DESC LIMIT 1
               ) AS last
               WHERE near.account_id = $1 OR NOT EXISTS (
                   SELECT FROM sharing_pauses AS pause
                   WHERE pause.account_id = near.account_id AND $2 < pause.until_at
               )
               ORDER BY last.recorded_at DESC, near.account_id LIMIT $3
           ) AS near
           JOIN accounts AS person USING (account_id)
           CROSS JOIN LATERAL (
               SELECT newest.*
               FROM unnest(visible_times($1, person.account_id, $2)) AS visible
               CROSS JOIN LATERAL (
                   SELECT * FROM positions AS p
                   WHERE p.account_id = person.account_id
                     AND p.recorded_at >= coalesce(lower(visible), '-infinity')
                     AND p.recorded_at < coalesce(upper(visible), 'infinity')
                   ORDER BY p.recorded_at DESC LIMIT 1
               ) AS newest
               ORDER BY newest.recorded_at DESC LIMIT 1
           ) AS fix
           ORDER BY fix.recorded_at DESC, person.account_id"#,
        bigint(viewer),
        now,
        PERSONS,
    )
    .fetch_all(models)
    .await
}
