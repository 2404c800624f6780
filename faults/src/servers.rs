//! The run's own NATS and Postgres, and what can be done to them.

use local_servers::{Error, LocalNats, LocalPostgres, PostgresOptions, TemporaryHome, Urls};

/// The servers of one run.
pub(crate) struct Servers {
    pub(crate) nats: Vec<LocalNats>,
    pub(crate) postgres: LocalPostgres,
}

impl Servers {
    pub(crate) async fn start(home: &TemporaryHome, nats: usize) -> Result<Self, Error> {
        let nats = LocalNats::start_several(home.path(), nats).await?;
        let postgres = LocalPostgres::start(home.path(), PostgresOptions::default()).await?;
        Ok(Self { nats, postgres })
    }

    /// Where they are, for the services.
    pub(crate) fn urls(&self) -> Urls {
        Urls {
            nats: Some(LocalNats::urls(&self.nats)),
            database: Some(self.postgres.url()),
            reader: Some(self.postgres.reader_url()),
        }
    }
}
