//! The times during which persons hid their positions.

use schemas::{AccountId, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use crate::projection::bigint;

pub(super) async fn begin(
    rows: &mut PgConnection,
    events: &[&Recorded],
) -> Result<(), sqlx::Error> {
    let paused = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AccountSharingPaused(paused) => Some((paused, *recorded)),
        _ => None,
    });
    let paused: Vec<_> = paused.collect();
    if paused.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO sharing_pauses (account_id, sequence, from_at, until_at)
         SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[])",
        paused
            .iter()
            .map(|(p, _)| bigint(p.account_id.0))
            .bind_iter() as _,
        paused
            .iter()
            .map(|(_, event)| bigint(event.sequence))
            .bind_iter() as _,
        paused.iter().map(|(_, event)| event.time).bind_iter() as _,
        paused.iter().map(|(p, _)| p.until).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Each pause ends with the next pause or the next resuming, if it has not expired before.
pub(super) async fn end(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| Some((account(event)?, event)))
        .collect();
    if ends.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "WITH endings AS (
             SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::timestamptz[])
                               AS ending (account_id, sequence, at)
         )
         UPDATE sharing_pauses AS pause SET until_at = ended.at
         FROM (
             SELECT open.account_id, open.sequence, min(ending.at) AS at
             FROM endings AS ending JOIN sharing_pauses AS open
               ON open.account_id = ending.account_id AND open.sequence < ending.sequence
             GROUP BY open.account_id, open.sequence
         ) AS ended
         WHERE pause.account_id = ended.account_id AND pause.sequence = ended.sequence
           AND ended.at < pause.until_at",
        ends.iter()
            .map(|(account, _)| bigint(account.0))
            .bind_iter() as _,
        ends.iter()
            .map(|(_, event)| bigint(event.sequence))
            .bind_iter() as _,
        ends.iter().map(|(_, event)| event.time).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

fn account(recorded: &Recorded) -> Option<AccountId> {
    match &recorded.event {
        Event::AccountSharingPaused(paused) => Some(paused.account_id),
        Event::AccountSharingResumed(resumed) => Some(resumed.account_id),
        _ => None,
    }
}
