//! The counters that all processes share, in Postgres (functions `throttle`, `throttle_back` and
//! `sweep_throttles`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::time::{Instant, timeout};

use super::counter::{Admission, CountedBy, Counter, Full};

/// Separate connections, so that nothing else keeps sign-ins waiting. Each statement takes a
/// fraction of a millisecond.
const CONNECTIONS: u32 = 4;
const TRIED_EVERY: Duration = Duration::from_secs(1);
const SWEPT_EVERY: Duration = Duration::from_mins(1);
const SWEPT_AT_ONCE: i64 = 10_000;
/// How long a counter that does not run out is kept: such counters are of one day.
const LASTS: Duration = Duration::from_hours(25);

#[derive(Debug)]
pub(super) struct Shared {
    pool: PgPool,
    timeout: Duration,
    away: AtomicBool,
    swept: Mutex<Option<Instant>>,
}

/// A decision of Postgres.
pub(super) struct Verdict {
    /// The current use of each counter.
    pub(super) used: Vec<f64>,
    /// How the attempt was admitted, or the place of the counter that is full.
    pub(super) decision: Result<Admission, (usize, Full)>,
}

impl Shared {
    pub(super) fn new(pool: &PgPool, timeout: Duration) -> Arc<Self> {
        // A crash of Postgres itself may lose the attempts of its last moments: no request waits
        // for its disk.
        let options = PgConnectOptions::clone(&pool.connect_options())
            .application_name("waypost throttles")
            .options([("synchronous_commit", "off"), ("statement_timeout", "2s")]);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(timeout)
            .connect_lazy_with(options);
        Arc::new(Self {
            pool,
            timeout,
            away: AtomicBool::new(false),
            swept: Mutex::default(),
        })
    }

    /// Decides on an attempt; `None` while Postgres is unavailable.
    pub(super) async fn enter(
        self: &Arc<Self>,
        counters: &[Counter],
        pair: Option<&str>,
    ) -> Option<Verdict> {
        if !self.away.load(Ordering::Acquire) {
            self.sweep();
        }
        self.ask(self.decide(counters, pair)).await
    }

    /// Takes an attempt out again of counters that it was put into, and remembers for a time that a
    /// name and a network belong together.
    pub(super) async fn back(
        self: &Arc<Self>,
        counters: &[Counter],
        pair: Option<(&str, Duration)>,
    ) {
        let names: Vec<&str> = counters.iter().map(|counter| &*counter.name).collect();
        let (pair, lasts) = pair.unzip();
        let asked = async {
            sqlx::query!(
                "SELECT throttle_back($1, $2, $3)",
                &names as &[&str],
                pair,
                lasts.unwrap_or_default().as_secs_f64(),
            )
            .fetch_one(&self.pool)
            .await
        };
        self.ask(asked).await;
    }

    async fn decide(
        &self,
        counters: &[Counter],
        pair: Option<&str>,
    ) -> Result<Verdict, sqlx::Error> {
        let names: Vec<&str> = counters.iter().map(|counter| &*counter.name).collect();
        let most: Vec<f64> = counters.iter().map(|counter| counter.most).collect();
        let refills: Vec<f64> = counters.iter().map(|counter| counter.refill).collect();
        let spares: Vec<bool> = counters.iter().map(|counter| counter.spares).collect();
        let decided = sqlx::query!(
            r#"SELECT is_known AS "is_known!", used AS "used!",
                      coalesce(counted, '{}') AS "counted!", full_one, wait
                 FROM throttle($1, $2, $3, $4, $5, $6)"#,
            &names as &[&str],
            &most,
            &refills,
            &spares,
            pair,
            LASTS.as_secs_f64(),
        )
        .fetch_one(&self.pool)
        .await?;
        let place = decided
            .full_one
            .and_then(|place| usize::try_from(place - 1).ok());
        let full = place.and_then(|place| {
            let wait = decided.wait.unwrap_or_default();
            let full = Full {
                rule: counters.get(place)?.rule,
                wait: Duration::try_from_secs_f64(wait).ok(),
            };
            Some((place, full))
        });
        let admission = Admission {
            is_known: decided.is_known,
            counted: decided.counted,
            by: CountedBy::All,
        };
        Ok(Verdict {
            used: decided.used,
            decision: full.map_or(Ok(admission), Err),
        })
    }

    /// Queries Postgres with a timeout. If it does not answer, it is not queried again until it
    /// does.
    async fn ask<T>(
        self: &Arc<Self>,
        question: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Option<T> {
        if self.away.load(Ordering::Acquire) {
            return None;
        }
        let error = match timeout(self.timeout, question).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {:?}", self.timeout),
        };
        if !self.away.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                error,
                "Postgres does not answer: each process counts sign-in attempts alone"
            );
            metrics::gauge!("waypost_throttles_alone").set(1);
            tokio::spawn(Self::until_back(Arc::downgrade(self)));
        }
        None
    }

    async fn until_back(shared: std::sync::Weak<Self>) {
        loop {
            tokio::time::sleep(TRIED_EVERY).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let question = sqlx::query_scalar!("SELECT sweep_throttles($1)", SWEPT_AT_ONCE);
            let answer = timeout(shared.timeout, question.fetch_one(&shared.pool)).await;
            if matches!(answer, Ok(Ok(_))) {
                shared.away.store(false, Ordering::Release);
                tracing::info!(
                    "Postgres is back: sign-in attempts are counted across processes again"
                );
                metrics::gauge!("waypost_throttles_alone").set(0);
                return;
            }
        }
    }

    /// Deletes obsolete rows, once in a while.
    fn sweep(self: &Arc<Self>) {
        let now = Instant::now();
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_some_and(|at| now.duration_since(at) < SWEPT_EVERY) {
            return;
        }
        *swept = Some(now);
        let shared = self.clone();
        tokio::spawn(async move {
            loop {
                let question = sqlx::query_scalar!("SELECT sweep_throttles($1)", SWEPT_AT_ONCE);
                match question.fetch_one(&shared.pool).await {
                    Ok(Some(SWEPT_AT_ONCE)) => {}
                    Ok(_) => return,
                    Err(error) => {
                        tracing::debug!(%error, "Old sign-in counters could not be deleted");
                        return;
                    }
                }
            }
        });
    }
}
