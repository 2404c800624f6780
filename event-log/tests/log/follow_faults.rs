//! Following the log through every fault: each event once, in order.

use std::time::Duration;

use event_log::{EventLog, Expected, Tail, Whose};
use schemas::{AggregateType, EventId, Log};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::load::Load;
use crate::support::{OwnServer, everything, far_away, ids_of, recorded, stream, write};

/// Follows until an event of this aggregate has come.
fn follow(mut tail: Tail, until: &'static str) -> JoinHandle<Vec<EventId>> {
    tokio::spawn(async move {
        let mut read = Vec::new();
        loop {
            let batch = timeout(Duration::from_secs(30), tail.next(64)).await;
            let events = recorded(batch.unwrap().unwrap().items);
            let done = events.iter().any(|event| event.stream.id == until);
            read.extend(ids_of(&events));
            if done {
                return read;
            }
        }
    })
}

async fn last_word(log: &EventLog) {
    let last = stream(AggregateType::Run, "last");
    let commit = write(&last, Expected::Empty, 1);
    while log.commit(commit.clone().into()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn tails(log: &EventLog) -> [JoinHandle<Vec<EventId>>; 3] {
    let unfiltered = log.tail(Log::Events, 0, &[]).await.unwrap();
    let only = [AggregateType::Run, AggregateType::Key];
    let filtered = log.tail(Log::Events, 0, &only).await.unwrap();
    let readers = log.read_for(Log::Events, Whose::All, 0).await.unwrap();
    [unfiltered, filtered, readers].map(|tail| follow(tail, "last"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_sees_each_event_once_and_in_order_over_crashes() {
    let mut own = OwnServer::start().await;
    let tails = tails(&own.log).await;
    let load = Load::start(&own.log, 40, 2);
    for _ in 0..3 {
        load.acknowledges(300).await;
        own.crash().await;
    }
    load.acknowledges(300).await;
    load.stop().await;
    last_word(&own.log).await;
    let all = ids_of(&everything(&own.log, Log::Events).await);
    for tail in tails {
        let read = tail.await.unwrap();
        assert_eq!(read.len(), all.len());
        assert!(read == all);
    }
}

/// Events in the log at its start come from one consumer for each kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_of_several_kinds_goes_on_in_the_past_over_crashes() {
    let mut own = OwnServer::start().await;
    let kinds = [AggregateType::Run, AggregateType::Key];
    let commits = (0..400).map(|nth| {
        let stream = stream(kinds[nth % 2], &format!("a{nth}"));
        write(&stream, Expected::Empty, 1).into()
    });
    for outcome in own.log.commit_each(commits.collect()).await {
        outcome.unwrap();
    }
    let mut tail = own.log.tail(Log::Events, 0, &kinds).await.unwrap();
    let mut read = Vec::new();
    for _ in 0..3 {
        let batch = timeout(Duration::from_secs(30), tail.next(64)).await;
        read.extend(ids_of(&recorded(batch.unwrap().unwrap().items)));
        assert!(!tail.caught_up());
        own.crash().await;
    }
    last_word(&own.log).await;
    read.extend(follow(tail, "last").await.unwrap());
    assert!(read == ids_of(&everything(&own.log, Log::Events).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_sees_each_event_once_and_in_order_over_a_server_that_hangs() {
    let own = OwnServer::start().await;
    let tails = tails(&own.log).await;
    let load = Load::start(&own.log, 40, 2);
    load.acknowledges(300).await;
    own.nats.pause();
    // Longer than the tail tolerates silence.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    own.nats.resume();
    load.acknowledges(300).await;
    load.stop().await;
    last_word(&own.log).await;
    let all = ids_of(&everything(&own.log, Log::Events).await);
    for tail in tails {
        assert!(tail.await.unwrap() == all);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_of_a_slow_server_goes_on_however_often_its_wait_is_cancelled() {
    let mut own = OwnServer::start().await;
    let far_away = far_away(&own.settings, Duration::from_millis(150)).await;
    let mut tail = far_away.tail(Log::Events, 0, &[]).await.unwrap();
    own.crash().await;
    last_word(&own.log).await;
    let mut wait = async || timeout(Duration::from_millis(100), tail.next(1)).await;
    let come = async {
        loop {
            if let Ok(batch) = wait().await {
                return recorded(batch.unwrap().items);
            }
        }
    };
    let come = timeout(Duration::from_secs(30), come).await;
    assert_eq!(come.unwrap().len(), 1);
}
