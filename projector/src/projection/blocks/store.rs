//! The blocks as stored.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::PgBindIterExt as _;
use sqlx::{AssertSqlSafe, PgConnection};

use super::plan::{Key, Level, time};
use super::{List, Rows};

/// A stretch of a list whose blocks are queried.
pub(super) struct BlockQuery<'a> {
    /// The index of the list and level that it is read for.
    pub(super) part: usize,
    pub(super) list: &'a List,
    pub(super) level: Level,
    pub(super) from: &'a Key,
    pub(super) to: &'a Key,
}

/// A block to write.
pub(super) struct Block<'a> {
    pub(super) list: &'a List,
    pub(super) level: Level,
    pub(super) key: &'a Key,
    /// By how much its count changes.
    pub(super) change: i64,
}

/// Binds the keys of blocks, column by column.
macro_rules! keys {
    ($query:literal, $kind:expr, $blocks:expr, $($more:expr),*) => {
        sqlx::query!(
            $query,
            $kind,
            $blocks.iter().map(|one| one.list.org_id.as_str()).bind_iter() as _,
            $blocks.iter().map(|one| one.list.parent.as_str()).bind_iter() as _,
            $blocks.iter().map(|one| one.list.state.as_str()).bind_iter() as _,
            $blocks.iter().map(|one| one.level.number()).bind_iter() as _,
            $($more as _,)*
        )
    };
}

/// Returns the key that each text is compared by.
pub(super) async fn keys_of(
    rows: &mut PgConnection,
    texts: &BTreeSet<&str>,
) -> Result<BTreeMap<String, String>, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT text AS "text!", lower(left(text, 100)) AS "key!"
           FROM UNNEST($1::text[]) AS asked (text)"#,
        texts.iter().copied().bind_iter() as _,
    );
    let found = found.fetch_all(rows).await?.into_iter();
    Ok(found.map(|row| (row.text, row.key)).collect())
}

/// Returns the blocks that begin in a stretch, and the last that begins before it; each with the
/// index of its query in `queries`.
pub(super) async fn read(
    rows: &mut PgConnection,
    kind: &str,
    queries: &[BlockQuery<'_>],
) -> Result<Vec<(usize, Key)>, sqlx::Error> {
    let found = keys!(
        r#"SELECT asked.place AS "place!", held.age AS "age!", held.id AS "id!"
           FROM UNNEST($2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[],
                       $7::text[], $8::bigint[], $9::text[])
                WITH ORDINALITY AS asked (org_id, parent, state, level, from_age, from_id, to_age,
                                          to_id, place)
           CROSS JOIN LATERAL (
               (SELECT age, id FROM list_blocks AS block
                WHERE block.org_id = asked.org_id AND block.kind = $1
                  AND block.parent = asked.parent AND block.state = asked.state
                  AND block.level = asked.level
                  AND (block.age, block.id) < (asked.from_age, asked.from_id)
                ORDER BY block.age DESC, block.id DESC LIMIT 1)
               UNION ALL
               (SELECT age, id FROM list_blocks AS block
                WHERE block.org_id = asked.org_id AND block.kind = $1
                  AND block.parent = asked.parent AND block.state = asked.state
                  AND block.level = asked.level
                  AND (block.age, block.id) >= (asked.from_age, asked.from_id)
                  AND (block.age, block.id) <= (asked.to_age, asked.to_id))
           ) AS held"#,
        kind,
        queries,
        queries.iter().map(|one| one.from.0).bind_iter(),
        queries.iter().map(|one| one.from.1.as_str()).bind_iter(),
        queries.iter().map(|one| one.to.0).bind_iter(),
        queries.iter().map(|one| one.to.1.as_str()).bind_iter()
    )
    .fetch_all(rows)
    .await?;
    let found = found.into_iter().map(|row| {
        let place = usize::try_from(row.place - 1).unwrap_or_default();
        (place, (row.age, row.id))
    });
    Ok(found.collect())
}

/// Changes the counts of blocks that keep their bounds; returns whether a count is now zero.
pub(super) async fn shift(
    rows: &mut PgConnection,
    kind: &str,
    blocks: &[Block<'_>],
) -> Result<bool, sqlx::Error> {
    if blocks.is_empty() {
        return Ok(false);
    }
    let written = keys!(
        r#"INSERT INTO list_blocks AS held
               (org_id, kind, parent, state, level, age, id, created_at, count)
           SELECT org_id, $1, parent, state, level, age, id, coalesce(created_at, 'infinity'),
                  change
           FROM UNNEST($2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[],
                       $7::text[], $8::timestamptz[], $9::bigint[])
                AS changed (org_id, parent, state, level, age, id, created_at, change)
           ON CONFLICT (org_id, kind, parent, state, level, age, id)
           DO UPDATE SET count = held.count + excluded.count
           RETURNING count = 0 AS "is_empty!""#,
        kind,
        blocks,
        blocks.iter().map(|one| one.key.0).bind_iter(),
        blocks.iter().map(|one| one.key.1.as_str()).bind_iter(),
        blocks.iter().map(|one| time(one.key)).bind_iter(),
        blocks.iter().map(|one| one.change).bind_iter()
    )
    .fetch_all(rows)
    .await?;
    Ok(written.iter().any(|row| row.is_empty))
}

/// Deletes blocks.
pub(super) async fn delete(
    rows: &mut PgConnection,
    kind: &str,
    blocks: &[Block<'_>],
) -> Result<(), sqlx::Error> {
    if blocks.is_empty() {
        return Ok(());
    }
    keys!(
        "DELETE FROM list_blocks AS block
         USING UNNEST($2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[],
                      $7::text[]) AS gone (org_id, parent, state, level, age, id)
         WHERE block.org_id = gone.org_id AND block.kind = $1 AND block.parent = gone.parent
           AND block.state = gone.state AND block.level = gone.level AND block.age = gone.age
           AND block.id = gone.id",
        kind,
        blocks,
        blocks.iter().map(|one| one.key.0).bind_iter(),
        blocks.iter().map(|one| one.key.1.as_str()).bind_iter()
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Creates the blocks that do not exist yet, to be counted.
pub(super) async fn make(
    rows: &mut PgConnection,
    kind: &str,
    blocks: &[Block<'_>],
) -> Result<(), sqlx::Error> {
    keys!(
        "INSERT INTO list_blocks
             (org_id, kind, parent, state, level, age, id, created_at, count)
         SELECT org_id, $1, parent, state, level, age, id, coalesce(created_at, 'infinity'), 0
         FROM UNNEST($2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[],
                     $7::text[], $8::timestamptz[])
              AS made (org_id, parent, state, level, age, id, created_at)
         ON CONFLICT (org_id, kind, parent, state, level, age, id) DO NOTHING",
        kind,
        blocks,
        blocks.iter().map(|one| one.key.0).bind_iter(),
        blocks.iter().map(|one| one.key.1.as_str()).bind_iter(),
        blocks.iter().map(|one| time(one.key)).bind_iter()
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// Counts blocks again: first-level blocks by their rows, second-level blocks by the counts of
/// these. Returns whether a count is zero.
pub(super) async fn count(
    rows: &mut PgConnection,
    table: Rows,
    blocks: &[Block<'_>],
) -> Result<bool, sqlx::Error> {
    let mut is_any_empty = false;
    // Each list is counted in a separate index.
    for (level, is_of_state) in [
        (Level::First, false),
        (Level::First, true),
        (Level::Second, false),
    ] {
        let counted: Vec<_> = blocks
            .iter()
            .filter(|one| one.level == level)
            .filter(|one| level == Level::Second || one.list.state.is_empty() != is_of_state)
            .collect();
        if counted.is_empty() {
            continue;
        }
        let size = match level {
            Level::First => size_of_rows(table, is_of_state),
            Level::Second => SIZE_OF_BLOCKS.to_owned(),
        };
        let count = statement(&size);
        let written: Vec<bool> = sqlx::query_scalar(AssertSqlSafe(count))
            .bind(table.table)
            .bind(column(&counted, |one| one.list.org_id.as_str()))
            .bind(column(&counted, |one| one.list.parent.as_str()))
            .bind(column(&counted, |one| one.list.state.as_str()))
            .bind(level.number())
            .bind(column(&counted, |one| one.key.0))
            .bind(column(&counted, |one| one.key.1.as_str()))
            .fetch_all(&mut *rows)
            .await?;
        is_any_empty |= written.contains(&true);
    }
    Ok(is_any_empty)
}

fn column<'a, T>(blocks: &[&'a Block<'a>], value: impl Fn(&'a Block<'a>) -> T) -> Vec<T> {
    blocks.iter().map(|block| value(block)).collect()
}

/// A statement that sets the size of blocks; `size` may use `block` and its end, `until`.
fn statement(size: &str) -> String {
    format!(
        "UPDATE list_blocks AS block SET count = {size}
         FROM UNNEST($2::text[], $3::text[], $4::text[], $6::bigint[], $7::text[])
              AS asked (org_id, parent, state, age, id)
         LEFT JOIN LATERAL (
             SELECT age, id, created_at FROM list_blocks AS behind
             WHERE behind.org_id = asked.org_id AND behind.kind = $1
               AND behind.parent = asked.parent AND behind.state = asked.state
               AND behind.level = $5 AND (behind.age, behind.id) > (asked.age, asked.id)
             ORDER BY behind.age, behind.id LIMIT 1) AS until ON true
         WHERE block.org_id = asked.org_id AND block.kind = $1 AND block.parent = asked.parent
           AND block.state = asked.state AND block.level = $5 AND block.age = asked.age
           AND block.id = asked.id
         RETURNING count = 0"
    )
}

/// The rows of a block. Those of its first moment, of its last and those between are each a range
/// of the index, however many were created at the same moment.
fn size_of_rows(table: Rows, is_of_state: bool) -> String {
    let Rows {
        table,
        id,
        parent,
        state,
    } = table;
    let of_parent = parent.map(|column| format!(" AND one.{column} = block.parent"));
    let of_state = state.filter(|_| is_of_state);
    let of_state = of_state.map(|state| format!(" AND one.{} = block.state", state.key()));
    let within = format!(
        "(SELECT count(*) FROM {table} AS one WHERE one.org_id = block.org_id{}{}",
        of_parent.unwrap_or_default(),
        of_state.unwrap_or_default(),
    );
    format!(
        "{within} AND one.created_at = block.created_at AND one.{id} >= block.id
             AND one.{id} < until.id AND until.age = block.age)
         + {within} AND one.created_at = block.created_at AND one.{id} >= block.id
             AND until.age IS DISTINCT FROM block.age)
         + {within} AND one.created_at < block.created_at
             AND one.created_at > coalesce(until.created_at, '-infinity'))
         + {within} AND one.created_at = until.created_at AND one.{id} < until.id
             AND until.age <> block.age)"
    )
}

/// Sums the blocks of the first level within one of the second.
const SIZE_OF_BLOCKS: &str = "(
    SELECT coalesce(sum(part.count), 0) FROM list_blocks AS part
    WHERE part.org_id = block.org_id AND part.kind = $1 AND part.parent = block.parent
      AND part.state = block.state AND part.level = 1
      AND (part.age, part.id) >= (block.age, block.id)
      AND (part.age, part.id) < (coalesce(until.age, 9223372036854775807), coalesce(until.id, '')))";

/// Deletes the blocks of lists without rows: an empty list has no block.
pub(super) async fn delete_empty(
    rows: &mut PgConnection,
    kind: &str,
    lists: &[&List],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM list_blocks AS block
         USING UNNEST($2::text[], $3::text[], $4::text[]) AS list (org_id, parent, state)
         WHERE block.org_id = list.org_id AND block.kind = $1 AND block.parent = list.parent
           AND block.state = list.state AND block.level IN (1, 2)
           AND block.age = -9223372036854775808 AND block.count = 0",
        kind,
        lists.iter().map(|list| list.org_id.as_str()).bind_iter() as _,
        lists.iter().map(|list| list.parent.as_str()).bind_iter() as _,
        lists.iter().map(|list| list.state.as_str()).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
