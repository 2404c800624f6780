//! The limiter's side of Postgres: functions `admit`, `count_back` and `sweep_limits`.

use std::sync::Arc;
use std::time::Duration;

use service::database::is_unavailable;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tokio::time::{Instant, timeout};

use super::counter::{Counter, Owed, Verdict};
use super::gather::{Flush, Group};
use super::use_of::{CounterSnapshot, Window};
use crate::LimitSettings;

/// Counters that one statement deletes.
const SWEPT_AT_ONCE: i64 = 1_000;

/// The database that holds the counts, and how long to wait for it.
#[derive(Clone)]
pub(super) struct Server {
    options: Arc<PgConnectOptions>,
    timeout: Duration,
}

/// Why Postgres gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Away {
    #[error("no answer within {0:?}")]
    Silent(Duration),
    #[error(transparent)]
    Failed(#[from] sqlx::Error),
}

impl Server {
    pub(super) fn of(pool: &PgPool, settings: &LimitSettings) -> Self {
        let flush = if settings.flush { "on" } else { "off" };
        // The statements touch few rows by primary key, whatever the current statistics say.
        // Planning each call would cost more than the call.
        let options = PgConnectOptions::clone(&pool.connect_options())
            .application_name("waypost limits")
            .options([
                ("synchronous_commit", flush),
                ("statement_timeout", "2s"),
                ("plan_cache_mode", "force_generic_plan"),
                ("enable_seqscan", "off"),
                ("enable_hashjoin", "off"),
                ("enable_mergejoin", "off"),
            ])
            .disable_statement_logging();
        Self {
            options: Arc::new(options),
            timeout: settings.timeout,
        }
    }

    /// Runs a statement on a kept connection, or on a new one if there is none. After a failure
    /// none is kept: it is unknown what still arrives on it.
    pub(super) async fn ask<T>(
        &self,
        kept: &mut Option<PgConnection>,
        statement: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, Away> {
        let work = async {
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => PgConnection::connect_with(&self.options).await?,
            };
            let result = statement(&mut connection).await?;
            *kept = Some(connection);
            Ok(result)
        };
        match timeout(self.timeout, work).await {
            Ok(result) => result.map_err(Away::Failed),
            Err(_) => Err(Away::Silent(self.timeout)),
        }
    }
}

impl Away {
    /// Whether the connection broke, which says little about the server if it was an old one.
    pub(super) fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Failed(error) if is_unavailable(error))
    }
}

/// Decides a flush in one round trip. Returns the place of each group and its verdict, in any
/// order.
pub(super) async fn admit(
    connection: &mut PgConnection,
    flush: &Flush,
) -> Result<Vec<(usize, Verdict)>, sqlx::Error> {
    let groups = &flush.groups;
    let counters: Vec<&str> = groups.iter().map(|group| &**group.counter.name()).collect();
    let quotas: Vec<i64> = groups.iter().map(|group| signed(group.quota)).collect();
    let asked = |group: &Group| signed(group.answers.len() as u64 + group.ahead.checks);
    let checks: Vec<i64> = groups.iter().map(asked).collect();
    let ahead: Vec<i64> = groups.iter().map(|g| signed(g.ahead.seconds)).collect();
    let answer = sqlx::query!(
        r#"SELECT places AS "places!", admitted AS "admitted!", used AS "used!",
                  eases_at AS "eases_at!", retry_at AS "retry_at: Vec<Option<i64>>",
                  decided AS "decided!"
             FROM admit($1, $2, $3, $4, $5, $6, $7)"#,
        &counters as &[&str],
        &quotas,
        &checks,
        &ahead,
        signed(flush.cost),
        signed(flush.window.span),
        flush.window.fixed,
    )
    .fetch_one(connection)
    .await?;
    // None where no check was refused.
    let retry_at = answer.retry_at.unwrap_or_default();
    let at = |numbers: &[i64], nth: usize| numbers.get(nth).copied().map_or(0, unsigned);
    let verdicts = answer.places.iter().enumerate().map(|(nth, place)| {
        let verdict = Verdict {
            admitted: at(&answer.admitted, nth),
            snapshot: CounterSnapshot {
                used: at(&answer.used, nth),
                eases_at: at(&answer.eases_at, nth),
                retry_at: retry_at.get(nth).copied().flatten().map(unsigned),
                decided: answer.decided,
            },
        };
        (usize::try_from(place - 1).unwrap_or(usize::MAX), verdict)
    });
    Ok(verdicts.collect())
}

/// Writes what counters of one window owe.
pub(super) async fn count_back(
    connection: &mut PgConnection,
    window: Window,
    owed: &[(Arc<Counter>, Owed)],
) -> Result<(), sqlx::Error> {
    let counters: Vec<&str> = owed.iter().map(|(counter, _)| &**counter.name()).collect();
    let (seconds, uses): (Vec<i64>, Vec<i64>) = owed
        .iter()
        .map(|(_, owed)| match owed {
            Owed::Used(late) => (signed(late.second), signed(late.used)),
            Owed::Unspent(late) => (signed(late.second), -signed(late.used)),
        })
        .unzip();
    sqlx::query!(
        "SELECT count_back($1, $2, $3, $4, $5)",
        &counters as &[&str],
        &seconds,
        &uses,
        signed(window.span),
        window.fixed,
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Checks that decisions can be made again. Returns the database's time.
pub(super) async fn probe(connection: &mut PgConnection) -> Result<f64, sqlx::Error> {
    let nothing = Flush {
        asked: Instant::now(),
        window: Window {
            span: 1,
            fixed: false,
        },
        cost: 1,
        groups: Vec::new(),
    };
    admit(connection, &nothing).await?;
    sqlx::query_scalar!(
        r#"SELECT extract(epoch FROM clock_timestamp())::double precision AS "now!""#
    )
    .fetch_one(connection)
    .await
}

/// Removes counters that are no longer used. Returns whether there may be more of them.
pub(super) async fn sweep(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let swept = sqlx::query_scalar!("SELECT sweep_limits($1)", SWEPT_AT_ONCE)
        .fetch_one(connection)
        .await?;
    Ok(swept == Some(SWEPT_AT_ONCE))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
