//! `GET /dashboard/map`: where the members of the organization's circles are.

use axum::response::Response;
use minijinja::context;
use schemas::OrgId;
use serde::Serialize;
use sqlx::PgPool;

use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::progress::Projection;

/// More would not be seen on a map.
const MOST: i64 = 1_000;

#[derive(Serialize)]
struct Member {
    id: i64,
    name: String,
}

#[derive(Serialize)]
struct Place {
    circle: Option<String>,
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
}

pub(super) async fn show_map(visit: Visit) -> Result<Response, Instead> {
    let read_from = [Projection::Accounts, Projection::Circles];
    let models = visit.models(&read_from).await?;
    let members = find_members(visit.org(), models).await?;
    let places = find_places(visit.org(), models).await?;
    let page = visit.page("map.html", "Map", "map").await?;
    let page = page.with_script("map.js").with_script("live_map.js");
    Ok(page.with_style("app.css").show(context! {
        members => shown(&members),
        places => shown(&places),
    })?)
}

async fn find_members(org: &OrgId, models: &PgPool) -> Result<Vec<Member>, sqlx::Error> {
    sqlx::query_as!(
        Member,
        "SELECT account_id AS id, person.name FROM accounts AS person
         WHERE account_id IN (
             SELECT member.account_id
             FROM circles AS circle JOIN circle_members AS member USING (circle_id)
             WHERE circle.owner_org = $1 AND member.left_at IS NULL
         )
         ORDER BY person.name, account_id LIMIT $2",
        org.as_str(),
        MOST,
    )
    .fetch_all(models)
    .await
}

async fn find_places(org: &OrgId, models: &PgPool) -> Result<Vec<Place>, sqlx::Error> {
    sqlx::query_as!(
        Place,
        "SELECT circle.name AS circle, place.name, place.lat, place.lng, place.radius_m
         FROM circles AS circle JOIN circle_places AS place USING (circle_id)
         WHERE circle.owner_org = $1
         ORDER BY place.name, place.place_id LIMIT $2",
        org.as_str(),
        MOST,
    )
    .fetch_all(models)
    .await
}
