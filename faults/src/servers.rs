//! The run's own NATS and Postgres, and operations on them.

use std::time::Duration;

use local_servers::{
    Error, LocalNats, LocalPostgres, PostgresOptions, Routes, TemporaryHome, Urls,
};

use crate::disk::Disk;

/// The servers of one run. Each has a number: first the NATS servers, then Postgres.
pub(crate) struct Servers {
    pub(crate) nats: Vec<LocalNats>,
    pub(crate) postgres: LocalPostgres,
    /// The routes between the NATS servers.
    pub(crate) routes: Routes,
    /// Each server's disk, if its data are on a file system of its own; dropped after the servers.
    pub(crate) disks: Vec<Disk>,
}

impl Servers {
    pub(crate) async fn start(home: &TemporaryHome, nats: usize) -> Result<Self, Error> {
        let (nats, routes) = LocalNats::start_apart(home.path(), nats).await?;
        let postgres = LocalPostgres::start(home.path(), PostgresOptions::default()).await?;
        let disks = Vec::new();
        Ok(Self {
            nats,
            postgres,
            routes,
            disks,
        })
    }

    /// Moves each server's data to a file system of its own.
    pub(crate) async fn move_to_disks(&mut self) -> Result<(), Error> {
        for nats in &mut self.nats {
            nats.stop().await?;
            self.disks.push(Disk::below(&nats.data()).await);
        }
        for nats in &mut self.nats {
            nats.restart().await?;
        }
        self.postgres.stop().await?;
        self.disks.push(Disk::below(self.postgres.data()).await);
        self.postgres.restart().await
    }

    /// The number of servers.
    pub(crate) fn count(&self) -> usize {
        self.nats.len() + 1
    }

    /// Whether a server is Postgres.
    pub(crate) fn is_postgres(&self, nth: usize) -> bool {
        nth == self.nats.len()
    }

    /// The name of a server.
    pub(crate) fn name(&self, nth: usize) -> String {
        match self.nats.len() {
            last if nth == last => "Postgres".to_owned(),
            1 => "NATS".to_owned(),
            _ => format!("NATS {}", nth + 1),
        }
    }

    pub(crate) fn pause(&self, nth: usize) {
        match self.nats.get(nth) {
            Some(nats) => nats.pause(),
            None => self.postgres.pause(),
        }
    }

    pub(crate) fn kill(&mut self, nth: usize) {
        match self.nats.get_mut(nth) {
            Some(nats) => nats.kill(),
            None => self.postgres.kill(),
        }
    }

    /// Restarts it; kills it first if it is running.
    pub(crate) async fn restart(&mut self, nth: usize) -> Result<(), Error> {
        match self.nats.get_mut(nth) {
            Some(nats) => nats.restart().await,
            None => self.postgres.restart().await,
        }
    }

    /// Whether it has exited on its own.
    pub(crate) async fn has_ended(&mut self, nth: usize) -> bool {
        let ended = async {
            match self.nats.get_mut(nth) {
                Some(nats) => nats.exited().await,
                None => self.postgres.exited().await,
            }
        };
        tokio::time::timeout(Duration::ZERO, ended).await.is_ok()
    }

    /// The addresses for the services.
    pub(crate) fn urls(&self) -> Urls {
        Urls {
            nats: Some(LocalNats::urls(&self.nats)),
            database: Some(self.postgres.url()),
            reader: Some(self.postgres.reader_url()),
        }
    }
}
