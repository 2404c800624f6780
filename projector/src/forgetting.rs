//! What read models still know of those who are to be forgotten. The projections delete it by
//! themselves, as the log says; whoever forgets somebody has to know when that is done.

use event_log::Item;
use schemas::{AccountId, Event, StreamId};
use sqlx::{AssertSqlSafe, PgPool};

use crate::copy::idle::drop_idle_copies;
use crate::projection::bigint;

/// The projections that hold something of persons.
const PERSONAL: [&str; 5] = ["accounts", "circles", "positions", "sos_calls", "crossings"];

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
             + (SELECT count(*) FROM sharing_pauses WHERE account_id = $1)
             + (SELECT count(*) FROM sos_calls WHERE account_id = $1)
             + (SELECT count(*) FROM crossings WHERE account_id = $1) AS "rows!"
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

/// Throws away the note that a business record is gone: its id may tell who it was. `table` is the
/// record's kind, of which not all have such notes.
///
/// # Errors
/// Where the database does not answer.
pub async fn drop_deletion(
    pool: &PgPool,
    table: &'static str,
    record: &StreamId,
) -> Result<(), sqlx::Error> {
    if !["companies", "deals", "contacts"].contains(&table) {
        return Ok(());
    }
    let query = format!("DELETE FROM deleted_{table} WHERE org_id = $1 AND id = $2");
    sqlx::query(AssertSqlSafe(query))
        .bind(record.org.as_str())
        .bind(record.id.as_str())
        .execute(pool)
        .await
        .map(drop)
}

/// Throws away the events of an aggregate that were kept aside, and answers how many there were.
/// Whoever holds in memory that others wait behind them reads that anew.
///
/// # Errors
/// Where the database does not answer.
pub async fn drop_dead_letters(pool: &PgPool, aggregate: &StreamId) -> Result<u64, sqlx::Error> {
    let dropped = sqlx::query_scalar!(
        r#"WITH dropped AS (
               DELETE FROM dead_letters
               WHERE org_id = $1 AND aggregate = $2 AND aggregate_id = $3
               RETURNING projection
           ), told AS (
               UPDATE projection_checkpoints SET generation = generation + 1
               WHERE name IN (SELECT projection FROM dropped)
           )
           SELECT count(*) AS "count!" FROM dropped"#,
        aggregate.org.as_str(),
        aggregate.aggregate.token(),
        aggregate.id,
    )
    .fetch_one(pool)
    .await?;
    Ok(u64::try_from(dropped).unwrap_or_default())
}

/// Throws away what is kept of a person beside the rows: their dead letters, whose reasons may quote
/// them, and copies of the projections that hold something of persons, unless somebody fills them,
/// who will come to the event that says that the person is forgotten.
///
/// # Errors
/// Where the database does not answer.
pub async fn drop_what_is_kept_of(pool: &PgPool, account: AccountId) -> Result<(), sqlx::Error> {
    for stream in [StreamId::of_account(account), StreamId::of_track(account)] {
        drop_dead_letters(pool, &stream).await?;
    }
    drop_idle_copies(pool, &PERSONAL).await
}

/// The same of all whom some events say are forgotten.
///
/// Done before these events are written, so that whoever is killed in between does it again.
pub(crate) async fn drop_what_is_kept(pool: &PgPool, items: &[Item]) -> Result<(), sqlx::Error> {
    for item in items {
        if let Item::Event(recorded) = item
            && let Event::AccountForgotten(forgotten) = &recorded.event
        {
            drop_what_is_kept_of(pool, forgotten.account_id).await?;
        }
    }
    Ok(())
}
