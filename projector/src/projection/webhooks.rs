//! Webhook endpoints, without their secrets.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use schemas::webhook::Status;
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::text::{optional, storable, text_list};
use super::{ApplyError, Projection};

/// The endpoints of every organization.
pub(super) struct Webhooks;

/// An endpoint as stored.
#[derive(Clone)]
struct Webhook {
    url: String,
    events: Vec<String>,
    description: Option<String>,
    status: String,
    disabled_reason: Option<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// An endpoint's organization and id.
type Key = (String, String);

impl Projection for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Webhook]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["webhooks"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let mut folded: IndexMap<Key, Option<Webhook>> = IndexMap::new();
            for recorded in events {
                let stream = &recorded.stream;
                folded.insert((stream.org.to_string(), stream.id.clone()), None);
            }
            for (key, webhook) in load(rows, &folded).await? {
                folded.insert(key, Some(webhook));
            }
            for recorded in events {
                let stream = &recorded.stream;
                let webhook = folded.entry((stream.org.to_string(), stream.id.clone()));
                fold(webhook.or_default(), &recorded.event, recorded.time)?;
            }
            upsert(rows, &folded).await?;
            delete(rows, &folded).await?;
            Ok(())
        })
    }
}

fn status_name(status: Status) -> String {
    match status {
        Status::Enabled => "ENABLED".to_owned(),
        Status::Disabled => "DISABLED".to_owned(),
    }
}

fn fold(webhook: &mut Option<Webhook>, event: &Event, at: DateTime<Utc>) -> Result<(), ApplyError> {
    let missing = || ApplyError::Refused("the webhook is not there".to_owned());
    match event {
        Event::WebhookCreated(created) => {
            *webhook = Some(Webhook {
                url: created.url.clone(),
                events: created.events.clone(),
                description: created.description.clone(),
                status: status_name(Status::Enabled),
                disabled_reason: None,
                created_at: at,
                updated_at: at,
            });
        }
        Event::WebhookUpdated(updated) => {
            let before = webhook.as_mut().ok_or_else(missing)?;
            before.url.clone_from(&updated.url);
            before.events.clone_from(&updated.events);
            before.description.clone_from(&updated.description);
            before.status = status_name(updated.status);
            if updated.status == Status::Enabled {
                before.disabled_reason = None;
            }
            before.updated_at = at;
        }
        Event::WebhookDisabled(disabled) => {
            let before = webhook.as_mut().ok_or_else(missing)?;
            before.status = status_name(Status::Disabled);
            before.disabled_reason = Some(disabled.reason.clone());
            before.updated_at = at;
        }
        Event::WebhookSecretRotated(_) => {
            webhook.as_mut().ok_or_else(missing)?.updated_at = at;
        }
        Event::WebhookDeleted(_) => *webhook = None,
        _ => {}
    }
    Ok(())
}

async fn load(
    rows: &mut PgConnection,
    keys: &IndexMap<Key, Option<Webhook>>,
) -> Result<HashMap<Key, Webhook>, sqlx::Error> {
    let found = sqlx::query!(
        "SELECT webhooks.* FROM UNNEST($1::text[], $2::text[]) AS wanted (org_id, webhook_id)
         JOIN webhooks USING (org_id, webhook_id)",
        keys.keys().map(|(org, _)| org).bind_iter() as _,
        keys.keys().map(|(_, id)| id).bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    let webhooks = found.into_iter().map(|row| {
        let webhook = Webhook {
            url: row.url,
            events: row.events,
            description: row.description,
            status: row.status,
            disabled_reason: row.disabled_reason,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        ((row.org_id, row.webhook_id), webhook)
    });
    Ok(webhooks.collect())
}

async fn upsert(
    rows: &mut PgConnection,
    folded: &IndexMap<Key, Option<Webhook>>,
) -> Result<(), sqlx::Error> {
    let put: Vec<_> = folded
        .iter()
        .filter_map(|((org, id), webhook)| Some((org, id, webhook.as_ref()?)))
        .collect();
    if put.is_empty() {
        return Ok(());
    }
    let webhooks = || put.iter().map(|(.., webhook)| *webhook);
    sqlx::query!(
        "INSERT INTO webhooks (org_id, webhook_id, url, events, description, status,
             disabled_reason, created_at, updated_at)
         SELECT org_id, webhook_id, url, ARRAY(SELECT json_array_elements_text(events::json)),
             description, status, disabled_reason, created_at, updated_at
         FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                     $7::text[], $8::timestamptz[], $9::timestamptz[])
              AS put (org_id, webhook_id, url, events, description, status, disabled_reason,
                      created_at, updated_at)
         ON CONFLICT (org_id, webhook_id) DO UPDATE SET
             url = excluded.url, events = excluded.events, description = excluded.description,
             status = excluded.status, disabled_reason = excluded.disabled_reason,
             created_at = excluded.created_at, updated_at = excluded.updated_at",
        put.iter().map(|(org, ..)| *org).bind_iter() as _,
        put.iter().map(|(_, id, _)| *id).bind_iter() as _,
        webhooks().map(|webhook| storable(&webhook.url)).bind_iter() as _,
        webhooks()
            .map(|webhook| text_list(&webhook.events))
            .bind_iter() as _,
        webhooks()
            .map(|webhook| optional(webhook.description.as_ref()))
            .bind_iter() as _,
        webhooks()
            .map(|webhook| webhook.status.as_str())
            .bind_iter() as _,
        webhooks()
            .map(|webhook| optional(webhook.disabled_reason.as_ref()))
            .bind_iter() as _,
        webhooks().map(|webhook| webhook.created_at).bind_iter() as _,
        webhooks().map(|webhook| webhook.updated_at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn delete(
    rows: &mut PgConnection,
    folded: &IndexMap<Key, Option<Webhook>>,
) -> Result<(), sqlx::Error> {
    let gone = || folded.iter().filter(|(_, webhook)| webhook.is_none());
    if gone().next().is_none() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM webhooks
         USING UNNEST($1::text[], $2::text[]) AS gone (org_id, webhook_id)
         WHERE webhooks.org_id = gone.org_id AND webhooks.webhook_id = gone.webhook_id",
        gone().map(|((org, _), _)| org).bind_iter() as _,
        gone().map(|((_, id), _)| id).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
