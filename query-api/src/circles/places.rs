//! `GET /circles/{id}/places`

use axum::Json;
use chrono::{DateTime, Utc};
use schemas::AccountId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use crate::locations::bigint;
use crate::progress::Projection;
use crate::reading::{PersonalReading, ResourceId};

#[derive(Debug, Serialize)]
pub(super) struct Places {
    data: Vec<Place>,
}

#[derive(Debug, Serialize)]
struct Place {
    id: String,
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
    created_at: DateTime<Utc>,
}

/// Returns 404 to all non-members, whether or not the circle exists.
pub(super) async fn list_places(
    reading: PersonalReading,
    ResourceId(id): ResourceId,
) -> Result<Json<Places>, HttpError> {
    let models = reading.models(&[Projection::Circles]).await?;
    if !is_member(reading.account(), &id, models).await? {
        return Err(HttpError::not_found("circle not found"));
    }
    let data = find_places(&id, models).await?;
    Ok(Json(Places { data }))
}

async fn is_member(account: AccountId, circle: &str, models: &PgPool) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM circle_members
               WHERE circle_id = $1 AND account_id = $2 AND left_at IS NULL
           ) AS "member!""#,
        circle,
        bigint(account),
    )
    .fetch_one(models)
    .await
}

async fn find_places(circle: &str, models: &PgPool) -> Result<Vec<Place>, sqlx::Error> {
    sqlx::query_as!(
        Place,
        "SELECT place_id AS id, name, lat, lng, radius_m, created_at FROM circle_places
         WHERE circle_id = $1 ORDER BY created_at DESC, place_id",
        circle,
    )
    .fetch_all(models)
    .await
}
