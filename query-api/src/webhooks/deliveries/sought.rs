//! Deliveries of an endpoint that somebody looks for: `q`.

use event_log::Keyring;
use schemas::{EventId, OrgId};
use service::HttpError;
use sqlx::PgPool;
use uuid::Uuid;

use super::Delivery;
use crate::paging::{Page, Parameters};
use crate::search::{anywhere, asked_text};

/// What deliveries' ids begin with.
const DELIVERY: &str = "msg_";

/// What is looked for among an endpoint's deliveries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    /// The delivery of this id.
    One(String),
    /// Those of events whose type is like this.
    Type(String),
}

impl Sought {
    /// What a request looks for. An endpoint gets an event in one delivery, whose id follows from
    /// the event's.
    pub(crate) fn asked_for(
        parameters: &Parameters,
        webhook: &str,
        keyring: &Keyring,
    ) -> Result<Option<Self>, HttpError> {
        let Some(text) = asked_text(parameters)? else {
            return Ok(None);
        };
        if let Ok(event) = Uuid::try_parse(&text) {
            let delivery = keyring.delivery_id(&webhook.into(), EventId(event));
            return Ok(Some(Self::One(delivery.into_string())));
        }
        Ok(Some(if text.starts_with(DELIVERY) {
            Self::One(text)
        } else {
            Self::Type(anywhere(text.trim_end_matches('*')))
        }))
    }

    /// How many there are.
    pub(crate) async fn count(
        &self,
        org: &OrgId,
        webhook: &str,
        models: &PgPool,
    ) -> Result<i64, sqlx::Error> {
        match self {
            Self::One(id) => {
                sqlx::query_scalar!(
                    r#"SELECT count(*) AS "total!" FROM deliveries
                       WHERE org_id = $1 AND webhook_id = $2 AND delivery_id = $3"#,
                    org.as_str(),
                    webhook,
                    id,
                )
                .fetch_one(models)
                .await
            }
            Self::Type(pattern) => {
                sqlx::query_scalar!(
                    r#"WITH RECURSIVE types AS (
                           (SELECT event_type FROM deliveries
                            WHERE org_id = $1 AND webhook_id = $2
                            ORDER BY event_type LIMIT 1)
                           UNION ALL
                           SELECT (SELECT event_type FROM deliveries
                                   WHERE org_id = $1 AND webhook_id = $2
                                     AND event_type > types.event_type
                                   ORDER BY event_type LIMIT 1)
                           FROM types WHERE event_type IS NOT NULL
                       )
                       SELECT coalesce(sum(found.count), 0)::bigint AS "total!"
                       FROM types, LATERAL
                            (SELECT count(*) FROM deliveries
                             WHERE org_id = $1 AND webhook_id = $2
                               AND event_type = types.event_type) AS found
                       WHERE types.event_type ILIKE $3"#,
                    org.as_str(),
                    webhook,
                    pattern,
                )
                .fetch_one(models)
                .await
            }
        }
    }

    /// A page of them, newest first.
    pub(crate) async fn find(
        &self,
        org: &OrgId,
        webhook: &str,
        page: &Page,
        models: &PgPool,
    ) -> Result<Vec<Delivery>, sqlx::Error> {
        match self {
            Self::One(id) => find_one(org, webhook, id, page, models).await,
            Self::Type(pattern) => find_of_types(org, webhook, pattern, page, models).await,
        }
    }
}

async fn find_one(
    org: &OrgId,
    webhook: &str,
    id: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    sqlx::query_as!(
        Delivery,
        r#"SELECT delivery_id AS id, event_id, event_type, status, next_attempt_at,
                  attempts AS "attempts: _", created_at, 0::bigint AS "total!"
           FROM deliveries
           WHERE org_id = $1 AND webhook_id = $2 AND delivery_id = $3 AND delivery_id > $4
           OFFSET $5"#,
        org.as_str(),
        webhook,
        id,
        page.after_id(),
        page.offset(),
    )
    .fetch_all(models)
    .await
}

/// Of each type that the endpoint has got so many are read, in an index, as the page could show.
async fn find_of_types(
    org: &OrgId,
    webhook: &str,
    pattern: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    sqlx::query_as!(
        Delivery,
        r#"WITH RECURSIVE types AS (
               (SELECT event_type FROM deliveries
                WHERE org_id = $1 AND webhook_id = $2 ORDER BY event_type LIMIT 1)
               UNION ALL
               SELECT (SELECT event_type FROM deliveries
                       WHERE org_id = $1 AND webhook_id = $2 AND event_type > types.event_type
                       ORDER BY event_type LIMIT 1)
               FROM types WHERE event_type IS NOT NULL
           ), place AS (
               SELECT found.delivery_id FROM types, LATERAL
                      (SELECT delivery_id, created_at FROM deliveries
                       WHERE org_id = $1 AND webhook_id = $2 AND event_type = types.event_type
                         AND created_at <= coalesce($3::timestamptz, 'infinity')
                         AND (created_at < coalesce($3::timestamptz, 'infinity')
                              OR delivery_id > $4)
                       ORDER BY created_at DESC, delivery_id LIMIT $5::bigint + $6::bigint) AS found
               WHERE types.event_type ILIKE $7
               ORDER BY found.created_at DESC, found.delivery_id OFFSET $5 LIMIT $6
           )
           SELECT delivery.delivery_id AS id, delivery.event_id, delivery.event_type,
                  delivery.status, delivery.next_attempt_at,
                  delivery.attempts AS "attempts: _", delivery.created_at, 0::bigint AS "total!"
           FROM place, LATERAL
                (SELECT * FROM deliveries
                 WHERE org_id = $1 AND delivery_id = place.delivery_id LIMIT 1) AS delivery
           ORDER BY delivery.created_at DESC, delivery.delivery_id"#,
        org.as_str(),
        webhook,
        page.after_time(),
        page.after_id(),
        page.offset(),
        page.fetched(),
        pattern,
    )
    .fetch_all(models)
    .await
}
