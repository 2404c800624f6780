//! Past positions of persons.

use event_log::{Binding, EventLog};
use futures::future::BoxFuture;
use schemas::{AggregateType, Event, Recorded};
use serde::Deserialize;
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::personal::{self, Unsealing, unseal_each};
use super::text::optional;
use super::{ApplyError, Projection, Role, bigint};

/// The advisory lock that writers of positions share, and that forgetting a person takes alone.
const FORGETTING: i64 = 0x7761_7970_6f73_7401;

/// Positions of forgotten persons that are deleted in one statement.
const PORTION: i64 = 10_000;

/// Every position that has not expired.
pub(super) struct Positions(pub(super) EventLog, pub(super) Role);

/// The sealed part of a position.
#[derive(Deserialize)]
struct Fix {
    lat: f64,
    lng: f64,
    accuracy: Option<f64>,
    speed: Option<f64>,
    place_name: Option<String>,
    battery: Option<f64>,
}

impl Projection for Positions {
    fn name(&self) -> &'static str {
        "positions"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Track]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["positions"]
    }

    fn lives_by(&self) -> Option<&'static str> {
        Some("received_at")
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let updates = events.iter().filter_map(|recorded| match &recorded.event {
                Event::LocationUpdated(updated) => Some(Unsealing {
                    of: (updated, recorded.time),
                    binding: Binding::Position(updated.user_id, updated.recorded_at),
                    sealed: &updated.sealed,
                }),
                _ => None,
            });
            let unsealed = unseal_each(&self.0, updates.collect()).await?;
            let mut fixes = Vec::with_capacity(unsealed.len());
            for ((updated, received), text) in unsealed {
                fixes.push((updated, received, personal::read::<Fix>(&text)?));
            }
            if fixes.is_empty() {
                return Ok(());
            }
            if self.1 == Role::Serving {
                keep_forgetting_out(rows).await?;
            }
            sqlx::query!(
                "INSERT INTO positions (account_id, recorded_at, lat, lng, accuracy, speed,
                                        place_name, battery, received_at)
                 SELECT * FROM UNNEST($1::bigint[], $2::timestamptz[], $3::float8[], $4::float8[],
                                      $5::float8[], $6::float8[], $7::text[], $8::float8[],
                                      $9::timestamptz[]) AS fix (account_id)
                 WHERE NOT EXISTS (
                     SELECT FROM forgotten_accounts AS gone
                     WHERE gone.account_id = fix.account_id
                 )
                 ON CONFLICT (account_id, recorded_at) DO NOTHING",
                fixes.iter().map(|(u, ..)| bigint(u.user_id.0)).bind_iter() as _,
                fixes.iter().map(|(u, ..)| u.recorded_at).bind_iter() as _,
                fixes.iter().map(|(.., fix)| fix.lat).bind_iter() as _,
                fixes.iter().map(|(.., fix)| fix.lng).bind_iter() as _,
                fixes.iter().map(|(.., fix)| fix.accuracy).bind_iter() as _,
                fixes.iter().map(|(.., fix)| fix.speed).bind_iter() as _,
                fixes
                    .iter()
                    .map(|(.., fix)| optional(fix.place_name.as_ref()))
                    .bind_iter() as _,
                fixes.iter().map(|(.., fix)| fix.battery).bind_iter() as _,
                fixes.iter().map(|(_, received, _)| *received).bind_iter() as _,
            )
            .execute(rows)
            .await?;
            Ok(())
        })
    }

    fn settle<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            if self.1 == Role::Successor {
                keep_forgetting_out(rows).await?;
            }
            delete_forgotten(rows).await
        })
    }
}

/// Deletes the positions of all forgotten persons, each looked for by the table's key: a join might
/// read all positions instead.
pub(super) async fn delete_forgotten(rows: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM positions
         WHERE account_id = ANY(ARRAY(SELECT account_id FROM forgotten_accounts))"
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Does the same in several statements, so that each holds its rows only for a moment. Positions
/// that are written meanwhile may be left.
pub(super) async fn delete_forgotten_by_portions(
    rows: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    loop {
        let deleted = sqlx::query!(
            "DELETE FROM positions WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM positions
                 WHERE account_id = ANY(ARRAY(SELECT account_id FROM forgotten_accounts))
                 LIMIT $1))",
            PORTION,
        )
        .execute(&mut *rows)
        .await?;
        if deleted.rows_affected() < PORTION.unsigned_abs() {
            return Ok(());
        }
    }
}

/// Keeps persons from being forgotten until the end of the transaction.
async fn keep_forgetting_out(rows: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock_shared($1)", FORGETTING)
        .execute(rows)
        .await?;
    Ok(())
}

/// Waits until nobody writes positions, and blocks writers until the end of the transaction.
pub(super) async fn keep_writers_out(rows: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", FORGETTING)
        .execute(rows)
        .await?;
    Ok(())
}
