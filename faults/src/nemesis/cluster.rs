//! What the nemesis does to several servers at once.

use std::time::{Duration, Instant};

use async_nats::{ConnectOptions, ServerAddr, jetstream};
use futures::TryStreamExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::{Nemesis, Target};
use crate::disk;

/// How long servers may take to say who is to step down.
const PATIENCE: Duration = Duration::from_secs(5);
/// The stream whose leader most depends on.
const EVENTS: &str = "EVENTS";
/// How long a server may take that is told everything anew.
const TOLD: Duration = Duration::from_mins(2);

impl Nemesis {
    /// Has the leader of a stream, or of a bucket, make place for another server.
    pub(super) async fn step_down(&mut self) {
        let Ok(Some(context)) = timeout(PATIENCE, self.jetstream()).await else {
            return;
        };
        let names = context.stream_names().try_collect::<Vec<String>>();
        let Ok(Ok(mut names)) = timeout(PATIENCE, names).await else {
            return;
        };
        names.sort();
        let stream = if self.dice.chance(50) {
            EVENTS.to_owned()
        } else {
            self.dice.pick(&names).unwrap_or_default()
        };
        let subject = format!("STREAM.LEADER.STEPDOWN.{stream}");
        let asking = context.request::<_, _, Value>(subject, &());
        if let Ok(Ok(answer)) = timeout(PATIENCE, asking).await
            && answer["success"] == true
        {
            self.done.hurt(format!("the leader of {stream}"));
        }
    }

    async fn jetstream(&self) -> Option<jetstream::Context> {
        for server in self.servers.nats.iter().filter(|one| one.pid().is_some()) {
            let address: ServerAddr = server.url().parse().ok()?;
            // The client does not take them from an address by itself.
            let user = address.username()?.to_owned();
            let password = address.password()?.to_owned();
            let options = ConnectOptions::with_user_and_password(user, password);
            if let Ok(client) = options.connect(address).await {
                return Some(jetstream::new(client));
            }
        }
        None
    }

    /// Kills two NATS servers of three, which leaves nobody who could acknowledge anything.
    pub(super) async fn two_of_three(&mut self) {
        let stays = self.dice.below(self.servers.nats.len());
        for nth in (0..self.servers.nats.len()).filter(|nth| *nth != stays) {
            self.kill_server(nth);
        }
        tokio::time::sleep(self.dice.millis(200..5_000)).await;
        self.bring_back(Target::Nats).await;
    }

    /// A server loses its data: it comes back with nothing, and the others tell it everything.
    pub(super) async fn folder_lost(&mut self) {
        let nth = self.dice.below(self.servers.nats.len());
        self.kill_server(nth);
        disk::clear(&self.servers.nats[nth].data()).expect("data of NATS");
        tokio::time::sleep(self.dice.millis(0..3_000)).await;
        self.bring_back(Target::Nats).await;
        // Until then no other server may be lost: two would have less than all.
        if timeout(TOLD, self.until_all_have_all()).await.is_err() {
            self.done.hurt("not told all by the others".to_owned());
        }
    }

    /// Waits until every server has what its streams hold.
    async fn until_all_have_all(&self) {
        while !self.have_all().await.unwrap_or_default() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn have_all(&self) -> Option<bool> {
        let context = timeout(PATIENCE, self.jetstream()).await.ok()??;
        let streams = context.streams().try_collect::<Vec<_>>();
        let streams = timeout(PATIENCE, streams).await.ok()?.ok()?;
        let copies = streams.iter().filter_map(|stream| stream.cluster.as_ref());
        let mut followers = copies.flat_map(|copies| &copies.replicas);
        Some(!streams.is_empty() && followers.all(|follower| follower.current))
    }

    /// Kills all that keeps anything.
    pub(super) async fn kill_nats_and_postgres(&mut self) {
        let since = Instant::now();
        for nats in &mut self.servers.nats {
            nats.kill();
            self.done.kills += 1;
        }
        self.servers.postgres.kill();
        self.done.kills += 1;
        self.done.hurt("NATS, Postgres".to_owned());
        tokio::time::sleep(self.dice.millis(0..900)).await;
        self.bring_back(Target::Nats).await;
        self.bring_back(Target::Postgres).await;
        self.counted_alone(since);
    }
}
