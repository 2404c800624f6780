//! What read models still know of those who are to be forgotten. The projections delete it by
//! themselves, as the log says; whoever forgets somebody has to know when that is done.

use schemas::{AccountId, StreamId};
use sqlx::{AssertSqlSafe, PgPool};

use crate::projection::bigint;

/// How many rows tell something of a person.
///
/// # Errors
/// Where the database does not answer.
pub async fn rows_about(pool: &PgPool, account: AccountId) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        SELECT (SELECT count(*) FROM accounts WHERE account_id = $1)
             + (SELECT count(*) FROM positions WHERE account_id = $1)
             + (SELECT count(*) FROM circle_members WHERE account_id = $1)
             + (SELECT count(*) FROM circle_places WHERE named_by = $1)
             + (SELECT count(*) FROM sharing_pauses WHERE account_id = $1) AS "rows!"
        "#,
        bigint(account.0),
    )
    .fetch_one(pool)
    .await
}

/// How many rows a business record has: one or none. `table` is the record's kind.
///
/// # Errors
/// Where the database does not answer.
pub async fn rows_of_record(
    pool: &PgPool,
    table: &'static str,
    record: &StreamId,
) -> Result<i64, sqlx::Error> {
    let query = format!("SELECT count(*) FROM {table} WHERE org_id = $1 AND id = $2");
    sqlx::query_scalar(AssertSqlSafe(query))
        .bind(record.org.as_str())
        .bind(record.id.as_str())
        .fetch_one(pool)
        .await
}

/// Throws away the events of an aggregate that were kept aside, and answers how many there were.
///
/// # Errors
/// Where the database does not answer.
pub async fn drop_dead_letters(pool: &PgPool, aggregate: &StreamId) -> Result<u64, sqlx::Error> {
    let dropped = sqlx::query!(
        "DELETE FROM dead_letters WHERE org_id = $1 AND aggregate = $2 AND aggregate_id = $3",
        aggregate.org.as_str(),
        aggregate.aggregate.token(),
        aggregate.id,
    )
    .execute(pool)
    .await?;
    Ok(dropped.rows_affected())
}
