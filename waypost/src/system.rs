//! The running system, as seen by a command.

use std::path::Path;
use std::{fs, io};

use event_log::{EventLog, Keyring, LogSettings};
use local_servers::Urls;
use schemas::{AggregateType, OrgId, StreamId};
use service::settings::{CommonSettings, DatabaseSettings, Secret};

use crate::Failure;

/// The file of a home with the address at which `waypost up` was last started there.
const ADDRESS: &str = "address";

/// How a command reaches the log.
#[derive(Debug, clap::Args)]
pub(crate) struct LogAccess {
    #[command(flatten)]
    log: LogSettings,
}

impl LogAccess {
    /// Connects to the log of the running system.
    pub(crate) async fn open(self, common: &CommonSettings) -> Result<EventLog, Failure> {
        let keyring = Keyring::load(&common.home)?;
        self.open_with(common, keyring).await
    }

    /// Connects with the given master key.
    pub(crate) async fn open_with(
        &self,
        common: &CommonSettings,
        keyring: Keyring,
    ) -> Result<EventLog, Failure> {
        let mut settings = self.log.clone();
        if settings.given_nats_url().is_none() {
            let known = Urls::of(&common.home).nats;
            settings.nats_url = Some(known.ok_or_else(|| not_found(common, "NATS_URL"))?);
        }
        let log = EventLog::connect(&settings, keyring).await;
        log.map_err(|error| {
            format!("{error}\nIs Waypost running? Start it with `waypost up`.").into()
        })
    }
}

/// Returns the organization that a command is for, which must exist: data given to another by a
/// typo would never be found again.
pub(crate) async fn organization(log: &EventLog, id: String) -> Result<OrgId, Failure> {
    let org = OrgId::from(id);
    let stream = StreamId::new(&org, AggregateType::Organization, org.as_str());
    match log.last(&stream).await? {
        Some(_) => Ok(org),
        None => Err(format!("organization {org} not found").into()),
    }
}

/// Stores the address of a system that starts in this home, for commands that print links to it.
pub(crate) fn store_address(home: &Path, url: &str) -> io::Result<()> {
    fs::create_dir_all(home)?;
    let path = home.join(ADDRESS);
    let draft = path.with_extension("draft");
    fs::write(&draft, url)?;
    fs::rename(draft, path)
}

/// Reads the address of the system that was last started in this home, whether or not it runs.
pub(crate) fn address(home: &Path) -> Option<String> {
    let url = fs::read_to_string(home.join(ADDRESS)).ok();
    // A file that was not yet on disk when the machine failed may be empty.
    url.filter(|url| !url.is_empty())
}

/// The settings of the running system's Postgres.
pub(crate) fn database(
    mut settings: DatabaseSettings,
    common: &CommonSettings,
) -> Result<DatabaseSettings, Failure> {
    if settings.required_url().is_err() {
        let known = Urls::of(&common.home).database;
        settings.url = Some(Secret::new(
            known.ok_or_else(|| not_found(common, "DATABASE_URL"))?,
        ));
    }
    Ok(settings)
}

/// The servers that the settings name.
pub(crate) fn given(log: &LogSettings, database: &DatabaseSettings) -> Urls {
    let url = |url: &Secret<String>| url.expose().clone();
    Urls {
        nats: log.given_nats_url().map(str::to_owned),
        database: database.required_url().ok().map(url),
        reader: database.read_url().map(url),
    }
}

fn not_found(common: &CommonSettings, variable: &str) -> Failure {
    let home = common.home.display();
    format!(
        "no running Waypost is known in {home}: start it with `waypost up`, name its folder in \
         WAYPOST_HOME, or set {variable}"
    )
    .into()
}
