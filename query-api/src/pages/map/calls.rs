//! Open calls for help, as shown on an organization's map.

use chrono::{DateTime, Utc};
use schemas::OrgId;
use service::HttpError;
use sqlx::PgPool;

use crate::sos::{LAST, MOST, OpenCall, Row, read_calls};
use crate::state::State;

/// Returns the open calls of current members of the organization's circles, newest first.
pub(super) async fn open_calls(
    state: &State,
    org: &OrgId,
    models: &PgPool,
) -> Result<Vec<OpenCall>, HttpError> {
    let rows = find(org, state.clock.now() - LAST, models).await?;
    read_calls(state, rows, |_| true).await
}

async fn find(org: &OrgId, since: DateTime<Utc>, models: &PgPool) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as!(
        Row,
        r#"SELECT call.sequence, person.name,
                  call.acknowledged_at IS NOT NULL AS "acknowledged!"
           FROM sos_calls AS call JOIN accounts AS person USING (account_id)
           WHERE call.org_id = $1 AND call.resolved_at IS NULL AND call.triggered_at > $2
             AND EXISTS (
                 SELECT FROM circle_members AS member JOIN circles AS circle USING (circle_id)
                 WHERE member.account_id = call.account_id AND member.left_at IS NULL
                   AND circle.owner_org = $1
             )
           ORDER BY call.triggered_at DESC LIMIT $3"#,
        org.as_str(),
        since,
        MOST,
    )
    .fetch_all(models)
    .await
}
