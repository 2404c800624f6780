//! How much of its limit a key has used.

use std::collections::HashMap;

use sqlx::PgPool;

/// What the counters of the limits know: the requests of the last hour, and no longer.
const SPAN: i64 = 3_600;

/// How many requests each of these keys has made within the last hour; who made none is left out.
pub(crate) async fn used_last_hour(
    keys: &[&str],
    models: &PgPool,
) -> Result<HashMap<String, i64>, sqlx::Error> {
    let counters: Vec<String> = keys.iter().map(|key| format!("hourly/{key}")).collect();
    let rows = sqlx::query!(
        r#"SELECT held.counter,
                  (CASE WHEN held.second >= since.second THEN held.used ELSE 0 END
                   + coalesce((SELECT sum(spent.used) FROM limit_seconds AS spent
                               WHERE spent.counter = held.counter
                                 AND spent.second >= since.second), 0))::bigint AS "used!"
           FROM limit_windows AS held,
                (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - $2 AS second) AS since
           WHERE held.counter = ANY($1)"#,
        &counters,
        SPAN,
    );
    let rows = rows.fetch_all(models).await?.into_iter();
    let used = rows.filter_map(|row| {
        let key = row.counter.strip_prefix("hourly/")?.to_owned();
        Some((key, row.used))
    });
    Ok(used.collect())
}
