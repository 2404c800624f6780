//! A person's rows in the read models, in batches: no connection waits for the client, and no more
//! than a batch is in memory, however many rows there are.

use chrono::{DateTime, Utc};
use schemas::{AccountId, SYSTEM_ORG};
use serde::Serialize;
use sqlx::PgPool;

use crate::locations::bigint;

/// Positions per batch.
const POSITIONS: i64 = 1_000;
/// Rows of everything else. The events at positions in the log are read one by one.
const ROWS: i64 = 256;

/// The rows of one person.
pub(super) struct Rows {
    pub(super) models: PgPool,
    pub(super) account: AccountId,
}

/// Something that a person has many of.
pub(super) trait Many: Serialize + Sized + Send + Sync {
    /// The position of one row among the others.
    type Place: Send;

    fn place(&self) -> Self::Place;

    /// Returns a batch of rows after a place, or the first ones without it.
    fn some(
        rows: &Rows,
        after: Option<Self::Place>,
    ) -> impl Future<Output = Result<Vec<Self>, sqlx::Error>> + Send;
}

#[derive(Serialize)]
pub(super) struct Membership {
    id: String,
    name: Option<String>,
    /// Whether they created it.
    own: bool,
    /// The organization that created it, and sees its members.
    organization: Option<String>,
    joined_at: DateTime<Utc>,
    left_at: Option<DateTime<Utc>>,
    #[serde(skip)]
    sequence: i64,
}

#[derive(Serialize)]
pub(super) struct Place {
    id: String,
    circle_id: String,
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
    created_at: DateTime<Utc>,
}

#[derive(Serialize)]
pub(super) struct Pause {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    #[serde(skip)]
    sequence: i64,
}

#[derive(Serialize)]
pub(super) struct Position {
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
    speed: Option<f64>,
    place_name: Option<String>,
    battery: Option<f64>,
    recorded_at: DateTime<Utc>,
}

/// The position of a call for help.
pub(super) struct CallAt {
    pub(super) sos_id: String,
    pub(super) sequence: i64,
}

impl Many for Membership {
    type Place = i64;

    fn place(&self) -> i64 {
        self.sequence
    }

    async fn some(rows: &Rows, after: Option<i64>) -> Result<Vec<Self>, sqlx::Error> {
        sqlx::query_as!(
            Self,
            r#"SELECT circle.circle_id AS id, circle.name,
                      coalesce(circle.owner_account = $1, false) AS "own!",
                      org.name AS "organization?", mine.joined_at, mine.left_at, mine.sequence
               FROM circle_members AS mine
               JOIN circles AS circle USING (circle_id)
               LEFT JOIN organizations AS org ON org.org_id = circle.owner_org
               WHERE mine.account_id = $1 AND mine.sequence > $2
               ORDER BY mine.sequence LIMIT $3"#,
            bigint(rows.account),
            after.unwrap_or_default(),
            ROWS,
        )
        .fetch_all(&rows.models)
        .await
    }
}

impl Many for Place {
    type Place = (DateTime<Utc>, String, String);

    fn place(&self) -> Self::Place {
        (self.created_at, self.circle_id.clone(), self.id.clone())
    }

    async fn some(rows: &Rows, after: Option<Self::Place>) -> Result<Vec<Self>, sqlx::Error> {
        let (at, circle, id) = after.unwrap_or_default();
        sqlx::query_as!(
            Self,
            "SELECT place_id AS id, circle_id, name, lat, lng, radius_m, created_at
             FROM circle_places
             WHERE named_by = $1 AND (created_at, circle_id, place_id) > ($2, $3, $4)
             ORDER BY created_at, circle_id, place_id LIMIT $5",
            bigint(rows.account),
            at,
            circle,
            id,
            ROWS,
        )
        .fetch_all(&rows.models)
        .await
    }
}

impl Many for Pause {
    type Place = i64;

    fn place(&self) -> i64 {
        self.sequence
    }

    async fn some(rows: &Rows, after: Option<i64>) -> Result<Vec<Self>, sqlx::Error> {
        sqlx::query_as!(
            Self,
            r#"SELECT from_at AS "from", until_at AS until, sequence
               FROM sharing_pauses WHERE account_id = $1 AND sequence > $2
               ORDER BY sequence LIMIT $3"#,
            bigint(rows.account),
            after.unwrap_or_default(),
            ROWS,
        )
        .fetch_all(&rows.models)
        .await
    }
}

/// Newest first.
impl Many for Position {
    type Place = DateTime<Utc>;

    fn place(&self) -> DateTime<Utc> {
        self.recorded_at
    }

    async fn some(rows: &Rows, before: Option<DateTime<Utc>>) -> Result<Vec<Self>, sqlx::Error> {
        sqlx::query_as!(
            Self,
            "SELECT lat, lng, accuracy, speed, place_name, battery, recorded_at
             FROM positions
             WHERE account_id = $1 AND recorded_at < coalesce($2::timestamptz, 'infinity')
             ORDER BY recorded_at DESC LIMIT $3",
            bigint(rows.account),
            before,
            POSITIONS,
        )
        .fetch_all(&rows.models)
        .await
    }
}

impl Rows {
    pub(super) async fn calls_after(&self, after: i64) -> Result<Vec<CallAt>, sqlx::Error> {
        sqlx::query_as!(
            CallAt,
            "SELECT sos_id, sequence FROM sos_calls
             WHERE account_id = $1 AND org_id = $2 AND sequence > $3
             ORDER BY sequence LIMIT $4",
            bigint(self.account),
            SYSTEM_ORG,
            after,
            ROWS,
        )
        .fetch_all(&self.models)
        .await
    }

    pub(super) async fn crossings_after(&self, after: i64) -> Result<Vec<i64>, sqlx::Error> {
        sqlx::query_scalar!(
            "SELECT sequence FROM crossings
             WHERE account_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
            bigint(self.account),
            after,
            ROWS,
        )
        .fetch_all(&self.models)
        .await
    }
}
