//! Persons by name.

use event_log::{Binding, EventLog};
use futures::future::BoxFuture;
use schemas::{AccountId, AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::personal::{Unsealing, unseal_each};
use super::text::storable;
use super::{ApplyError, Projection, Role, bigint, positions};

/// Every person who has an account.
pub(super) struct Accounts(pub(super) EventLog, pub(super) Role);

impl Projection for Accounts {
    fn name(&self) -> &'static str {
        "accounts"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Account]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["accounts", "forgotten_accounts"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            insert(rows, &self.0, events).await?;
            let forgotten = events.iter().filter_map(|recorded| match &recorded.event {
                Event::AccountForgotten(forgotten) => Some((forgotten.account_id, *recorded)),
                _ => None,
            });
            forget(rows, self.1, &forgotten.collect::<Vec<_>>()).await?;
            Ok(())
        })
    }

    fn prepare<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            match self.1 {
                Role::Successor => positions::delete_forgotten_by_portions(rows).await,
                Role::Serving | Role::Scratch => Ok(()),
            }
        })
    }

    /// A copy may have read further than the serving rows: once it has replaced them, nobody else
    /// reads who was forgotten in between.
    fn settle<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            if self.1 == Role::Successor {
                positions::keep_writers_out(rows).await?;
                positions::delete_forgotten(rows).await?;
            }
            Ok(())
        })
    }
}

async fn insert(
    rows: &mut PgConnection,
    log: &EventLog,
    events: &[&Recorded],
) -> Result<(), ApplyError> {
    let registered = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AccountRegistered(registered) => Some(Unsealing {
            of: (registered.account_id, recorded.time),
            binding: Binding::Name(registered.account_id),
            sealed: &registered.name,
        }),
        _ => None,
    });
    let named = unseal_each(log, registered.collect()).await?;
    if named.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO accounts (account_id, name, created_at)
         SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::timestamptz[])",
        named.iter().map(|((id, _), _)| bigint(id.0)).bind_iter() as _,
        named.iter().map(|(_, name)| storable(name)).bind_iter() as _,
        named.iter().map(|((_, at), _)| *at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Deletes the data of persons; from the serving rows their positions too, as no event of the
/// positions' own says so. A copy does that when it replaces the serving rows.
async fn forget(
    rows: &mut PgConnection,
    role: Role,
    forgotten: &[(AccountId, &Recorded)],
) -> Result<(), sqlx::Error> {
    if forgotten.is_empty() {
        return Ok(());
    }
    let accounts: Vec<i64> = forgotten.iter().map(|(id, _)| bigint(id.0)).collect();
    if role == Role::Serving {
        // A transaction that writes positions now has done so before the rows are deleted, or sees
        // that the person was forgotten.
        positions::keep_writers_out(rows).await?;
    }
    sqlx::query!(
        "INSERT INTO forgotten_accounts (account_id, forgotten_at)
         SELECT * FROM UNNEST($1::bigint[], $2::timestamptz[])
         ON CONFLICT (account_id) DO NOTHING",
        &accounts,
        forgotten.iter().map(|(_, event)| event.time).bind_iter() as _,
    )
    .execute(&mut *rows)
    .await?;
    sqlx::query!("DELETE FROM accounts WHERE account_id = ANY($1)", &accounts)
        .execute(&mut *rows)
        .await?;
    if role == Role::Serving {
        sqlx::query!(
            "DELETE FROM positions WHERE account_id = ANY($1)",
            &accounts
        )
        .execute(rows)
        .await?;
    }
    Ok(())
}
