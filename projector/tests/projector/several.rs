//! Several projectors: one is active, and nothing counts twice whatever happens to it.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use schemas::Log;
use tokio::time::Instant;

use crate::equality::assert_equal;
use crate::support::{World, eventually, nats_url};

/// Time for another to take over and to catch up, which takes a few seconds on an idle machine.
/// Without the server ending the session of one that is silent it would take minutes.
const TAKEN_OVER: Duration = Duration::from_secs(20);

/// A projector in a separate process.
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

/// The number of processes that hold a lock of the active projector.
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
    assert!(took < TAKEN_OVER, "taking over took {took:?}");
    (world, first, second, end.sequence())
}

#[tokio::test]
async fn a_second_projector_takes_over_from_one_that_was_killed() {
    let (world, first, second, end) = takes_over(|first| first.signal(Signal::KILL)).await;
    assert_counted_once(&world, end).await;
    for name in ["contacts", "companies"] {
        assert_equal(&world, name).await;
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
    // The one that woke is available again when it is needed.
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
    let made = world.append_contacts_and_companies(4_000).await;
    let end = *made.iter().flatten().max().unwrap();
    let mut kills = 0;
    let mut process = Process::start(&world);
    let mut seen = 0;
    loop {
        let mut slowest = end;
        for (kind, made) in ["contacts", "companies"].into_iter().zip(&made) {
            let (position, rows, total) = standing(&world, kind).await;
            let applied = made.partition_point(|sequence| *sequence <= position);
            let applied = i64::try_from(applied).unwrap();
            assert_eq!((rows, total), (applied, applied), "{kind} at {position}");
            slowest = slowest.min(position);
        }
        if slowest == end {
            break;
        }
        if slowest > seen && kills < 5 {
            seen = slowest;
            kills += 1;
            process.signal(Signal::KILL);
            process = Process::start(&world);
        }
    }
    assert!(kills > 0, "it was too fast to be killed at work");
    drop(process);
    world.end().await;
}

/// A projection's position, rows and total. One statement sees one snapshot of the database.
async fn standing(world: &World, kind: &'static str) -> (i64, i64, i64) {
    let query = format!(
        "SELECT coalesce(max(sequence), 0), (SELECT count(*) FROM {kind}),
                (SELECT coalesce(sum(count), 0)::bigint FROM totals WHERE kind = '{kind}')
         FROM projection_checkpoints WHERE name = '{kind}'"
    );
    let query = sqlx::query_as(sqlx::AssertSqlSafe(query));
    query.fetch_one(&world.pool).await.unwrap()
}

/// Sessions that write rows of the log `EVENTS`.
async fn writers(world: &World) -> i64 {
    world
        .count(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND application_name = 'waypost projector events writer'",
        )
        .await
}

/// Starts a projector that cannot access the table of companies at first, and checks that it
/// reaches `end` with both kinds right.
async fn with_companies_held_up(world: &World, each: i64, end: i64) {
    let mut held = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE companies IN SHARE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    let projector = world.start();
    eventually("contacts are written", async || {
        standing(world, "contacts").await.1 > 0
    })
    .await;
    assert_eq!(standing(world, "companies").await, (0, 0, 0));
    assert!(writers(world).await >= 2);
    // Writes of companies fail until their table is available.
    held.rollback().await.unwrap();
    world.caught_up(Log::Events, end.cast_unsigned()).await;
    for kind in ["contacts", "companies"] {
        assert_eq!(standing(world, kind).await, (end, each, each), "{kind}");
        assert_equal(world, kind).await;
    }
    projector.stop().await;
}

#[tokio::test]
async fn large_batches_are_written_side_by_side_and_who_is_held_up_comes_after() {
    let world = World::new().await;
    let made = world.append_contacts_and_companies(3_000).await;
    let end = *made.iter().flatten().max().unwrap();
    with_companies_held_up(&world, 3_000, end).await;
    world.end().await;
}

#[tokio::test]
async fn projections_that_catch_up_together_part_and_meet_again() {
    let world = World::new().await;
    let made = world.append_contacts_and_companies(6_000).await;
    let end = *made.iter().flatten().max().unwrap();
    let projector = world.start();
    world.caught_up(Log::Events, end.cast_unsigned()).await;
    projector.stop().await;
    world.make_new(&["contacts", "companies"]).await;
    with_companies_held_up(&world, 6_000, end).await;
    world.end().await;
}
