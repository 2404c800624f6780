//! Where in the log each person's crossings of places are, so that a person's own are found without
//! reading those of everyone.

use futures::future::BoxFuture;
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::{ApplyError, Projection, bigint};

/// Every crossing, by its person.
pub(super) struct Crossings;

impl Projection for Crossings {
    fn name(&self) -> &'static str {
        "crossings"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Presence, AggregateType::Account]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["crossings"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            insert(rows, events).await?;
            forget(rows, events).await?;
            Ok(())
        })
    }
}

async fn insert(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let crossed = events.iter().filter_map(|recorded| match &recorded.event {
        Event::PlaceEntered(crossing) | Event::PlaceLeft(crossing) => {
            Some((bigint(crossing.user_id.0), bigint(recorded.sequence)))
        }
        _ => None,
    });
    let crossed: Vec<(i64, i64)> = crossed.collect();
    if crossed.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO crossings (account_id, sequence)
         SELECT * FROM UNNEST($1::bigint[], $2::bigint[]) AS crossed (account_id)
         WHERE NOT EXISTS (
             SELECT FROM forgotten_accounts AS gone WHERE gone.account_id = crossed.account_id
         )",
        crossed.iter().map(|(account, _)| *account).bind_iter() as _,
        crossed.iter().map(|(_, sequence)| *sequence).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn forget(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let gone = super::personal::forgotten(events);
    if !gone.is_empty() {
        sqlx::query!("DELETE FROM crossings WHERE account_id = ANY($1)", &gone)
            .execute(rows)
            .await?;
    }
    Ok(())
}
