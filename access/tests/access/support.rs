//! A database and a log for each test.

use std::env;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use access::LimitSettings;
use access::limit::{Counter, Decision, Limiter, Policy};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgPool};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A database for one test, dropped at its end unless the test fails.
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) pool: PgPool,
    server: PgConnectOptions,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let server = server();
        let name = format!("a{}", &Uuid::new_v4().simple().to_string()[..12]);
        let mut admin = server.connect().await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        admin.execute(create).await.unwrap();
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect_with(server.clone().database(&name))
            .await
            .unwrap();
        service::database::migrate(&pool).await.unwrap();
        Self { name, pool, server }
    }

    /// A limiter as one process has it; `pool` may reach the same database another way.
    pub(crate) fn limiter(&self, settings: &LimitSettings) -> Limiter {
        Limiter::start(&self.pool, settings, CancellationToken::new())
    }

    pub(crate) async fn drop(self) {
        self.pool.close().await;
        let mut admin = self.server.connect().await.unwrap();
        let drop = AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name));
        admin.execute(drop).await.unwrap();
    }
}

pub(crate) fn server() -> PgConnectOptions {
    let url = env::var("DATABASE_URL").unwrap();
    PgConnectOptions::from_str(&url).unwrap()
}

/// Limits over a window of the given seconds, patient enough for a busy machine.
pub(crate) fn window(seconds: u32) -> LimitSettings {
    LimitSettings {
        window: seconds,
        timeout: Duration::from_secs(20),
        ..LimitSettings::default()
    }
}

pub(crate) fn hourly(limiter: &Limiter, caller: &str) -> Arc<Counter> {
    Arc::new(limiter.counter(Policy::Hourly, caller))
}

/// The decisions of checks that are made one after the other.
pub(crate) async fn checks(
    limiter: &Limiter,
    counter: &Arc<Counter>,
    quota: u32,
    count: usize,
) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for _ in 0..count {
        decisions.push(limiter.check(counter, quota, 1).await);
    }
    decisions
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what} was not so in time");
        sleep(Duration::from_millis(10)).await;
    }
}
