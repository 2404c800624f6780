//! `waypost projection`: read models.

use serde_json::json;
use service::database;
use service::settings::{CommonSettings, DatabaseSettings};

use super::print;
use crate::Failure;
use crate::system::{self, LogAccess};

/// Read models.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Projection {
    /// Print how far each has read the log: `{"projections": [{name, position, lag}]}`.
    List(Access),
    /// Print events that could not be applied: `{"deadLetters": […]}`.
    DeadLetters(Access),
}

/// How the log and the read models are reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Access {
    #[command(flatten)]
    log: LogAccess,
    #[command(flatten)]
    database: DatabaseSettings,
}

impl Projection {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        match self {
            Self::List(access) => {
                let settings = system::database(access.database, common)?;
                let pool = database::connect(&settings)?;
                let log = access.log.open(common).await?;
                print(&json!({ "projections": projector::list(&log, &pool).await? }))
            }
            Self::DeadLetters(access) => {
                let settings = system::database(access.database, common)?;
                let pool = database::connect(&settings)?;
                print(&json!({ "deadLetters": projector::dead_letters(&pool).await? }))
            }
        }
    }
}
