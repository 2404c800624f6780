//! What read models still contain about persons to be forgotten. The projections delete it as they
//! follow the log; the process that forgets a person has to know when that is done.

use event_log::Item;
use schemas::{AccountId, Event, StreamId};
use sqlx::{AssertSqlSafe, PgPool};

use crate::copy::idle::drop_idle_copies;
use crate::projection::bigint;

/// The projections that hold data about persons.
const PERSONAL: [&str; 5] = ["accounts", "circles", "positions", "sos_calls", "crossings"];
/// The projection that holds what runs were given.
const RUNS: &str = "runs";

/// Counts the rows that contain data about a person.
///
/// # Errors
/// If the database does not answer.
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

/// Counts the rows of a business record: one or none. `table` is the record's kind.
///
/// # Errors
/// If the database does not answer.
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

/// Counts what the read model has yet to do about a business record's events up to a sequence: none
/// once it has applied them all. A row that exists then is that of a later event. `table` is the
/// record's kind.
///
/// # Errors
/// If the database does not answer.
pub async fn left_of_record(
    pool: &PgPool,
    table: &'static str,
    record: &StreamId,
    sequence: u64,
) -> Result<i64, sqlx::Error> {
    // If one of the events is a dead letter, the projection has read on without the deletion.
    let query = format!(
        "SELECT (SELECT count(*) FROM projection_checkpoints WHERE name = $1 AND sequence < $2)
              + (SELECT count(*) FROM {table} WHERE org_id = $3 AND id = $4 AND EXISTS (
                     SELECT FROM dead_letters
                     WHERE projection = $1 AND sequence <= $2
                       AND org_id = $3 AND aggregate = $5 AND aggregate_id = $4))"
    );
    sqlx::query_scalar(AssertSqlSafe(query))
        .bind(table)
        .bind(bigint(sequence))
        .bind(record.org.as_str())
        .bind(record.id.as_str())
        .bind(record.aggregate.token())
        .fetch_one(pool)
        .await
}

/// Deletes the marker of a deleted business record: its id may identify a person. `table` is the
/// record's kind; not all kinds have such markers.
///
/// # Errors
/// If the database does not answer.
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

/// Deletes the dead letters of an aggregate's events before a sequence, and returns their number.
/// Projectors that hold in memory that other events wait behind them reload that.
///
/// # Errors
/// If the database does not answer.
pub async fn drop_dead_letters_before(
    pool: &PgPool,
    aggregate: &StreamId,
    sequence: u64,
) -> Result<u64, sqlx::Error> {
    let dropped = sqlx::query_scalar!(
        r#"WITH dropped AS (
               DELETE FROM dead_letters
               WHERE org_id = $1 AND aggregate = $2 AND aggregate_id = $3 AND sequence < $4
               RETURNING projection
           ), told AS (
               UPDATE projection_checkpoints SET generation = generation + 1
               WHERE name IN (SELECT projection FROM dropped)
           )
           SELECT count(*) AS "count!" FROM dropped"#,
        aggregate.org.as_str(),
        aggregate.aggregate.token(),
        aggregate.id,
        bigint(sequence),
    )
    .fetch_one(pool)
    .await?;
    Ok(u64::try_from(dropped).unwrap_or_default())
}

async fn drop_dead_letters(pool: &PgPool, aggregate: &StreamId) -> Result<u64, sqlx::Error> {
    drop_dead_letters_before(pool, aggregate, u64::MAX).await
}

/// Deletes what is kept about a person besides the rows: their dead letters, whose reasons may
/// quote them, and copies of the projections that hold data about persons, unless a process fills
/// them, which will reach the event that says that the person is forgotten.
///
/// # Errors
/// If the database does not answer.
pub async fn drop_what_is_kept_of(pool: &PgPool, account: AccountId) -> Result<(), sqlx::Error> {
    for stream in [StreamId::of_account(account), StreamId::of_track(account)] {
        drop_dead_letters(pool, &stream).await?;
    }
    drop_idle_copies(pool, &PERSONAL).await
}

/// Does the same for every person, and every run, that the given events report as forgotten.
///
/// Done before these events are written, so that a process killed in between does it again.
pub(crate) async fn drop_what_is_kept(pool: &PgPool, items: &[Item]) -> Result<(), sqlx::Error> {
    let mut any_runs = false;
    for recorded in items.iter().filter_map(Item::event) {
        match &recorded.event {
            Event::AccountForgotten(forgotten) => {
                drop_what_is_kept_of(pool, forgotten.account_id).await?;
            }
            Event::RunForgotten(_) => {
                drop_dead_letters(pool, &recorded.stream).await?;
                any_runs = true;
            }
            _ => {}
        }
    }
    if any_runs {
        drop_idle_copies(pool, &[RUNS]).await?;
    }
    Ok(())
}
