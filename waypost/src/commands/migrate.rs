//! `waypost migrate`: migrates Postgres to this version's schema.

use std::time::Duration;

use serde_json::json;
use service::database;
use service::settings::{CommonSettings, DatabaseSettings};
use sqlx::PgPool;
use sqlx::migrate::MigrateError;
use tokio::time::{Instant, sleep};

use super::print;
use crate::{Failure, system};

/// Pause between two attempts.
const AGAIN: Duration = Duration::from_secs(1);

/// Migrate Postgres to this release's schema.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  DATABASE_URL=postgres://… waypost migrate --wait 120")]
pub(crate) struct Migrate {
    /// Seconds to wait for a Postgres that does not answer yet
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    #[command(flatten)]
    database: DatabaseSettings,
}

impl Migrate {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let settings = system::database(self.database, common)?;
        let pool = database::connect(&settings)?;
        migrate(&pool, Duration::from_secs(self.wait)).await?;
        print(&json!({ "migrated": true }))
    }
}

/// Migrates once Postgres answers: if everything starts at once, it may be ready last.
async fn migrate(pool: &PgPool, timeout: Duration) -> Result<(), MigrateError> {
    let begun = Instant::now();
    loop {
        match database::migrate(pool).await {
            Err(MigrateError::Execute(error))
                if database::is_unavailable(&error) && begun.elapsed() < timeout =>
            {
                tracing::warn!(%error, "Waiting for Postgres");
                sleep(AGAIN).await;
            }
            ended => return ended,
        }
    }
}
