//! `waypost restore`: brings a backup back into an empty system.

use std::path::PathBuf;

use event_log::backup::{self, Manifest, Restored};
use event_log::{Keyring, LogSettings};
use local_servers::Servers;
use serde_json::json;
use service::database;
use service::settings::{CommonSettings, DatabaseSettings, Secret};

use super::backup::{Bar, counts};
use super::print;
use crate::{Failure, system};

/// Restore a backup into an empty system that is not running.
///
/// The whole backup is checked first. Every event gets the sequence it had, and the log a new
/// epoch, so that clients with earlier positions get an error that asks them to start over. Needs
/// the master key of the installation that was backed up. Read models are emptied and rebuilt at
/// the next start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints {\"events\", \"locations\", \"deliveries\", \"keys\", \"bytes\", \"position\"}; the position is \
the log's end in its new epoch.

Example:
  mkdir -p new/secrets && cp master.key new/secrets/
  WAYPOST_HOME=new waypost restore /backups/monday")]
pub(crate) struct Restore {
    /// The backup's folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    log: LogSettings,
    #[command(flatten)]
    database: DatabaseSettings,
}

impl Restore {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let keyring = Keyring::load(&common.home)?;
        // Before servers are started in vain.
        Manifest::of(&self.folder, &keyring)?;
        let servers =
            Servers::start(&common.home, system::given(&self.log, &self.database)).await?;
        let restored = self.restore(&servers, &keyring).await;
        servers.stop().await?;
        let restored = restored?;
        let mut answer = counts(&restored.manifest);
        answer["keys"] = json!(restored.manifest.keys() - restored.keys_left_out);
        answer["position"] = json!(restored.position.to_string());
        print(&answer)
    }

    async fn restore(self, servers: &Servers, keyring: &Keyring) -> Result<Restored, Failure> {
        let (mut log, mut database) = (self.log, self.database);
        log.nats_url = Some(servers.nats_url().to_owned());
        database.url = Some(Secret::new(servers.database_url().to_owned()));
        let bar = Bar::new();
        let tell = |progress| bar.show(progress);
        let restored = backup::restore(&self.folder, &log, keyring, &tell).await?;
        bar.end();
        let pool = database::connect(&database)?;
        database::migrate(&pool).await?;
        projector::empty(&pool).await?;
        Ok(restored)
    }
}
