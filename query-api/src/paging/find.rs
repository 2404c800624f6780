//! Pages of lists of any length, each at the cost of the first.

/// Finds a page of `$row`s of a table, newest first and then by id: those within a condition on
/// `$1`, the organization, `$2`, the parent of the list, and `$3`, its state. The latter two are
/// empty for none. `$total` selects the counters whose sum is the list's total, by all three. Every
/// row has that total. If blocks and counters know a state by another name than `$3`, `$key` is
/// that name, and `$counters` is the table that `$total` refers to. The rows are collected, unless
/// `$read` takes their stream.
///
/// The list's blocks, counted by the projection in the same snapshot, lead from a number to the
/// block in which the page begins, so that no more than a block is skipped, in an index only. A
/// cursor leads to the page itself, and so does the first page's number.
macro_rules! find_page {
    ($row:ident from $table:literal by $id:literal: $columns:literal within $within:literal,
     total $total:literal, ($org:expr, $parent:expr, $state:expr), $page:expr, $models:expr
     $(, by $read:path)?) => {
        find_page!(
            $row from $table by $id: $columns within $within,
            known as "$3", total "parent = $2 AND " $total in "totals",
            ($org, $parent, $state), $page, $models $(, by $read)?
        )
    };
    ($row:ident from $table:literal by $id:literal: $columns:literal within $within:literal,
     known as $key:literal, total $($total:literal)+ in $counters:literal,
     ($org:expr, $parent:expr, $state:expr), $page:expr, $models:expr $(, by $read:path)?) => {
        match $page.offset() {
            0 => {
                let rows = $crate::paging::read_page!(
                    r#"WITH first AS (SELECT coalesce($5::timestamptz, 'infinity') AS created_at,
                                             $6::text AS id)"#,
                    $row from $table by $id: $columns within $within,
                    total $($total)+ in $counters,
                    ($org, $parent, $state, $page.fetched(),
                     $page.after_time(), $page.least_id())
                );
                $crate::paging::take_rows!(rows, $models $(, $read)?)
            }
            offset => {
                let rows = $crate::paging::read_page!(
                    r#"WITH first AS MATERIALIZED (
                           SELECT passed.created_at, passed.id
                           FROM (SELECT age, id, next_age, next_id, $5 - (upto - count) AS skipped
                                 FROM (SELECT age, id, count,
                                              (sum(count) OVER list)::bigint AS upto,
                                              lead(age, 1, 9223372036854775807) OVER list
                                                  AS next_age,
                                              lead(id, 1, '') OVER list AS next_id
                                       FROM list_blocks
                                       WHERE org_id = $1 AND parent = $2 AND state = "# $key r#"
                                         AND level = 2 AND kind = '"# $table r#"'
                                       WINDOW list AS (ORDER BY age, id ROWS UNBOUNDED PRECEDING)
                                      ) AS parts
                                 WHERE upto > $5::bigint ORDER BY age, id LIMIT 1) AS part
                           CROSS JOIN LATERAL
                                (SELECT created_at, id, part.skipped - (upto - count) AS skipped
                                 FROM (SELECT age, id, created_at, count,
                                              (sum(count) OVER list)::bigint AS upto
                                       FROM list_blocks
                                       WHERE org_id = $1 AND parent = $2 AND state = "# $key r#"
                                         AND level = 1 AND kind = '"# $table r#"'
                                         AND (age, id) >= (part.age, part.id)
                                         AND (age, id) < (part.next_age, part.next_id)
                                       WINDOW list AS (ORDER BY age, id ROWS UNBOUNDED PRECEDING)
                                      ) AS blocks
                                 WHERE upto > part.skipped ORDER BY age, id LIMIT 1) AS block
                           CROSS JOIN LATERAL
                                (SELECT created_at, id
                                 FROM ((SELECT created_at, "# $id r#" AS id FROM "# $table r#"
                                        WHERE org_id = $1 AND "# $within r#"
                                          AND created_at = block.created_at
                                          AND "# $id r#" >= block.id
                                        ORDER BY "# $id r#" LIMIT block.skipped + 1)
                                       UNION ALL
                                       (SELECT created_at, "# $id r#" AS id FROM "# $table r#"
                                        WHERE org_id = $1 AND "# $within r#"
                                          AND created_at < block.created_at
                                        ORDER BY created_at DESC, "# $id r#"
                                        LIMIT block.skipped + 1)) AS rows
                                 ORDER BY created_at DESC, id
                                 OFFSET block.skipped LIMIT 1) AS passed
                       )"#,
                    $row from $table by $id: $columns within $within,
                    total $($total)+ in $counters,
                    ($org, $parent, $state, $page.fetched(), offset)
                );
                $crate::paging::take_rows!(rows, $models $(, $read)?)
            }
        }
    };
}
pub(crate) use find_page;

/// Collects rows, or gives their stream to a function.
macro_rules! take_rows {
    ($rows:ident, $models:expr) => {
        $rows.fetch_all($models).await
    };
    ($rows:ident, $models:expr, $read:path) => {
        $read($rows.fetch($models)).await
    };
}
pub(crate) use take_rows;

/// Reads the rows of a page from its `first` on. Rows with the same creation time are read
/// separately from the rest, so that each part is one range of the index, however many these are.
/// Fixed limits show the planner how few rows there will be: otherwise it would plan again for
/// every request.
macro_rules! read_page {
    ($($first:literal)+, $row:ident from $table:literal by $id:literal: $columns:literal
     within $within:literal, total $($total:literal)+ in $counters:literal,
     ($($argument:expr),+)) => {
        sqlx::query_as!(
            $row,
            $($first +)+
            r#" SELECT "# + $columns + r#",
                       (SELECT coalesce(sum(count), 0)::bigint FROM "# + $counters + r#"
                        WHERE org_id = $1 AND "# + $($total +)+ r#"
                          AND kind = '"# + $table + r#"') AS "total!"
                FROM ((SELECT * FROM "# + $table + r#"
                       WHERE org_id = $1 AND "# + $within + r#"
                         AND created_at = (SELECT created_at FROM first)
                         AND "# + $id + r#" >= (SELECT id FROM first)
                       ORDER BY "# + $id + r#" LIMIT 101)
                      UNION ALL
                      (SELECT * FROM "# + $table + r#"
                       WHERE org_id = $1 AND "# + $within + r#"
                         AND created_at < (SELECT created_at FROM first)
                       ORDER BY created_at DESC, "# + $id + r#" LIMIT 101)) AS shown
                ORDER BY shown.created_at DESC, shown."# + $id + r#" LIMIT $4"#,
            $($argument),+
        )
    };
}
pub(crate) use read_page;
