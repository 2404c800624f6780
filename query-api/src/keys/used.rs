//! How much of its limit each key has used.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use sqlx::PgPool;

/// The use of a key.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Used {
    /// Within the limit's window, which the limit is measured by.
    window: i64,
    /// Within the last day, to a quarter of an hour.
    day: i64,
}

/// Returns how many requests each of these keys has made within the limit's window and within the
/// last day. Requests counted in a key's current second are not in a quarter yet.
pub(crate) async fn find_use(
    keys: &[&str],
    window: Duration,
    models: &PgPool,
) -> Result<HashMap<String, Used>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT asked.key AS "key!",
                  ((CASE WHEN held.second >= now.second - $2 THEN held.used ELSE 0 END)
                   + coalesce((SELECT sum(spent.used) FROM limit_seconds AS spent
                               WHERE spent.counter = 'hourly/' || asked.key
                                 AND spent.second >= now.second - $2), 0))::bigint AS "window!",
                  ((CASE WHEN held.second > now.second - 86400 THEN held.used ELSE 0 END)
                   + coalesce((SELECT sum(known.used) FROM limit_quarters AS known
                               WHERE known.counter = 'hourly/' || asked.key
                                 AND known.quarter > now.second - 86400), 0))::bigint AS "day!"
           FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS second) AS now,
                unnest($1::text[]) AS asked (key)
           LEFT JOIN limit_windows AS held ON held.counter = 'hourly/' || asked.key"#,
        keys as _,
        i64::try_from(window.as_secs()).unwrap_or(i64::MAX),
    );
    let rows = rows.fetch_all(models).await?.into_iter();
    let used = rows.map(|row| {
        let used = Used {
            window: row.window,
            day: row.day,
        };
        (row.key, used)
    });
    Ok(used.collect())
}
