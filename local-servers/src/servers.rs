use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use crate::{Error, LocalNats, LocalPostgres, NatsOptions, PostgresOptions, Urls};

/// Pause between the unexpected end of a server and its next start.
const PAUSE: Duration = Duration::from_millis(500);
/// The name that Postgres gives it.
const TEMPLATE: &str = "template1";

/// A NATS server and a Postgres: the home's own, except those that are given.
#[derive(Debug)]
pub struct Servers {
    nats: Option<LocalNats>,
    postgres: Option<LocalPostgres>,
    nats_url: String,
    database_url: String,
    reader_database_url: Option<String>,
}

impl Servers {
    /// Starts, in parallel, the servers that `given` does not name.
    pub async fn start(home: &Path, given: Urls) -> Result<Self, Error> {
        let nats = async {
            match given.nats {
                Some(_) => Ok(None),
                None => LocalNats::start(home, NatsOptions::default())
                    .await
                    .map(Some),
            }
        };
        let postgres = async {
            match given.database {
                Some(_) => Ok(None),
                None => LocalPostgres::start(home, PostgresOptions::default())
                    .await
                    .map(Some),
            }
        };
        let (nats, postgres) = tokio::try_join!(nats, postgres)?;
        Ok(Self {
            nats_url: given
                .nats
                .or_else(|| nats.as_ref().map(LocalNats::url))
                .unwrap_or_default(),
            database_url: given
                .database
                .or_else(|| postgres.as_ref().map(LocalPostgres::url))
                .unwrap_or_default(),
            reader_database_url: postgres
                .as_ref()
                .map(LocalPostgres::reader_url)
                .or(given.reader),
            nats,
            postgres,
        })
    }

    /// For `NATS_URL`.
    pub fn nats_url(&self) -> &str {
        &self.nats_url
    }

    /// For `WAYPOST_NATS_SYSTEM_URL`, if the NATS server is ours.
    pub fn nats_system_url(&self) -> Option<String> {
        self.nats.as_ref().map(LocalNats::system_url)
    }

    /// For `DATABASE_URL`.
    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// The database that Postgres creates new ones from, if it is ours.
    pub fn template_url(&self) -> Option<String> {
        let postgres = self.postgres.as_ref()?;
        Some(postgres.database_url(TEMPLATE))
    }

    /// For `WAYPOST_READ_DATABASE_URL`; absent if only the other one was given.
    pub fn reader_database_url(&self) -> Option<&str> {
        self.reader_database_url.as_deref()
    }

    /// Restarts a server of ours when it ends on its own. Returns only when that fails; safe to
    /// drop at any time.
    pub async fn supervise(&mut self) -> Error {
        loop {
            let outcome = tokio::select! {
                status = ended(self.nats.as_mut(), LocalNats::exited) => {
                    tell("NATS", status).await;
                    restart(self.nats.as_mut(), LocalNats::restart).await
                }
                status = ended(self.postgres.as_mut(), LocalPostgres::exited) => {
                    tell("Postgres", status).await;
                    restart(self.postgres.as_mut(), LocalPostgres::restart).await
                }
            };
            if let Err(error) = outcome {
                return error;
            }
        }
    }

    /// Stops what was started here; everything acknowledged is on disk.
    pub async fn stop(mut self) -> Result<(), Error> {
        let nats = async {
            match &mut self.nats {
                Some(nats) => nats.stop().await,
                None => Ok(()),
            }
        };
        let postgres = async {
            match &mut self.postgres {
                Some(postgres) => postgres.stop().await,
                None => Ok(()),
            }
        };
        let (nats, postgres) = tokio::join!(nats, postgres);
        nats.and(postgres)
    }
}

async fn ended<S>(
    server: Option<&mut S>,
    exited: impl AsyncFn(&mut S) -> ExitStatus,
) -> ExitStatus {
    match server {
        Some(server) => exited(server).await,
        None => std::future::pending().await,
    }
}

async fn restart<S>(
    server: Option<&mut S>,
    restart: impl AsyncFn(&mut S) -> Result<(), Error>,
) -> Result<(), Error> {
    match server {
        Some(server) => restart(server).await,
        None => Ok(()),
    }
}

async fn tell(server: &str, status: ExitStatus) {
    tracing::error!(server, %status, "A private server ended unexpectedly; restarting it.");
    tokio::time::sleep(PAUSE).await;
}
