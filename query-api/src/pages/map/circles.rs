//! The organization's circles, their members and the places they watch.

use schemas::OrgId;
use serde::Serialize;
use sqlx::PgPool;

/// More would not be visible on a map.
const MOST: i64 = 1_000;
/// More would be too many to choose from.
const CIRCLES: i64 = 200;

#[derive(Serialize)]
pub(super) struct Circle {
    pub(super) id: String,
    pub(super) name: String,
    members: i64,
}

#[derive(Serialize)]
pub(super) struct Member {
    id: i64,
    name: String,
    circles: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Place {
    circle: Option<String>,
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
}

pub(super) async fn find_circles(org: &OrgId, models: &PgPool) -> Result<Vec<Circle>, sqlx::Error> {
    sqlx::query_as!(
        Circle,
        r#"SELECT circle_id AS id, coalesce(name, 'Circle') AS "name!",
                  (SELECT count(*) FROM circle_members AS member
                   WHERE member.circle_id = circle.circle_id AND member.left_at IS NULL
                  ) AS "members!"
           FROM circles AS circle WHERE owner_org = $1
           ORDER BY name, circle_id LIMIT $2"#,
        org.as_str(),
        CIRCLES,
    )
    .fetch_all(models)
    .await
}

/// Returns the members of one circle, or of any.
pub(super) async fn find_members(
    org: &OrgId,
    circle: Option<&str>,
    models: &PgPool,
) -> Result<Vec<Member>, sqlx::Error> {
    sqlx::query_as!(
        Member,
        r#"SELECT account_id AS id, person.name,
                  array_agg(coalesce(circle.name, 'Circle') ORDER BY circle.name) AS "circles!"
           FROM circles AS circle
           JOIN circle_members AS member USING (circle_id)
           JOIN accounts AS person USING (account_id)
           WHERE circle.owner_org = $1 AND member.left_at IS NULL
             AND circle.circle_id = coalesce($2, circle.circle_id)
           GROUP BY account_id, person.name
           ORDER BY person.name, account_id LIMIT $3"#,
        org.as_str(),
        circle,
        MOST,
    )
    .fetch_all(models)
    .await
}

pub(super) async fn find_places(
    org: &OrgId,
    circle: Option<&str>,
    models: &PgPool,
) -> Result<Vec<Place>, sqlx::Error> {
    sqlx::query_as!(
        Place,
        "SELECT circle.name AS circle, place.name, place.lat, place.lng, place.radius_m
         FROM circles AS circle JOIN circle_places AS place USING (circle_id)
         WHERE circle.owner_org = $1 AND circle.circle_id = coalesce($2, circle.circle_id)
         ORDER BY place.name, place.place_id LIMIT $3",
        org.as_str(),
        circle,
        MOST,
    )
    .fetch_all(models)
    .await
}
