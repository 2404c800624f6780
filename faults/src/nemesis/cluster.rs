//! What the nemesis does to several servers at once.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::{ConnectOptions, ServerAddr, jetstream};
use futures::TryStreamExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::{Nemesis, Target};
use crate::disk;

/// How long servers may take to name the leader that is to step down.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The stream whose leader matters most.
const EVENTS: &str = "EVENTS";
/// How long full replication to a server may take.
const TOLD: Duration = Duration::from_mins(2);
/// Maximum number of bytes cut off, some hundred events.
const CUT_OFF: usize = 64 * 1024;

impl Nemesis {
    /// Has the leader of a stream, or of a bucket, step down for another server.
    pub(super) async fn step_down(&mut self) {
        let Ok(Some(context)) = timeout(TIMEOUT, self.jetstream()).await else {
            return;
        };
        let names = context.stream_names().try_collect::<Vec<String>>();
        let Ok(Ok(mut names)) = timeout(TIMEOUT, names).await else {
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
        if let Ok(Ok(answer)) = timeout(TIMEOUT, asking).await
            && answer["success"] == true
        {
            self.done.hurt(format!("the leader of {stream}"));
        }
    }

    async fn jetstream(&self) -> Option<jetstream::Context> {
        for server in self.servers.nats.iter().filter(|one| one.pid().is_some()) {
            let address: ServerAddr = server.url().parse().ok()?;
            // The client does not take them from an address on its own.
            let user = address.username()?.to_owned();
            let password = address.password()?.to_owned();
            let options = ConnectOptions::with_user_and_password(user, password);
            if let Ok(client) = options.connect(address).await {
                return Some(jetstream::new(client));
            }
        }
        None
    }

    /// Kills two NATS servers of three, which leaves no quorum to acknowledge anything.
    pub(super) async fn two_of_three(&mut self) {
        let stays = self.dice.below(self.servers.nats.len());
        for nth in (0..self.servers.nats.len()).filter(|nth| *nth != stays) {
            self.kill_server(nth);
        }
        tokio::time::sleep(self.dice.millis(200..5_000)).await;
        self.bring_back(Target::Nats).await;
    }

    /// A server loses its data: it restarts empty, and the others replicate everything to it.
    pub(super) async fn folder_lost(&mut self) {
        let nth = self.dice.below(self.servers.nats.len());
        if self.kill_where_all_have_all(nth).await {
            disk::clear(&self.servers.nats[nth].data()).expect("data of NATS");
            self.until_told().await;
        }
    }

    /// Restores a server's data as saved the last time, or saves them for the next time.
    pub(super) async fn older_folder(&mut self) {
        let kept = self.system.home().join("nats-older");
        let some = self.dice.below(self.servers.nats.len());
        let nth = self.folder_kept.unwrap_or(some);
        if !self.kill_where_all_have_all(nth).await {
            return;
        }
        let data = self.servers.nats[nth].data();
        if self.folder_kept.take().is_some() {
            self.done.hurt("put back".to_owned());
            disk::put_back(&kept, &data).await;
        } else {
            self.done.hurt("kept".to_owned());
            self.folder_kept = Some(nth);
            disk::keep(&data, &kept).await;
        }
        self.until_told().await;
    }

    /// Cuts off what a server last wrote to one of its streams, and half of an event before it.
    pub(super) async fn end_cut_off(&mut self) {
        let nth = self.dice.below(self.servers.nats.len());
        if !self.kill_where_all_have_all(nth).await {
            return;
        }
        let newest = newest_files(&self.servers.nats[nth].streams()).expect("data of NATS");
        if let Some((path, length)) = self.dice.pick(&newest) {
            let file = std::fs::File::options().write(true).open(&path);
            let left = length.saturating_sub(self.dice.below(CUT_OFF) as u64);
            let cut = file.and_then(|file| file.set_len(left));
            cut.expect("a file of NATS");
        }
        self.until_told().await;
    }

    /// Kills a server whose data are about to be lost, once the others have all its data: anything
    /// only it had would be lost. Returns whether it was killed.
    async fn kill_where_all_have_all(&mut self, nth: usize) -> bool {
        let all_have_all = timeout(TOLD, self.until_all_have_all()).await.is_ok();
        if all_have_all {
            self.kill_server(nth);
        } else {
            self.done.hurt("nobody, as not all had all".to_owned());
        }
        all_have_all
    }

    /// Brings a server back and waits until the others have replicated what it lacks.
    async fn until_told(&mut self) {
        tokio::time::sleep(self.dice.millis(0..3_000)).await;
        self.bring_back(Target::Nats).await;
        // Until then no other server may be lost: the remaining two would lack data.
        if timeout(TOLD, self.until_all_have_all()).await.is_err() {
            self.done.hurt("not told all by the others".to_owned());
        }
    }

    /// Waits until every server has all messages of its streams.
    async fn until_all_have_all(&self) {
        while !self.have_all().await.unwrap_or_default() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn have_all(&self) -> Option<bool> {
        let context = timeout(TIMEOUT, self.jetstream()).await.ok()??;
        let streams = context.streams().try_collect::<Vec<_>>();
        let streams = timeout(TIMEOUT, streams).await.ok()?.ok()?;
        let copies = streams.iter().filter_map(|stream| stream.cluster.as_ref());
        let mut followers = copies.flat_map(|copies| &copies.replicas);
        Some(!streams.is_empty() && followers.all(|follower| follower.current))
    }

    /// Kills every server that stores anything.
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

/// The newest file of each stream's messages, with its length.
fn newest_files(streams: &Path) -> std::io::Result<Vec<(PathBuf, u64)>> {
    let mut newest = Vec::new();
    for stream in std::fs::read_dir(streams)? {
        let files = std::fs::read_dir(stream?.path().join("msgs"))?;
        let paths = files.flatten().map(|file| file.path());
        if let Some((_, path)) = paths
            .filter_map(|path| Some((number_of(&path)?, path)))
            .max()
        {
            newest.push((path.clone(), path.metadata()?.len()));
        }
    }
    newest.sort();
    Ok(newest)
}

/// The number in a name such as `7.blk`, as files of messages have.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".blk")?.parse().ok()
}
