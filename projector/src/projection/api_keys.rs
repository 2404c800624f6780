//! API keys in force, as the list of keys shows them: never the key nor its hash.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use schemas::{AggregateType, Event, Recorded, key};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::text::{storable, text_list};
use super::{ApplyError, Projection};

/// The keys of every organization.
pub(super) struct ApiKeys;

/// A key as the batch leaves it, with the time it was made; `None` where it is revoked.
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
            let mut last: IndexMap<(&str, &str), Last<'_>> = IndexMap::new();
            for recorded in events {
                let org = recorded.stream.org.as_str();
                match &recorded.event {
                    Event::KeyCreated(created) => {
                        let made = Some((created, recorded.time));
                        last.insert((org, created.key_id.as_str()), made);
                    }
                    Event::KeyRevoked(revoked) => {
                        last.insert((org, revoked.key_id.as_str()), None);
                    }
                    _ => {}
                }
            }
            insert(rows, &last).await?;
            delete(rows, &last).await?;
            Ok(())
        })
    }
}

async fn insert(
    rows: &mut PgConnection,
    last: &IndexMap<(&str, &str), Last<'_>>,
) -> Result<(), sqlx::Error> {
    let made: Vec<_> = last
        .iter()
        .filter_map(|((org, _), state)| state.map(|(key, at)| (*org, key, at)))
        .collect();
    if made.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO api_keys (org_id, key_id, name, scopes, rate_limit, expires_at, created_at)
         SELECT org_id, key_id, name, ARRAY(SELECT json_array_elements_text(scopes::json)),
                rate_limit, expires_at, created_at
         FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[],
                     $6::timestamptz[], $7::timestamptz[])
              AS made (org_id, key_id, name, scopes, rate_limit, expires_at, created_at)",
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
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn delete(
    rows: &mut PgConnection,
    last: &IndexMap<(&str, &str), Last<'_>>,
) -> Result<(), sqlx::Error> {
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
