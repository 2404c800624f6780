//! `GET /location/history?user_id&from&to&limit`: past positions of a person.

use axum::Json;
use axum::extract::State as AppState;
use axum::http::Uri;
use chrono::{DateTime, Utc};
use schemas::AccountId;
use service::HttpError;
use sqlx::PgPool;

use super::{PROJECTIONS, Position, Positions, bigint};
use crate::paging::{Parameters, time_of};
use crate::reading::PersonalReading;
use crate::state::State;

const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 1_000;

/// The requested part of the history.
struct HistoryQuery {
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    limit: i64,
}

impl HistoryQuery {
    fn read(parameters: &Parameters) -> Result<Self, HttpError> {
        let limit = parameters.count("limit", DEFAULT_LIMIT)?;
        if limit > MAX_LIMIT {
            let message = format!("limit: must be {MAX_LIMIT} or less, not {limit}");
            return Err(HttpError::bad_request(message));
        }
        Ok(Self {
            from: time(parameters, "from")?,
            to: time(parameters, "to")?,
            limit,
        })
    }
}

fn time(parameters: &Parameters, name: &str) -> Result<Option<DateTime<Utc>>, HttpError> {
    let Some(text) = parameters.one(name)? else {
        return Ok(None);
    };
    let time = time_of(text).ok_or_else(|| {
        let form = "must be an RFC 3339 time such as 2026-11-21T09:30:00Z";
        HttpError::bad_request(format!("{name} {form}"))
    })?;
    Ok(Some(time))
}

/// The requested person, or the viewer if none is named.
fn subject(parameters: &Parameters, viewer: AccountId) -> Result<AccountId, HttpError> {
    match parameters.one("user_id")? {
        None => Ok(viewer),
        Some(text) => {
            let id = text.parse().ok().filter(|id| *id >= 1);
            let id = id.ok_or_else(|| {
                HttpError::bad_request("user_id: must be a person's id (a positive integer)")
            })?;
            Ok(AccountId(id))
        }
    }
}

pub(super) async fn get_history(
    reading: PersonalReading,
    AppState(state): AppState<State>,
    uri: Uri,
) -> Result<Json<Positions>, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let viewer = reading.account();
    let subject = subject(&parameters, viewer)?;
    let models = reading.models(PROJECTIONS).await?;
    if !are_connected(viewer, subject, models).await? {
        return Err(HttpError::forbidden("you may not see this person"));
    }
    let query = HistoryQuery::read(&parameters)?;
    let data = find_history(viewer, subject, &query, state.clock.now(), models).await?;
    Ok(Json(Positions { data }))
}

/// Whether both share a circle. A nonexistent person is treated like a stranger.
async fn are_connected(
    viewer: AccountId,
    subject: AccountId,
    models: &PgPool,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT $1::bigint = $2::bigint OR EXISTS (
               SELECT FROM circle_members AS mine JOIN circle_members AS theirs USING (circle_id)
               WHERE mine.account_id = $1 AND theirs.account_id = $2
                 AND mine.left_at IS NULL AND theirs.left_at IS NULL
           ) AS "connected!""#,
        bigint(viewer),
        bigint(subject),
    )
    .fetch_one(models)
    .await
}

async fn find_history(
    viewer: AccountId,
    subject: AccountId,
    query: &HistoryQuery,
    now: DateTime<Utc>,
    models: &PgPool,
) -> Result<Vec<Position>, sqlx::Error> {
    sqlx::query_as!(
        Position,
        r#"SELECT person.account_id AS "user_id!", person.name AS "name!", fix.lat AS "lat!",
                  fix.lng AS "lng!", fix.accuracy, fix.speed, fix.place_name, fix.battery,
                  fix.recorded_at AS "recorded_at!"
           FROM accounts AS person
           CROSS JOIN LATERAL unnest(visible_times($1, $2, $5)) AS visible
           CROSS JOIN LATERAL (
               SELECT * FROM positions AS p
               WHERE p.account_id = person.account_id
                 AND p.recorded_at >= coalesce(lower(visible), '-infinity')
                 AND p.recorded_at < coalesce(upper(visible), 'infinity')
                 AND p.recorded_at >= coalesce($3::timestamptz, '-infinity')
                 AND p.recorded_at <= coalesce($4::timestamptz, 'infinity')
               ORDER BY p.recorded_at DESC LIMIT $6
           ) AS fix
           WHERE person.account_id = $2
           ORDER BY fix.recorded_at DESC LIMIT $6"#,
        bigint(viewer),
        bigint(subject),
        query.from,
        query.to,
        now,
        query.limit,
    )
    .fetch_all(models)
    .await
}
