//! What the nemesis does to several servers at once.

use std::time::{Duration, Instant};

use async_nats::{ConnectOptions, ServerAddr, jetstream};
use futures::TryStreamExt as _;
use serde_json::Value;

use super::{Nemesis, Target};

/// How long servers may take to say who is to step down.
const PATIENCE: Duration = Duration::from_secs(5);
/// The stream whose leader most depends on.
const EVENTS: &str = "EVENTS";

impl Nemesis {
    /// Has the leader of a stream, or of a bucket, make place for another server.
    pub(super) async fn step_down(&mut self) {
        let Ok(Some(context)) = tokio::time::timeout(PATIENCE, self.jetstream()).await else {
            return;
        };
        let names = context.stream_names().try_collect::<Vec<String>>();
        let Ok(Ok(mut names)) = tokio::time::timeout(PATIENCE, names).await else {
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
        if let Ok(Ok(answer)) = tokio::time::timeout(PATIENCE, asking).await
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
