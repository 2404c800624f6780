//! `GET /location/trails`: the paths of everyone in the caller's circles within the last hour. The
//! same for an organization's map.

use axum::Json;
use axum::extract::State as AppState;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::{PROJECTIONS, bigint};
use crate::reading::PersonalReading;
use crate::state::State;

/// Maximum number of persons, and of fixes considered per person: one fix per second.
const PERSONS: i64 = 1_000;
const LOOKED_AT: i64 = 3_600;
/// Maximum number of fixes per response. The more persons, the farther apart their fixes are.
const FIXES: i64 = 12_000;
/// Minimum time between a person's fixes, in seconds: closer ones could not be distinguished.
const LEAST_STEP: i64 = 15;

#[derive(Debug, Serialize)]
pub(super) struct Trails {
    data: Vec<Trail>,
}

/// The path of a person, oldest first. Empty for a person who may be seen but has no fix.
#[derive(Debug, Serialize)]
pub(crate) struct Trail {
    user_id: i64,
    name: String,
    fixes: Vec<Fix>,
}

#[derive(Debug, Serialize)]
struct Fix {
    lat: f64,
    lng: f64,
    recorded_at: DateTime<Utc>,
}

/// A fix with its person. All of it is absent if there is none.
struct Row {
    user_id: i64,
    name: String,
    lat: Option<f64>,
    lng: Option<f64>,
    recorded_at: Option<DateTime<Utc>>,
}

pub(super) async fn get_trails(
    reading: PersonalReading,
    AppState(state): AppState<State>,
) -> Result<Json<Trails>, HttpError> {
    let models = reading.models(PROJECTIONS).await?;
    let viewer = bigint(reading.account());
    let rows = find_for_person(viewer, state.clock.now(), models).await?;
    let data = gathered(rows);
    Ok(Json(Trails { data }))
}

/// Returns the trails that an organization may see, of members of one of its circles or of any.
pub(crate) async fn of_organization(
    org: &OrgId,
    circle: Option<&str>,
    now: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Trail>, sqlx::Error> {
    let rows = find_for_organization(org, circle, now, models).await?;
    Ok(gathered(rows))
}

/// Groups the rows, in which those of one person are adjacent.
fn gathered(rows: Vec<Row>) -> Vec<Trail> {
    let mut trails: Vec<Trail> = Vec::new();
    for row in rows {
        let fix = match (row.lat, row.lng, row.recorded_at) {
            (Some(lat), Some(lng), Some(recorded_at)) => Some(Fix {
                lat,
                lng,
                recorded_at,
            }),
            _ => None,
        };
        match trails.last_mut() {
            Some(last) if last.user_id == row.user_id => last.fixes.extend(fix),
            _ => trails.push(Trail {
                user_id: row.user_id,
                name: row.name,
                fixes: fix.into_iter().collect(),
            }),
        }
    }
    trails
}

/// Returns the newest fix of each time step, within the times that the viewer may see.
async fn find_for_person(
    viewer: i64,
    now: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as!(
        Row,
        r#"SELECT person.account_id AS user_id, person.name, fix.lat AS "lat?", fix.lng AS "lng?",
                  fix.recorded_at AS "recorded_at?"
           FROM (
               SELECT account_id, greatest($5, 3600 * count(*) OVER () / $6) AS step
               FROM (
                   SELECT theirs.account_id
                   FROM circle_members AS mine JOIN circle_members AS theirs USING (circle_id)
                   WHERE mine.account_id = $1 AND mine.left_at IS NULL AND theirs.left_at IS NULL
                   UNION SELECT $1
                   ORDER BY account_id LIMIT $3
               ) AS those
           ) AS near
           JOIN accounts AS person USING (account_id)
           CROSS JOIN LATERAL visible_times($1, person.account_id, $2) AS times
           LEFT JOIN LATERAL (
               SELECT DISTINCT ON (nth) lat, lng, recorded_at
               FROM unnest(times) AS visible
               CROSS JOIN LATERAL (
                   SELECT p.lat, p.lng, p.recorded_at,
                          floor(extract(epoch FROM p.recorded_at) / near.step) AS nth
                   FROM positions AS p
                   WHERE p.account_id = person.account_id
                     AND p.recorded_at >= greatest(lower(visible), $2 - interval '1 hour')
                     AND p.recorded_at < coalesce(upper(visible), 'infinity')
                   ORDER BY p.recorded_at DESC LIMIT $4
               ) AS looked_at
               ORDER BY nth, recorded_at DESC
           ) AS fix ON true
           WHERE NOT isempty(times)
           ORDER BY person.account_id, fix.recorded_at"#,
        viewer,
        now,
        PERSONS,
        LOOKED_AT,
        LEAST_STEP,
        FIXES,
    )
    .fetch_all(models)
    .await
}

/// The same for an organization, by the circles that it owns.
async fn find_for_organization(
    org: &OrgId,
    circle: Option<&str>,
    now: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as!(
        Row,
        r#"SELECT person.account_id AS user_id, person.name, fix.lat AS "lat?", fix.lng AS "lng?",
                  fix.recorded_at AS "recorded_at?"
           FROM (
               SELECT account_id, greatest($5, 3600 * count(*) OVER () / $6) AS step
               FROM (
                   SELECT DISTINCT member.account_id
                   FROM circles AS circle JOIN circle_members AS member USING (circle_id)
                   WHERE circle.owner_org = $1 AND member.left_at IS NULL
                     AND circle.circle_id = coalesce($7, circle.circle_id)
                   ORDER BY account_id LIMIT $3
               ) AS those
           ) AS near
           JOIN accounts AS person USING (account_id)
           CROSS JOIN LATERAL visible_times_of_organization($1, person.account_id, $2) AS times
           LEFT JOIN LATERAL (
               SELECT DISTINCT ON (nth) lat, lng, recorded_at
               FROM unnest(times) AS visible
               CROSS JOIN LATERAL (
                   SELECT p.lat, p.lng, p.recorded_at,
                          floor(extract(epoch FROM p.recorded_at) / near.step) AS nth
                   FROM positions AS p
                   WHERE p.account_id = person.account_id
                     AND p.recorded_at >= greatest(lower(visible), $2 - interval '1 hour')
                     AND p.recorded_at < coalesce(upper(visible), 'infinity')
                   ORDER BY p.recorded_at DESC LIMIT $4
               ) AS looked_at
               ORDER BY nth, recorded_at DESC
           ) AS fix ON true
           WHERE NOT isempty(times)
           ORDER BY person.account_id, fix.recorded_at"#,
        org.as_str(),
        now,
        PERSONS,
        LOOKED_AT,
        LEAST_STEP,
        FIXES,
        circle,
    )
    .fetch_all(models)
    .await
}
