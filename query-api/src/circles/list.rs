//! `GET /circles`

use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::AccountId;
use serde::{Deserialize, Serialize};
use service::HttpError;
use sqlx::PgPool;
use sqlx::types::Json;

use crate::locations::bigint;
use crate::paging::{Listed, Page, Parameters};
use crate::progress::Projection;
use crate::reading::PersonalReading;

/// Maximum number of members shown of a circle, and of all circles of a page together: the more
/// circles, the fewer members of each.
const MEMBERS: i64 = 1_000;
const MEMBERS_IN_ALL: i64 = 10_000;

#[derive(Debug, Serialize)]
struct Circle {
    id: String,
    /// Absent once the person who gave it was forgotten.
    name: Option<String>,
    /// The organization that sees where its members are, if any.
    organization: Option<String>,
    members: Json<Vec<Member>>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Member {
    id: u64,
    name: String,
}

impl Listed for Circle {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

pub(super) async fn list_circles(
    reading: PersonalReading,
    uri: Uri,
) -> Result<Response, HttpError> {
    let page = Page::from_parameters(&Parameters::of(&uri)?)?;
    let needed = [
        Projection::Accounts,
        Projection::Circles,
        Projection::Organizations,
    ];
    let models = reading.models(&needed).await?;
    let total = count_circles(reading.account(), models).await?;
    let circles = find_circles(reading.account(), &page, models).await?;
    Ok(page.answer(&uri, circles, total))
}

async fn count_circles(account: AccountId, models: &PgPool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!" FROM circle_members
           WHERE account_id = $1 AND left_at IS NULL"#,
        bigint(account),
    )
    .fetch_one(models)
    .await
}

async fn find_circles(
    account: AccountId,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Circle>, sqlx::Error> {
    sqlx::query_as!(
        Circle,
        r#"SELECT circle.circle_id AS "id!", circle.name AS "name?", org.name AS "organization?",
                  (SELECT coalesce(json_agg(json_build_object('id', member.account_id,
                                                              'name', member.name)
                                            ORDER BY member.account_id), '[]')
                   FROM (
                       SELECT account_id, a.name
                       FROM circle_members AS m JOIN accounts AS a USING (account_id)
                       WHERE m.circle_id = circle.circle_id AND m.left_at IS NULL
                       ORDER BY account_id LIMIT least($6::bigint, $7::bigint / circle.shown)
                   ) AS member
                  ) AS "members!: Json<Vec<Member>>",
                  circle.created_at AS "created_at!"
           FROM (
               SELECT page.*, count(*) OVER () AS shown
               FROM (
                   SELECT circle.circle_id, circle.name, circle.owner_org, circle.created_at
                   FROM circle_members AS mine
                   JOIN circles AS circle USING (circle_id)
                   WHERE mine.account_id = $1 AND mine.left_at IS NULL
                     AND circle.created_at <= coalesce($2::timestamptz, 'infinity')
                     AND (circle.created_at < coalesce($2::timestamptz, 'infinity')
                          OR circle.circle_id > $3)
                   ORDER BY circle.created_at DESC, circle.circle_id OFFSET $4 LIMIT $5
               ) AS page
           ) AS circle
           LEFT JOIN organizations AS org ON org.org_id = circle.owner_org
           ORDER BY circle.created_at DESC, circle.circle_id"#,
        bigint(account),
        page.after_time(),
        page.after_id(),
        page.offset(),
        page.fetched(),
        MEMBERS,
        MEMBERS_IN_ALL,
    )
    .fetch_all(models)
    .await
}
