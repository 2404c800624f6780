//! What the server has lost is told, and nobody goes on as if it had never been.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use event_log::{EventLog, Tail, TailError};
use schemas::{AggregateType, Log};
use tokio::time::timeout;

use crate::support::{OwnServer, event_of, fresh, keyring};

/// Some 27 of these make one of the server's files.
const LARGE: usize = 300_000;
const PATIENCE: Duration = Duration::from_secs(20);

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

/// Reads to the first fault; how many events came before it.
async fn until_fault(tail: &mut Tail) -> (u64, TailError) {
    loop {
        let next = timeout(PATIENCE, tail.next(100)).await;
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
    // Whoever wants none of the events finds it all the same.
    let log = EventLog::connect(&own.settings, keyring()).await.unwrap();
    let only = [AggregateType::Claim];
    let mut tail = log.follow(Log::Events, 0, &only).await.unwrap();
    let found = loop {
        match timeout(PATIENCE, tail.next(100)).await.unwrap() {
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
    let TailError::Hole { from, to } = error;
    assert_eq!(from, before + 1);
    assert!(to > from && to < 60, "{from} to {to}");
}
