//! The sizes of the log and the tables as metrics: growth is the difference between two of them.

use std::time::Duration;

use event_log::EventLog;
use metrics::gauge;
use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::checkpoint::log_name;
use crate::projection::LOGS;
use crate::status::as_gauge;

const EVERY: Duration = Duration::from_mins(1);

/// Reports the size of the log and of the tables once a minute until `shutdown`. A request that
/// fails is repeated a minute later.
pub(crate) async fn report_sizes(log: EventLog, pool: PgPool, shutdown: CancellationToken) {
    let reporting = async {
        loop {
            report_log_size(&log).await;
            if let Err(error) = report_table_sizes(&pool).await {
                tracing::debug!(%error, "The sizes of the tables are not known");
            }
            sleep(EVERY).await;
        }
    };
    shutdown.run_until_cancelled(reporting).await;
}

async fn report_log_size(log: &EventLog) {
    for feed in LOGS {
        match log.size(feed).await {
            Ok(size) => {
                gauge!("waypost_log_events", "log" => log_name(feed)).set(as_gauge(size.events));
                gauge!("waypost_log_bytes", "log" => log_name(feed)).set(as_gauge(size.bytes));
            }
            Err(error) => tracing::debug!(%error, "The size of the log is not known"),
        }
    }
}

async fn report_table_sizes(pool: &PgPool) -> sqlx::Result<()> {
    let tables = sqlx::query!(
        r#"SELECT relname::text AS "name!", greatest(reltuples, 0)::bigint AS "rows!",
                  pg_total_relation_size(oid) AS "bytes!"
           FROM pg_class
           WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"#
    );
    for table in tables.fetch_all(pool).await? {
        let (rows, bytes) = (table.rows.cast_unsigned(), table.bytes.cast_unsigned());
        gauge!("waypost_table_rows", "table" => table.name.clone()).set(as_gauge(rows));
        gauge!("waypost_table_bytes", "table" => table.name).set(as_gauge(bytes));
    }
    Ok(())
}
