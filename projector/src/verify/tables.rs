//! Compares two tables of the same form, row by row.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, PgConnection};

use super::difference::{Column, Difference, Words};
use crate::copy::layout::{Layout, run};

/// Rows are swept only periodically, and the log expires events by the time it received them.
const SLACK: TimeDelta = TimeDelta::minutes(30);
/// Differences that are reported for each table; all are counted.
const REPORTED: usize = 20;

/// The differences found.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) differences: u64,
    pub(super) reported: Vec<String>,
}

/// A table to compare.
struct Table {
    name: &'static str,
    columns: Vec<Column>,
    /// Selects the rows.
    condition: String,
    /// The column by whose time the rows expire.
    lives_by: Option<&'static str>,
}

/// Compares all that a projection has written with its copy. `limit`: rows expire this long after
/// the time in this column, and those that are about to by `now` are left out.
pub(super) async fn compare(
    rows: &mut PgConnection,
    layout: &Layout,
    limit: Option<(&'static str, Duration)>,
    now: DateTime<Utc>,
    words: &Words<'_>,
) -> Result<Comparison, sqlx::Error> {
    // Whole tables are read here, while the session is set up to find rows by their keys.
    for setting in ["enable_seqscan", "enable_hashjoin", "enable_mergejoin"] {
        run(rows, format!("SET LOCAL {setting} = on")).await?;
    }
    run(rows, "SET LOCAL plan_cache_mode = auto".to_owned()).await?;
    run(rows, "SET LOCAL work_mem = '64MB'".to_owned()).await?;
    let mut comparison = Comparison::default();
    let (lives_by, oldest) = match limit {
        Some((by, age)) => (Some(by), oldest(age, now)),
        None => (None, None),
    };
    for table in tables(rows, layout, lives_by).await? {
        compare_one(rows, layout, &table, oldest, words, &mut comparison).await?;
    }
    Ok(comparison)
}

async fn tables(
    rows: &mut PgConnection,
    layout: &Layout,
    lives_by: Option<&'static str>,
) -> Result<Vec<Table>, sqlx::Error> {
    let mut tables = Vec::new();
    for table in layout.tables {
        tables.push(Table {
            name: table,
            columns: columns(rows, layout, table).await?,
            condition: "true".to_owned(),
            lives_by,
        });
    }
    // A counter that is zero may have a row or none.
    let mut counted = format!("kind = '{}' AND count <> 0", layout.name);
    if let Some(by) = lives_by {
        // While rows are about to expire, counters with and without them are right.
        for (schema, table) in [&layout.serving, &layout.schema]
            .into_iter()
            .flat_map(|schema| layout.tables.iter().map(move |table| (schema, table)))
        {
            let ending = format!(" AND NOT EXISTS (SELECT FROM {schema}.{table} WHERE {by} < $1)");
            counted.push_str(&ending);
        }
    }
    for table in ["totals", "field_totals", "values_by_time", "list_blocks"] {
        tables.push(Table {
            name: table,
            columns: columns(rows, layout, table).await?,
            condition: counted.clone(),
            lives_by: None,
        });
    }
    let mut letters = columns(rows, layout, "dead_letters").await?;
    // Reasons are in the words of the program that gave them.
    letters.retain(|column| {
        ["projection", "sequence", "subject", "behind"].contains(&column.name.as_str())
    });
    tables.push(Table {
        name: "dead_letters",
        columns: letters,
        condition: format!("projection = '{}'", layout.name),
        lives_by: None,
    });
    Ok(tables)
}

async fn columns(
    rows: &mut PgConnection,
    layout: &Layout,
    table: &str,
) -> Result<Vec<Column>, sqlx::Error> {
    let found: Vec<(String, String, bool)> = sqlx::query_as(
        "SELECT attname::text, format_type(atttypid, NULL), attnum = ANY(conkey)
         FROM pg_attribute JOIN pg_constraint ON conrelid = attrelid AND contype = 'p'
         WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    )
    .bind(format!("{}.{table}", layout.serving))
    .fetch_all(rows)
    .await?;
    let columns = found
        .into_iter()
        .map(|(name, kind, is_key)| Column { name, kind, is_key });
    Ok(columns.collect())
}

async fn compare_one(
    rows: &mut PgConnection,
    layout: &Layout,
    table: &Table,
    oldest: Option<DateTime<Utc>>,
    words: &Words<'_>,
    comparison: &mut Comparison,
) -> Result<(), sqlx::Error> {
    let query = query(layout, table);
    let query = sqlx::query_as::<_, (bool, bool, Vec<Option<String>>, Vec<Option<String>>)>(
        AssertSqlSafe(query),
    );
    let mut found = query.bind(oldest).fetch(rows);
    let mut nth = 0;
    while let Some((in_table, in_log, table_says, log_says)) = found.try_next().await? {
        comparison.differences += 1;
        nth += 1;
        if nth <= REPORTED {
            let difference = Difference {
                table: table.name,
                columns: &table.columns,
                table_says: in_table.then_some(table_says),
                log_says: in_log.then_some(log_says),
            };
            comparison.reported.push(words.describe(&difference));
        }
    }
    Ok(())
}

fn oldest(age: Duration, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let age = TimeDelta::from_std(age).ok()?;
    now.checked_sub_signed(age)?.checked_add_signed(SLACK)
}

/// The query for the rows that differ: whether each side has one, and its value of each column.
fn query(layout: &Layout, table: &Table) -> String {
    let list = |side: &str, part: &dyn Fn(&Column) -> String| {
        let columns = table.columns.iter();
        let columns: Vec<_> = columns.map(|one| format!("{side}.{}", part(one))).collect();
        columns.join(", ")
    };
    let text = |column: &Column| format!("{}::text", column.name);
    // json has no equality of its own: it stores the input letter by letter.
    let comparable = |column: &Column| match column.kind.as_str() {
        "json" => text(column),
        _ => column.name.clone(),
    };
    let keys = || table.columns.iter().filter(|column| column.is_key);
    let join: Vec<_> = keys()
        .map(|key| format!("served.{0} = copied.{0}", key.name))
        .collect();
    let key = keys().next().map_or("", |key| key.name.as_str());
    let young = match table.lives_by {
        Some(by) => {
            format!("coalesce(served.{by} >= $1, true) AND coalesce(copied.{by} >= $1, true)")
        }
        None => "($1::timestamptz IS NULL OR true)".to_owned(),
    };
    format!(
        "SELECT served.{key} IS NOT NULL, copied.{key} IS NOT NULL, ARRAY[{}], ARRAY[{}]
         FROM (SELECT * FROM {serving}.{name} WHERE {condition}) AS served
         FULL JOIN (SELECT * FROM {schema}.{name} WHERE {condition}) AS copied ON {join}
         WHERE ROW({}) IS DISTINCT FROM ROW({}) AND {young}",
        list("served", &text),
        list("copied", &text),
        list("served", &comparable),
        list("copied", &comparable),
        serving = layout.serving,
        schema = layout.schema,
        name = table.name,
        condition = table.condition,
        join = join.join(" AND "),
    )
}
