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
use crate::paging::{BY_TIME_AND_NAME, Listed, Parameters, SortKey};
use crate::progress::Projection;
use crate::reading::PersonalReading;
use crate::search::{ShortQuery, find_short_page};

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
    /// The beginning of its name, if the list is ordered by it.
    #[serde(skip)]
    name_key: Option<String>,
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

    fn sort_key(&self) -> SortKey {
        SortKey::of(self.name_key.as_deref(), self.created_at)
    }
}

pub(super) async fn list_circles(
    reading: PersonalReading,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query = ShortQuery::from_parameters(&Parameters::of(&uri)?, BY_TIME_AND_NAME)?;
    let needed = [
        Projection::Accounts,
        Projection::Circles,
        Projection::Organizations,
    ];
    let models = reading.models(&needed).await?;
    let total = count_circles(reading.account(), &query, models).await?;
    let circles = find_circles(reading.account(), &query, models).await?;
    Ok(query.page.answer(&uri, circles, total))
}

/// Returns the number of a person's circles with the query's text in their name.
async fn count_circles(
    account: AccountId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "total!"
           FROM circle_members AS mine JOIN circles AS circle USING (circle_id)
           WHERE mine.account_id = $1 AND mine.left_at IS NULL
             AND ($2::text IS NULL OR circle.name ILIKE $2)"#,
        bigint(account),
        query.pattern(),
    )
    .fetch_one(models)
    .await
}

/// Returns a page of those circles.
async fn find_circles(
    account: AccountId,
    query: &ShortQuery,
    models: &PgPool,
) -> Result<Vec<Circle>, sqlx::Error> {
    find_short_page!(
        Circle:
        r#"id AS "id!", name AS "name?",
           (SELECT org.name FROM organizations AS org
            WHERE org.org_id = page.owner_org) AS "organization?",
           (SELECT coalesce(json_agg(json_build_object('id', member.account_id,
                                                       'name', member.name)
                                     ORDER BY member.account_id), '[]')
            FROM (
                SELECT account_id, a.name
                FROM circle_members AS m JOIN accounts AS a USING (account_id)
                WHERE m.circle_id = page.id AND m.left_at IS NULL
                ORDER BY account_id
                LIMIT least($9::bigint, $10::bigint / (SELECT count(*) FROM page))
            ) AS member
           ) AS "members!: Json<Vec<Member>>",
           created_at AS "created_at!", name_key"#
        from r"SELECT circle.circle_id AS id, circle.name, circle.owner_org, circle.created_at
               FROM circle_members AS mine JOIN circles AS circle USING (circle_id)
               WHERE mine.account_id = $1 AND mine.left_at IS NULL
                 AND ($2::text IS NULL OR circle.name ILIKE $2)",
        (bigint(account), query, MEMBERS, MEMBERS_IN_ALL), models
    )
}
