//! Circles with their members and places, and the pauses of sharing.

mod members;
mod pauses;
mod places;

use event_log::{Binding, EventLog};
use futures::future::BoxFuture;
use schemas::circle::{CircleOwner, Created};
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::personal::{Unsealing, forgotten, unseal_each};
use super::text::storable;
use super::{ApplyError, Projection, bigint};

/// Every circle.
pub(super) struct Circles(pub(super) EventLog);

impl Projection for Circles {
    fn name(&self) -> &'static str {
        "circles"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Circle, AggregateType::Account]
    }

    fn tables(&self) -> &'static [&'static str] {
        &[
            "circles",
            "circle_members",
            "circle_places",
            "sharing_pauses",
        ]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            insert(rows, &self.0, events).await?;
            members::join(rows, events).await?;
            members::leave(rows, events).await?;
            places::add(rows, &self.0, events).await?;
            places::remove(rows, events).await?;
            pauses::begin(rows, events).await?;
            pauses::end(rows, events).await?;
            forget(rows, events).await?;
            Ok(())
        })
    }
}

async fn insert(
    rows: &mut PgConnection,
    log: &EventLog,
    events: &[&Recorded],
) -> Result<(), ApplyError> {
    let created = events.iter().filter_map(|recorded| match &recorded.event {
        Event::CircleCreated(created) => Some((created, recorded.time)),
        _ => None,
    });
    let created: Vec<_> = created.collect();
    if created.is_empty() {
        return Ok(());
    }
    let names = created
        .iter()
        .enumerate()
        .map(|(nth, (circle, _))| Unsealing {
            of: nth,
            binding: Binding::CircleName(circle.owner.clone(), circle.circle_id.clone()),
            sealed: &circle.name,
        });
    // A circle outlives the name that a forgotten person gave it. The key of someone forgotten just
    // now may still be in memory, so that the name can be unsealed.
    let mut named: Vec<Option<String>> = vec![None; created.len()];
    for (nth, name) in unseal_each(log, names.collect()).await? {
        named[nth] = Some(name);
    }
    let account = |circle: &Created| match &circle.owner {
        CircleOwner::Account(account) => Some(bigint(account.0)),
        CircleOwner::Organization(_) => None,
    };
    sqlx::query!(
        "INSERT INTO circles (circle_id, owner_account, owner_org, name, created_at)
         SELECT circle_id, owner_account, owner_org,
                CASE WHEN NOT EXISTS (
                    SELECT FROM forgotten_accounts AS gone
                    WHERE gone.account_id = made.owner_account
                ) THEN name END,
                created_at
         FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[])
              AS made (circle_id, owner_account, owner_org, name, created_at)",
        created
            .iter()
            .map(|(c, _)| c.circle_id.as_str())
            .bind_iter() as _,
        created.iter().map(|(c, _)| account(c)).bind_iter() as _,
        created
            .iter()
            .map(|(c, _)| match &c.owner {
                CircleOwner::Organization(org) => Some(org.as_str()),
                CircleOwner::Account(_) => None,
            })
            .bind_iter() as _,
        named
            .iter()
            .map(|name| name.as_deref().map(storable))
            .bind_iter() as _,
        created.iter().map(|(_, at)| *at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn forget(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let gone = forgotten(events);
    if gone.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM circle_members WHERE account_id = ANY($1)",
        &gone
    )
    .execute(&mut *rows)
    .await?;
    sqlx::query!("DELETE FROM circle_places WHERE named_by = ANY($1)", &gone)
        .execute(&mut *rows)
        .await?;
    sqlx::query!(
        "DELETE FROM sharing_pauses WHERE account_id = ANY($1)",
        &gone
    )
    .execute(&mut *rows)
    .await?;
    sqlx::query!(
        "UPDATE circles SET name = NULL WHERE owner_account = ANY($1)",
        &gone
    )
    .execute(rows)
    .await?;
    Ok(())
}
