//! API keys in force, as the list of keys shows them: without the key and its hash.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use schemas::key::{self, Giver};
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::text::{storable, text_list};
use super::{ApplyError, Projection};

/// The keys of every organization.
pub(super) struct ApiKeys;

/// A key in its state after the batch, with its creation time; `None` if it is revoked.
type Last<'a> = Option<(&'a key::Created, DateTime<Utc>)>;

impl Projection for ApiKeys {
    fn name(&self) -> &'static str {
        "api_keys"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Key]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["api_keys"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let known = find_givers(rows, events).await?;
            let last = fold(events, &known);
            insert(rows, &last).await?;
            delete(rows, &last).await?;
            Ok(())
        })
    }
}

/// The keys of a batch in their state after it, by organization and id.
type Batch<'a> = IndexMap<(&'a str, &'a str), Last<'a>>;

/// A key created by a key that had already been revoked never works, so it is not listed.
fn fold<'a>(events: &[&'a Recorded], known: &HashSet<(String, String)>) -> Batch<'a> {
    let mut last = Batch::new();
    for recorded in events {
        let org = recorded.stream.org.as_str();
        match &recorded.event {
            Event::KeyCreated(created) => {
                let may_come = match &created.created_by {
                    Giver::Key(giver) => match last.get(&(org, giver.as_str())) {
                        Some(giver) => giver.is_some(),
                        None => known.contains(&(org.to_owned(), giver.to_string())),
                    },
                    Giver::Operator | Giver::Owner => true,
                };
                if may_come {
                    let made = Some((created, recorded.time));
                    last.insert((org, created.key_id.as_str()), made);
                }
            }
            Event::KeyRevoked(revoked) => {
                last.insert((org, revoked.key_id.as_str()), None);
            }
            _ => {}
        }
    }
    last
}

/// The keys in force before a batch that created keys of the batch.
async fn find_givers(
    rows: &mut PgConnection,
    events: &[&Recorded],
) -> Result<HashSet<(String, String)>, sqlx::Error> {
    let givers = events.iter().filter_map(|recorded| match &recorded.event {
        Event::KeyCreated(created) => match &created.created_by {
            Giver::Key(giver) => Some((recorded.stream.org.as_str(), giver.as_str())),
            Giver::Operator | Giver::Owner => None,
        },
        _ => None,
    });
    let givers: Vec<_> = givers.collect();
    if givers.is_empty() {
        return Ok(HashSet::new());
    }
    let found = sqlx::query!(
        "SELECT api_keys.org_id, api_keys.key_id FROM api_keys
         JOIN UNNEST($1::text[], $2::text[]) AS giver (org_id, key_id) USING (org_id, key_id)",
        givers.iter().map(|(org, _)| *org).bind_iter() as _,
        givers.iter().map(|(_, key)| *key).bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    let found = found.into_iter().map(|row| (row.org_id, row.key_id));
    Ok(found.collect())
}

async fn insert(rows: &mut PgConnection, last: &Batch<'_>) -> Result<(), sqlx::Error> {
    let made: Vec<_> = last
        .iter()
        .filter_map(|((org, _), state)| state.map(|(key, at)| (*org, key, at)))
        .collect();
    if made.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO api_keys (org_id, key_id, name, scopes, rate_limit, expires_at, created_at,
                               created_by)
         SELECT org_id, key_id, name, ARRAY(SELECT json_array_elements_text(scopes::json)),
                rate_limit, expires_at, created_at, created_by
         FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[],
                     $6::timestamptz[], $7::timestamptz[], $8::text[])
              AS made (org_id, key_id, name, scopes, rate_limit, expires_at, created_at,
                       created_by)",
        made.iter().map(|(org, ..)| *org).bind_iter() as _,
        made.iter()
            .map(|(_, key, _)| key.key_id.as_str())
            .bind_iter() as _,
        made.iter()
            .map(|(_, key, _)| storable(&key.name))
            .bind_iter() as _,
        made.iter()
            .map(|(_, key, _)| text_list(&key.scopes))
            .bind_iter() as _,
        made.iter()
            .map(|(_, key, _)| i64::from(key.rate_limit))
            .bind_iter() as _,
        made.iter().map(|(_, key, _)| key.expires_at).bind_iter() as _,
        made.iter().map(|(.., at)| *at).bind_iter() as _,
        made.iter()
            .map(|(_, key, _)| key.created_by.as_str())
            .bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn delete(rows: &mut PgConnection, last: &Batch<'_>) -> Result<(), sqlx::Error> {
    let revoked: Vec<_> = last.iter().filter(|(_, state)| state.is_none()).collect();
    if revoked.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM api_keys
         USING UNNEST($1::text[], $2::text[]) AS revoked (org_id, key_id)
         WHERE api_keys.org_id = revoked.org_id AND api_keys.key_id = revoked.key_id",
        revoked.iter().map(|((org, _), _)| *org).bind_iter() as _,
        revoked.iter().map(|((_, key), _)| *key).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
