//! `waypost migrate`: brings Postgres to this version's schema.

use serde_json::json;
use service::database;
use service::settings::{CommonSettings, DatabaseSettings};

use super::print;
use crate::{Failure, system};

/// Migrate Postgres to this release's schema.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  DATABASE_URL=postgres://… waypost migrate")]
pub(crate) struct Migrate {
    #[command(flatten)]
    database: DatabaseSettings,
}

impl Migrate {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let settings = system::database(self.database, common)?;
        let pool = database::connect(&settings)?;
        database::migrate(&pool).await?;
        print(&json!({ "migrated": true }))
    }
}
