//! Deliveries whose event types match a pattern, newest first.
//!
//! Each type is a list of its own, counted in blocks by the projection. Several are merged: blocks
//! lead from a page's number to a few of them around its first row, and no more rows than theirs
//! are skipped.

use chrono::{DateTime, Utc};
use schemas::OrgId;
use sqlx::PgPool;
use sqlx::postgres::PgBindIterExt as _;

use super::{Delivery, select_deliveries};
use crate::paging::{Block, Page, Window, find_page, time};

/// The deliveries of an endpoint with one of some types.
struct OfTypes<'a> {
    org: &'a OrgId,
    webhook: &'a str,
    types: Vec<String>,
}

/// The time, `None` for the newest, and the id of a page's first row, even if there is none.
type First = (Option<DateTime<Utc>>, String);

/// A block as stored in the read models.
struct Counted {
    event_type: String,
    age: i64,
    id: String,
    count: i64,
}

/// Returns a page of the deliveries whose type matches a pattern, and their total.
pub(super) async fn find(
    org: &OrgId,
    webhook: &str,
    pattern: &str,
    page: &Page,
    models: &PgPool,
) -> Result<(Vec<Delivery>, i64), sqlx::Error> {
    let parts = parts(org, webhook, pattern, models).await?;
    let total = parts.iter().map(|part| part.count).sum();
    let mut types: Vec<_> = parts.iter().map(|part| part.event_type.clone()).collect();
    types.sort_unstable();
    types.dedup();
    if let [one] = types.as_slice() {
        return Ok((of_one(org, webhook, one, page, models).await?, total));
    }
    let list = OfTypes {
        org,
        webhook,
        types,
    };
    let first = match page.offset() {
        0 => Some((page.after_time(), page.least_id())),
        past if past >= total => None,
        past => list.first_at(past, parts, models).await?,
    };
    let Some(first) = first else {
        return Ok((Vec::new(), total));
    };
    Ok((list.page(&first, page.fetched(), models).await?, total))
}

async fn of_one(
    org: &OrgId,
    webhook: &str,
    event_type: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    select_deliveries!(
        within "webhook_id = $2 AND event_type = $3",
        total "parent = $2 AND state = $3 AND level = 2" in "list_blocks",
        (org.as_str(), webhook, event_type), page, models
    )
}

/// Returns the large blocks of all types that match a pattern. The types that an endpoint has
/// received are found one after another, at the beginning of each one's part of the key.
async fn parts(
    org: &OrgId,
    webhook: &str,
    pattern: &str,
    models: &PgPool,
) -> Result<Vec<Counted>, sqlx::Error> {
    sqlx::query_as!(
        Counted,
        r#"WITH RECURSIVE types AS (
               (SELECT state FROM list_blocks
                WHERE org_id = $1 AND kind = 'deliveries' AND parent = $2 AND state > ''
                ORDER BY state LIMIT 1)
               UNION ALL
               SELECT (SELECT state FROM list_blocks
                       WHERE org_id = $1 AND kind = 'deliveries' AND parent = $2
                         AND state > types.state
                       ORDER BY state LIMIT 1)
               FROM types WHERE state IS NOT NULL
           )
           SELECT block.state AS "event_type!", age AS "age!", id AS "id!", count AS "count!"
           FROM types, LATERAL
                (SELECT * FROM list_blocks
                 WHERE org_id = $1 AND kind = 'deliveries' AND parent = $2
                   AND state = types.state AND level = 2) AS block
           WHERE types.state ILIKE $3
           ORDER BY age, id"#,
        org.as_str(),
        webhook,
        pattern,
    )
    .fetch_all(models)
    .await
}

impl OfTypes<'_> {
    /// Returns the row that the given number of others precede. Blocks are read one after another,
    /// so that a concurrent deletion may leave none.
    async fn first_at(
        &self,
        wanted: i64,
        parts: Vec<Counted>,
        models: &PgPool,
    ) -> Result<Option<First>, sqlx::Error> {
        let mut window = Window::whole(self.types.len());
        window.narrow(&self.blocks(parts), wanted);
        let blocks = self.blocks_in(&window, models).await?;
        window.narrow(&self.blocks(blocks), wanted);
        self.first_in(&window, wanted - window.before(), models)
            .await
    }

    /// Converts blocks, with types replaced by their numbers.
    fn blocks(&self, counted: Vec<Counted>) -> Vec<Block> {
        let block = |one: Counted| {
            let list = self.types.binary_search(&one.event_type).ok()?;
            let (key, count) = ((one.age, one.id), one.count);
            Some(Block { list, key, count })
        };
        counted.into_iter().filter_map(block).collect()
    }

    /// Returns the small blocks that begin in a window.
    async fn blocks_in(
        &self,
        window: &Window,
        models: &PgPool,
    ) -> Result<Vec<Counted>, sqlx::Error> {
        sqlx::query_as!(
            Counted,
            r#"SELECT type.name AS "event_type!", block.age, block.id, block.count
               FROM UNNEST($3::text[], $4::bigint[], $5::text[]) AS type (name, age, id), LATERAL
                    (SELECT age, id, count FROM list_blocks
                     WHERE org_id = $1 AND kind = 'deliveries' AND parent = $2
                       AND state = type.name AND level = 1
                       AND (age, id) >= (type.age, type.id)
                       AND (age, id) < ($6::bigint, $7::text)) AS block
               ORDER BY block.age, block.id"#,
            self.org.as_str(),
            self.webhook,
            &self.types,
            window.from.iter().map(|key| key.0).bind_iter() as _,
            window.from.iter().map(|key| key.1.as_str()).bind_iter() as _,
            window.until.0,
            window.until.1,
        )
        .fetch_all(models)
        .await
    }

    /// Returns a window's row that the given number of others in it precede.
    async fn first_in(
        &self,
        window: &Window,
        skipped: i64,
        models: &PgPool,
    ) -> Result<Option<First>, sqlx::Error> {
        let found = sqlx::query!(
            r#"SELECT found.created_at, found.delivery_id
               FROM UNNEST($3::text[], $4::timestamptz[], $5::text[]) AS type (name, at, id), LATERAL
                    (SELECT created_at, delivery_id FROM deliveries
                     WHERE org_id = $1 AND webhook_id = $2 AND event_type = type.name
                       AND created_at <= coalesce(type.at, 'infinity')
                       AND (created_at < coalesce(type.at, 'infinity') OR delivery_id >= type.id)
                       AND created_at >= coalesce($6::timestamptz, '-infinity')
                     ORDER BY created_at DESC, delivery_id LIMIT $7::bigint + 1) AS found
               ORDER BY found.created_at DESC, found.delivery_id OFFSET $7 LIMIT 1"#,
            self.org.as_str(),
            self.webhook,
            &self.types,
            window.from.iter().map(|key| time(key.0)).bind_iter() as _,
            window.from.iter().map(|key| key.1.as_str()).bind_iter() as _,
            time(window.until.0),
            skipped,
        )
        .fetch_optional(models)
        .await?;
        Ok(found.map(|row| (Some(row.created_at), row.delivery_id)))
    }

    /// Returns the given number of deliveries from a row on.
    async fn page(
        &self,
        (created_at, id): &First,
        limit: i64,
        models: &PgPool,
    ) -> Result<Vec<Delivery>, sqlx::Error> {
        sqlx::query_as!(
            Delivery,
            r#"WITH place AS (
                   SELECT found.delivery_id
                   FROM UNNEST($3::text[]) AS type (name), LATERAL
                        (SELECT delivery_id, created_at FROM deliveries
                         WHERE org_id = $1 AND webhook_id = $2 AND event_type = type.name
                           AND created_at <= coalesce($4::timestamptz, 'infinity')
                           AND (created_at < coalesce($4::timestamptz, 'infinity')
                                OR delivery_id >= $5)
                         ORDER BY created_at DESC, delivery_id LIMIT $6) AS found
                   ORDER BY found.created_at DESC, found.delivery_id LIMIT $6
               )
               SELECT delivery.delivery_id AS id, delivery.event_id, delivery.event_type,
                      delivery.status, delivery.next_attempt_at,
                      delivery.attempts AS "attempts: _", delivery.created_at, 0::bigint AS "total!"
               FROM place, LATERAL
                    (SELECT * FROM deliveries
                     WHERE org_id = $1 AND delivery_id = place.delivery_id LIMIT 1) AS delivery
               ORDER BY delivery.created_at DESC, delivery.delivery_id"#,
            self.org.as_str(),
            self.webhook,
            &self.types,
            *created_at,
            id,
            limit,
        )
        .fetch_all(models)
        .await
    }
}
