//! Current and former members of circles.

use chrono::{DateTime, Utc};
use schemas::{AccountId, CircleId, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use crate::projection::bigint;

struct Move<'e> {
    circle: &'e CircleId,
    account: AccountId,
    sequence: u64,
    at: DateTime<Utc>,
}

pub(super) async fn join(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let joined = events.iter().filter_map(|recorded| match &recorded.event {
        Event::CircleMemberJoined(joined) => Some(Move {
            circle: &joined.circle_id,
            account: joined.user_id,
            sequence: recorded.sequence,
            at: recorded.time,
        }),
        _ => None,
    });
    let joined: Vec<_> = joined.collect();
    if joined.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO circle_members (circle_id, account_id, sequence, joined_at)
         SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::timestamptz[])
                           AS joined (circle_id, account_id)
         WHERE NOT EXISTS (
             SELECT FROM forgotten_accounts AS gone WHERE gone.account_id = joined.account_id
         )",
        joined.iter().map(|one| one.circle.as_str()).bind_iter() as _,
        joined.iter().map(|one| bigint(one.account.0)).bind_iter() as _,
        joined.iter().map(|one| bigint(one.sequence)).bind_iter() as _,
        joined.iter().map(|one| one.at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Each membership ends with the first leave event after it.
pub(super) async fn leave(
    rows: &mut PgConnection,
    events: &[&Recorded],
) -> Result<(), sqlx::Error> {
    let left = events.iter().filter_map(|recorded| match &recorded.event {
        Event::CircleMemberLeft(left) => Some(Move {
            circle: &left.circle_id,
            account: left.user_id,
            sequence: recorded.sequence,
            at: recorded.time,
        }),
        _ => None,
    });
    let left: Vec<_> = left.collect();
    if left.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "WITH leaving AS (
             SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::timestamptz[])
                               AS leaving (circle_id, account_id, sequence, at)
         )
         UPDATE circle_members AS member SET left_at = ended.at
         FROM (
             SELECT DISTINCT ON (open.circle_id, open.account_id, open.sequence)
                    open.circle_id, open.account_id, open.sequence, leaving.at
             FROM leaving JOIN circle_members AS open
               ON open.circle_id = leaving.circle_id AND open.account_id = leaving.account_id
              AND open.left_at IS NULL AND open.sequence < leaving.sequence
             ORDER BY open.circle_id, open.account_id, open.sequence, leaving.sequence
         ) AS ended
         WHERE member.circle_id = ended.circle_id AND member.account_id = ended.account_id
           AND member.sequence = ended.sequence",
        left.iter().map(|one| one.circle.as_str()).bind_iter() as _,
        left.iter().map(|one| bigint(one.account.0)).bind_iter() as _,
        left.iter().map(|one| bigint(one.sequence)).bind_iter() as _,
        left.iter().map(|one| one.at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
