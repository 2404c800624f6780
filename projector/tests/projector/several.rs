//! Several projectors: one is active, and nothing counts twice whatever happens to it.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use projector::verify;
use rustix::process::{Pid, Signal, kill_process};
use schemas::Log;
use tokio::time::Instant;

use crate::support::{World, eventually, nats_url};

/// A projector in a process of its own.
struct Process(Child);

impl Process {
    fn start(world: &World) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_projector"))
            .env("WAYPOST_HOME", world.home.path())
            .env("WAYPOST_ADDR", free_address().to_string())
            .env("WAYPOST_LOG_PREFIX", &world.prefix)
            .env("WAYPOST_LOG", "warn")
            .env("NATS_URL", nats_url())
            .env("DATABASE_URL", &world.database_url)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// How many processes hold a lock of the active projector.
async fn active(world: &World) -> i64 {
    world
        .count(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND classid = 2002876784",
        )
        .await
}

/// Every event so far added one contact: rows, total and position are the same number.
async fn assert_counted_once(world: &World, end: u64) {
    let end = i64::try_from(end).unwrap();
    assert_eq!(world.count("SELECT count(*) FROM contacts").await, end);
    let total = "SELECT sum(count)::bigint FROM totals WHERE kind = 'contacts'";
    assert_eq!(world.count(total).await, end);
}

async fn takes_over(stop: impl FnOnce(&Process)) -> (World, Process, Process, u64) {
    let world = World::new().await;
    let first = Process::start(&world);
    let end = world
        .append_contacts((0..10).map(|i| format!("a{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    let second = Process::start(&world);
    eventually("every log has an active projector", async || {
        active(&world).await == 3
    })
    .await;
    // A batch is under way when the first falls silent.
    let end = world
        .append_contacts((0..3_000).map(|i| format!("b{i}")))
        .await;
    stop(&first);
    let silent_since = Instant::now();
    world.caught_up(Log::Events, end.sequence()).await;
    let end = world
        .append_contacts((0..10).map(|i| format!("c{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    let took = silent_since.elapsed();
    assert!(took < Duration::from_secs(5), "taking over took {took:?}");
    (world, first, second, end.sequence())
}

#[tokio::test]
async fn a_second_projector_takes_over_within_five_seconds() {
    let (world, first, second, end) = takes_over(|first| first.signal(Signal::KILL)).await;
    assert_counted_once(&world, end).await;
    for name in ["contacts", "companies"] {
        let verified = verify(&world.log, &world.pool, name, &|_| ())
            .await
            .unwrap();
        assert_eq!(verified.differences, 0, "{name}: {:?}", verified.told);
    }
    drop((first, second));
    world.end().await;
}

#[tokio::test]
async fn a_stopped_projector_is_replaced_and_does_no_harm_when_it_wakes() {
    let (world, first, second, _) = takes_over(|first| first.signal(Signal::STOP)).await;
    first.signal(Signal::CONT);
    let end = world
        .append_contacts((0..3_000).map(|i| format!("d{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    assert_counted_once(&world, end.sequence()).await;
    // The one that woke is there again when it is needed.
    drop(second);
    let end = world
        .append_contacts((0..10).map(|i| format!("e{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    assert_counted_once(&world, end.sequence()).await;
    drop(first);
    world.end().await;
}

#[tokio::test]
async fn a_checkpoint_and_its_rows_commit_together() {
    let world = World::new().await;
    let end = world
        .append_contacts((0..10_000).map(|i| format!("k{i}")))
        .await;
    let end = i64::try_from(end.sequence()).unwrap();
    let mut kills = 0;
    let mut process = Process::start(&world);
    let mut seen = 0;
    loop {
        // One statement sees one state of the database.
        let (position, rows, total): (i64, i64, i64) = sqlx::query_as(
            "SELECT coalesce(max(sequence), 0), (SELECT count(*) FROM contacts),
                    (SELECT coalesce(sum(count), 0)::bigint FROM totals WHERE kind = 'contacts')
             FROM projection_checkpoints WHERE name = 'contacts'",
        )
        .fetch_one(&world.pool)
        .await
        .unwrap();
        assert_eq!((rows, total), (position, position));
        if position == end {
            break;
        }
        if position > seen && kills < 5 {
            seen = position;
            kills += 1;
            process.signal(Signal::KILL);
            process = Process::start(&world);
        }
    }
    assert!(kills > 0, "it was too fast to be killed at work");
    drop(process);
    world.end().await;
}
