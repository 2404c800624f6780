//! Several followers of one stream in a process: each sees every event once, and the server sends
//! it once.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use event_log::{EventLog, Expected, Follower};
use futures::TryStreamExt as _;
use schemas::{AggregateType, EventId, Log};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::load::Load;
use crate::support::{
    OwnServer, TestLog, event_of, everything, fresh, ids, ids_of, recorded, stream, write,
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Follows until an event of the aggregate `last` has come, with a pause after each batch.
fn follow(mut follower: Follower, pause: Duration) -> JoinHandle<Vec<EventId>> {
    tokio::spawn(async move {
        let mut read = Vec::new();
        loop {
            let batch = timeout(TIMEOUT, follower.next(64)).await;
            let events = recorded(batch.unwrap().unwrap().items);
            let done = events.iter().any(|event| event.stream.id == "last");
            read.extend(ids_of(&events));
            if done {
                return read;
            }
            sleep(pause).await;
        }
    })
}

async fn followers(log: &EventLog, count: u32) -> Vec<JoinHandle<Vec<EventId>>> {
    let mut following = Vec::new();
    for nth in 0..count {
        let follower = log.follow(Log::Events, 0, &[]).await.unwrap();
        following.push(follow(follower, Duration::from_millis(3) * nth));
    }
    following
}

async fn last_word(log: &EventLog) {
    let last = stream(AggregateType::Run, "last");
    let commit = write(&last, Expected::Empty, 1);
    while log.commit(commit.clone().into()).await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
}

/// How many consumers request new messages.
async fn asking(log: &TestLog) -> usize {
    let stream = log.raw_stream(Log::Events).await;
    let consumers: Vec<Info> = stream.consumers().try_collect().await.unwrap();
    let asking = consumers.iter().filter(|consumer| consumer.num_waiting > 0);
    asking.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_each_event_once_and_in_order_over_crashes_whatever_their_pace() {
    let mut own = OwnServer::start().await;
    let following = followers(&own.log, 4).await;
    let load = Load::start(&own.log, 40, 2);
    for _ in 0..3 {
        load.acknowledges(300).await;
        own.crash().await;
    }
    // From here on the connection is back.
    load.acknowledges(300).await;
    let late = followers(&own.log, 2).await;
    load.acknowledges(300).await;
    load.stop().await;
    last_word(&own.log).await;
    let all = ids_of(&everything(&own.log, Log::Events).await);
    for follower in following.into_iter().chain(late) {
        assert!(follower.await.unwrap() == all);
    }
}

#[tokio::test]
async fn who_falls_behind_what_is_kept_reads_on_from_the_log() {
    let log = TestLog::new().await;
    let mut quick = log.follow(Log::Events, 0, &[]).await.unwrap();
    let mut slow = log.follow(Log::Events, 0, &[]).await.unwrap();
    log.commit(fresh(3)).await.unwrap();
    for follower in [&mut quick, &mut slow] {
        while follower.last_sequence() < 3 {
            timeout(TIMEOUT, follower.next(9)).await.unwrap().unwrap();
        }
    }
    let mut expected = Vec::new();
    for _ in 0..12 {
        let mut commit = fresh(1);
        commit.writes[0].events = vec![event_of(900_000)];
        expected.extend(ids(&commit));
        log.commit(commit).await.unwrap();
    }
    for follower in [&mut quick, &mut slow] {
        let mut read = Vec::new();
        while read.len() < expected.len() {
            let batch = timeout(TIMEOUT, follower.next(1)).await.unwrap().unwrap();
            assert_eq!(batch.caught_up, read.len() + 1 == expected.len());
            read.extend(ids_of(&recorded(batch.items)));
        }
        assert_eq!(read, expected);
    }
}

#[tokio::test]
async fn the_server_sends_an_event_once_to_all_who_follow() {
    let log = TestLog::new().await;
    let mut following = Vec::new();
    for _ in 0..5 {
        following.push(log.follow(Log::Events, 0, &[]).await.unwrap());
    }
    let runs = [AggregateType::Run];
    let mut of_runs = log.follow(Log::Events, 0, &runs).await.unwrap();
    for follower in &mut following {
        // Nobody has written: it waits, and shares from then on.
        let wait = timeout(Duration::from_millis(5), follower.next(1)).await;
        assert!(wait.is_err());
    }
    assert!(
        timeout(Duration::from_millis(5), of_runs.next(1))
            .await
            .is_err()
    );
    let until_one_asks = async {
        while asking(&log).await != 1 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, until_one_asks).await.unwrap();
    let key = stream(AggregateType::Key, "k");
    log.commit(write(&key, Expected::Empty, 1).into())
        .await
        .unwrap();
    let run = fresh(2);
    log.commit(run.clone()).await.unwrap();
    for follower in &mut following {
        let mut count = 0;
        while count < 3 {
            let batch = timeout(TIMEOUT, follower.next(9)).await.unwrap().unwrap();
            count += batch.items.len();
        }
    }
    let mut read = Vec::new();
    while of_runs.last_sequence() < 3 {
        let batch = timeout(TIMEOUT, of_runs.next(9)).await.unwrap().unwrap();
        read.extend(ids_of(&recorded(batch.items)));
    }
    assert_eq!(read, ids(&run));
    drop((following, of_runs));
    let mut again = log.follow(Log::Events, 3, &[]).await.unwrap();
    log.commit(fresh(1)).await.unwrap();
    let batch = timeout(TIMEOUT, again.next(9)).await.unwrap().unwrap();
    assert_eq!((batch.items.len(), batch.last_sequence), (1, 4));
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing_of_what_is_shared() {
    let log = TestLog::new().await;
    let writer = log.another().await;
    let mut followers = [
        log.follow(Log::Events, 0, &[]).await.unwrap(),
        log.follow(Log::Events, 0, &[]).await.unwrap(),
    ];
    let writing = tokio::spawn(async move {
        let mut written = Vec::new();
        for _ in 0..300 {
            let commit = fresh(1);
            writer.commit(commit.clone()).await.unwrap();
            written.extend(ids(&commit));
        }
        written
    });
    let (mut read, mut waits) = ([Vec::new(), Vec::new()], 0_u64);
    while read.iter().any(|read| read.len() < 300) {
        for (follower, read) in followers.iter_mut().zip(&mut read) {
            // A pace independent of the writer's: waits end at any moment, often at once.
            let max_wait = Duration::from_micros(waits * 37 % 1_500);
            if let Ok(batch) = timeout(max_wait, follower.next(3)).await {
                read.extend(ids_of(&recorded(batch.unwrap().items)));
            }
            waits += 1;
        }
    }
    let written = writing.await.unwrap();
    assert!(read.iter().all(|read| *read == written));
}
