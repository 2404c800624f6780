//! Pages of lists of any length, each at the cost of the first.

/// Finds a page of `$row`s of a table, newest first and then by id: those within a condition on
/// `$1`, the organization, `$2`, the parent of the list, and `$3`, its state. The latter two are
/// empty for none. `$total` selects the counters whose sum is the list's total. Every row has that
/// total. If blocks and counters know a state by another name than `$3`, `$key` is that name, and
/// `$counters` is the table that `$total` refers to.
///
/// The list's blocks, counted by the projection in the same snapshot, lead from a number to the
/// block in which the page begins, so that no more than a block is skipped, in an index only. A
/// cursor leads to the page itself. Rows with the same creation time are read separately from the
/// rest, so that each part is one range of the index, however many these are. Fixed limits show the
/// planner how few rows there will be: otherwise it would plan again for every request.
macro_rules! find_page {
    ($row:ident from $table:literal by $id:literal: $columns:literal within $within:literal,
     total $total:literal, ($org:expr, $parent:expr, $state:expr), $page:expr) => {
        find_page!(
            $row from $table by $id: $columns within $within,
            known as "$3", total "parent = $2 AND " $total in "totals",
            ($org, $parent, $state), $page
        )
    };
    ($row:ident from $table:literal by $id:literal: $columns:literal within $within:literal,
     known as $key:literal, total $($total:literal)+ in $counters:literal,
     ($org:expr, $parent:expr, $state:expr), $page:expr) => {
        sqlx::query_as!(
            $row,
            r#"WITH list AS MATERIALIZED (
                   SELECT coalesce(sum(count), 0)::bigint AS total FROM "# + $counters + r#"
                   WHERE org_id = $1 AND "# + $($total +)+ r#" AND kind = '"# + $table + r#"'
               ), part AS MATERIALIZED (
                   SELECT age, id, next_age, next_id, upto - count AS before
                   FROM (SELECT age, id, count,
                                lead(age) OVER list AS next_age, lead(id) OVER list AS next_id,
                                (sum(count) OVER list)::bigint AS upto
                         FROM list_blocks
                         WHERE org_id = $1 AND parent = $2 AND state = "# + $key + r#" AND level = 2
                           AND kind = '"# + $table + r#"'
                         WINDOW list AS (ORDER BY age, id ROWS UNBOUNDED PRECEDING)) AS parts
                   WHERE $6::bigint > 0 AND upto > $6 ORDER BY age, id LIMIT 1
               ), block AS MATERIALIZED (
                   SELECT created_at, id, $6 - (upto - count) AS skipped
                   FROM (SELECT age, id, created_at, count,
                                (SELECT before FROM part)
                                    + (sum(count) OVER (ORDER BY age, id ROWS UNBOUNDED PRECEDING))::bigint
                                    AS upto
                         FROM list_blocks
                         WHERE org_id = $1 AND parent = $2 AND state = "# + $key + r#" AND level = 1
                           AND kind = '"# + $table + r#"'
                           AND (age, id) >= ((SELECT age FROM part), (SELECT id FROM part))
                           AND (age, id) < (coalesce((SELECT next_age FROM part), 9223372036854775807),
                                            coalesce((SELECT next_id FROM part), ''))) AS blocks
                   WHERE upto > $6 ORDER BY age, id LIMIT 1
               ), first AS MATERIALIZED (
                   (SELECT created_at, id
                    FROM ((SELECT created_at, "# + $id + r#" AS id FROM "# + $table + r#"
                           WHERE org_id = $1 AND "# + $within + r#"
                             AND created_at = (SELECT created_at FROM block)
                             AND "# + $id + r#" >= (SELECT id FROM block)
                           ORDER BY "# + $id + r#" LIMIT (SELECT skipped + 1 FROM block))
                          UNION ALL
                          (SELECT created_at, "# + $id + r#" AS id FROM "# + $table + r#"
                           WHERE org_id = $1 AND "# + $within + r#"
                             AND created_at < (SELECT created_at FROM block)
                           ORDER BY created_at DESC, "# + $id + r#"
                           LIMIT (SELECT skipped + 1 FROM block))) AS passed
                    ORDER BY created_at DESC, id OFFSET (SELECT skipped FROM block) LIMIT 1)
                   UNION ALL
                   SELECT coalesce($4::timestamptz, 'infinity'), $5::text WHERE $6 = 0
               )
               SELECT "# + $columns + r#", list.total AS "total!"
               FROM list, (
                   (SELECT * FROM "# + $table + r#"
                    WHERE org_id = $1 AND "# + $within + r#"
                      AND created_at = (SELECT created_at FROM first)
                      AND "# + $id + r#" >= (SELECT id FROM first)
                    ORDER BY "# + $id + r#" LIMIT 101)
                   UNION ALL
                   (SELECT * FROM "# + $table + r#"
                    WHERE org_id = $1 AND "# + $within + r#"
                      AND created_at < (SELECT created_at FROM first)
                    ORDER BY created_at DESC, "# + $id + r#" LIMIT 101)) AS shown
               ORDER BY shown.created_at DESC, shown."# + $id + r#" LIMIT $7"#,
            $org,
            $parent,
            $state,
            $page.after_time(),
            $page.least_id(),
            $page.offset(),
            $page.fetched(),
        )
    };
}
pub(crate) use find_page;
