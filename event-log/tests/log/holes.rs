//! What the server has lost is reported, and nobody continues as if it had never existed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use event_log::{EventLog, Expected, Tail, TailError};
use schemas::{AggregateType, Log};
use tokio::time::timeout;

use crate::support::{OwnServer, event_of, fresh, keyring, raw, stream, stream_name, write};

/// Some 27 of these make one of the server's files.
const LARGE: usize = 300_000;
const TIMEOUT: Duration = Duration::from_secs(20);

async fn stopped_with_events(count: usize) -> OwnServer {
    let mut own = OwnServer::start().await;
    for _ in 0..count {
        let mut commit = fresh(1);
        commit.writes[0].events = vec![event_of(LARGE)];
        own.log.commit(commit).await.unwrap();
    }
    own.nats.stop().await.unwrap();
    own
}

fn files(own: &OwnServer) -> PathBuf {
    let accounts = own.home.path().join("nats/data/jetstream");
    let account = fs::read_dir(accounts).unwrap().next().unwrap().unwrap();
    account.path().join("streams/EVENTS/msgs")
}

async fn restarted(own: &mut OwnServer) -> Tail {
    own.nats.restart().await.unwrap();
    let log = EventLog::connect(&own.settings, keyring()).await.unwrap();
    log.tail(Log::Events, 0, &[]).await.unwrap()
}

/// Reads to the first fault; returns how many events came before it.
async fn until_fault(tail: &mut Tail) -> (u64, TailError) {
    loop {
        let next = timeout(TIMEOUT, tail.next(100)).await;
        if let Err(error) = next.unwrap() {
            return (tail.last_sequence(), error);
        }
        assert!(!tail.caught_up(), "the hole was passed over");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_damaged_on_disk_is_a_hole() {
    let mut own = stopped_with_events(20).await;
    let block = files(&own).join("1.blk");
    let mut bytes = fs::read(&block).unwrap();
    bytes[LARGE * 7 + LARGE / 2] ^= 0xff;
    fs::write(&block, bytes).unwrap();

    let mut tail = restarted(&mut own).await;
    for _ in 0..2 {
        let (before, error) = until_fault(&mut tail).await;
        assert_eq!(before, 7);
        assert!(
            matches!(error, TailError::Hole { from: 8, to: 8 }),
            "{error}"
        );
    }
    // A follower that wants none of the events finds it all the same.
    let log = EventLog::connect(&own.settings, keyring()).await.unwrap();
    let only = [AggregateType::Claim];
    let mut tail = log.follow(Log::Events, 0, &only).await.unwrap();
    let found = loop {
        match timeout(TIMEOUT, tail.next(100)).await.unwrap() {
            Ok(batch) => assert!(!batch.caught_up, "the hole was passed over"),
            Err(hole) => break hole,
        }
    };
    assert!(matches!(found, TailError::Hole { from: 8, to: 8 }));
    assert_eq!(tail.last_sequence(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_gone_is_a_hole_though_the_server_calls_it_deleted() {
    let mut own = stopped_with_events(60).await;
    fs::remove_file(files(&own).join("2.blk")).unwrap();
    let mut tail = restarted(&mut own).await;
    let (before, error) = until_fault(&mut tail).await;
    let TailError::Hole { from, to } = error else {
        panic!("{error}");
    };
    assert_eq!(from, before + 1);
    assert!(to > from && to < 60, "{from} to {to}");
}

/// The loss that a tail and a new process report for a log purged up to `before`.
async fn purged(log: Log, before: u64) -> (Option<TailError>, bool) {
    let own = OwnServer::start().await;
    let kind = match log {
        Log::Events => AggregateType::Run,
        Log::Locations => AggregateType::Track,
        Log::Deliveries => AggregateType::Delivery,
    };
    let mut tail = own.log.tail(log, 0, &[]).await.unwrap();
    for nth in 0..6 {
        let commit = write(&stream(kind, &format!("a{nth}")), Expected::Empty, 1);
        own.log.commit(commit.into()).await.unwrap();
    }
    while tail.last_sequence() < 6 {
        timeout(TIMEOUT, tail.next(100)).await.unwrap().unwrap();
    }
    let raw = raw(own.settings.nats_url()).await;
    let raw = raw
        .get_stream(stream_name(&own.settings, log))
        .await
        .unwrap();
    raw.purge().sequence(before).await.unwrap();
    let mut again = own.log.tail(log, 0, &[]).await.unwrap();
    let told = loop {
        match timeout(TIMEOUT, again.next(100)).await.unwrap() {
            Ok(batch) if batch.caught_up => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
    };
    // A reader that has read them before misses nothing.
    let commit = write(&stream(kind, "last"), Expected::Empty, 1);
    own.log.commit(commit.into()).await.unwrap();
    let last = timeout(TIMEOUT, tail.next(100)).await.unwrap().unwrap();
    assert_eq!(last.last_sequence, 7);
    let opened = EventLog::connect(&own.settings, keyring()).await;
    (told, opened.is_ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_beginning_of_what_is_for_ever_is_a_hole_and_nobody_starts_on_it() {
    let (told, opens) = Box::pin(purged(Log::Events, 4)).await;
    assert!(matches!(told, Some(TailError::Hole { from: 1, to: 3 })));
    assert!(!opens);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_live_for_ever_may_lose_its_beginning() {
    for log in [Log::Locations, Log::Deliveries] {
        let (told, opens) = Box::pin(purged(log, 4)).await;
        assert!(told.is_none() && opens, "{told:?}");
    }
}
