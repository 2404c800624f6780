//! What the nemesis does to the disks that servers keep their data on.

use std::time::Instant;

use super::{Nemesis, Target};
use crate::disk;

impl Nemesis {
    /// Power fails, of one server or of all: they exit, and what was not on their disks is lost.
    pub(super) async fn power_loss(&mut self) {
        let began = Instant::now();
        let servers = self.some_servers();
        // Nothing may be acknowledged between the loss of the disk and the end of its server.
        for nth in &servers {
            self.servers.pause(*nth);
        }
        for nth in &servers {
            self.servers.disks[*nth].shut_down().await;
        }
        self.begin_anew(&servers, began).await;
    }

    /// A disk fails under a server that continues: nothing can be written or flushed any more. Not
    /// with a single NATS server: it shows its readers what it could not flush.
    pub(super) async fn disk_fails(&mut self) {
        let began = Instant::now();
        let nth = match self.servers.nats.len() {
            1 => 1,
            _ => self.some_server(),
        };
        self.servers.disks[nth].shut_down().await;
        tokio::time::sleep(self.dice.millis(100..3_000)).await;
        self.begin_anew(&[nth], began).await;
    }

    /// Kills servers whose disks are shut down, and starts them on what the disks have kept.
    async fn begin_anew(&mut self, servers: &[usize], began: Instant) {
        for nth in servers {
            self.kill_server(*nth);
        }
        tokio::time::sleep(self.dice.millis(0..900)).await;
        for nth in servers {
            self.servers.disks[*nth].bring_back().await;
            self.start_again(*nth, began).await;
        }
    }

    /// Fills a disk for some seconds. A NATS server must be restarted afterwards, as it reports;
    /// Postgres continues on its own unless it has exited.
    pub(super) async fn disk_full(&mut self) {
        let (began, nth) = (Instant::now(), self.some_server());
        self.done.hurt(self.servers.name(nth));
        self.servers.disks[nth].fill();
        tokio::time::sleep(self.dice.millis(500..6_000)).await;
        self.servers.disks[nth].empty();
        if !self.servers.is_postgres(nth) || self.servers.has_ended(nth).await {
            self.start_again(nth, began).await;
        } else {
            self.counted_alone(began);
        }
    }

    /// A disk hangs for some seconds: writers to it block, and continue afterwards.
    pub(super) async fn disk_hangs(&mut self) {
        let (began, nth) = (Instant::now(), self.some_server());
        self.done.hurt(self.servers.name(nth));
        self.servers.disks[nth].freeze().await;
        tokio::time::sleep(self.dice.millis(200..8_000)).await;
        self.servers.disks[nth].thaw().await;
        if self.servers.is_postgres(nth) {
            self.counted_alone(began);
        }
    }

    /// Kills Postgres and restores its data as saved the last time, or saves them for the next
    /// time.
    pub(super) async fn older_database(&mut self) {
        let data = self.servers.postgres.data().to_owned();
        let kept = data.with_extension("older");
        let mut since = Instant::now();
        self.servers.postgres.kill();
        self.done.kills += 1;
        if let Some(then) = self.database_kept.take() {
            self.done.hurt("put back".to_owned());
            since = then;
            disk::put_back(&kept, &data).await;
        } else {
            self.done.hurt("kept".to_owned());
            self.database_kept = Some(since);
            disk::keep(&data, &kept).await;
        }
        self.bring_back(Target::Postgres).await;
        self.counted_alone(since);
    }

    async fn start_again(&mut self, nth: usize, since: Instant) {
        self.servers.restart(nth).await.expect("a server again");
        if self.servers.is_postgres(nth) {
            self.counted_alone(since);
        }
    }

    fn some_servers(&mut self) -> Vec<usize> {
        if self.dice.chance(30) {
            return (0..self.servers.count()).collect();
        }
        vec![self.some_server()]
    }

    fn some_server(&mut self) -> usize {
        self.dice.below(self.servers.count())
    }
}
