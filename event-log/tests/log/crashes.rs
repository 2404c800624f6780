//! The server dies, and the log has lost nothing that it acknowledged.

use std::time::Duration;

use async_nats::HeaderMap;
use event_log::{AppendError, Commit, Expected};
use schemas::Log;

use crate::load::{Load, Told, assert_told_the_truth};
use crate::support::{OwnServer, everything, fresh, fresh_run, raw, write};

async fn crashes_under_load(callers: usize, largest: usize) {
    let mut own = OwnServer::start().await;
    let load = Load::start(&own.log, callers, largest);
    for crash in 0..3 {
        load.acknowledges(callers * (3 + crash)).await;
        own.crash().await;
    }
    load.acknowledges(callers).await;
    let told = load.stop().await;
    assert_told_the_truth(&own.log, &told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_callers_lose_nothing_when_the_server_is_killed() {
    crashes_under_load(6, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_lose_nothing_when_the_server_is_killed() {
    crashes_under_load(150, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_of_several_events_are_not_torn_when_the_server_is_killed() {
    crashes_under_load(60, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_a_kill_meets_is_there_whole_or_not_at_all() {
    let mut own = OwnServer::start().await;
    let mut told = Vec::new();
    for round in 0..6 {
        let commit = Commit {
            writes: vec![
                write(&fresh_run(), Expected::Empty, 700),
                write(&fresh_run(), Expected::Empty, 300),
            ],
        };
        let (log, again) = (own.log.clone(), commit.clone());
        let committing = tokio::spawn(async move { log.commit(again).await });
        // At a different moment in each round, from the first message to the acknowledgement.
        tokio::time::sleep(Duration::from_millis(4 * round)).await;
        own.crash().await;
        told.push(Told::new(&commit, committing.await.unwrap()));
    }
    until_back(&own, &mut told).await;
    assert_told_the_truth(&own.log, &told).await;
}

/// Appends until the log accepts it, and records each outcome.
async fn until_back(own: &OwnServer, told: &mut Vec<Told>) {
    let back = async {
        loop {
            let commit = fresh(1);
            let outcome = own.log.commit(commit.clone()).await;
            let done = outcome.is_ok();
            told.push(Told::new(&commit, outcome));
            if done {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_batch_does_not_outlive_a_kill() {
    let mut own = OwnServer::start().await;
    let client = raw(own.settings.nats_url()).await.client();
    let run = fresh_run();
    for place in 1..=500 {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Batch-Id", "half");
        headers.insert("Nats-Batch-Sequence", place.to_string());
        let subject = own.log.subject_of(&run);
        let sent = client.publish_with_headers(subject, headers, "{}".into());
        sent.await.unwrap();
    }
    client.flush().await.unwrap();
    own.crash().await;
    let mut told = Vec::new();
    until_back(&own, &mut told).await;
    assert!(own.log.load(&run).await.unwrap().is_empty());
    assert_told_the_truth(&own.log, &told).await;
}

/// A caller without a certain answer tries the same again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_commit_may_be_tried_until_it_is_known_to_be_there() {
    let mut own = OwnServer::start().await;
    let commits: Vec<Commit> = (0..120).map(|n| fresh(1 + n % 2)).collect();
    let trying = commits.iter().map(|commit| {
        let (log, commit) = (own.log.clone(), commit.clone());
        tokio::spawn(async move {
            loop {
                match log.commit(commit.clone()).await {
                    Err(AppendError::Unavailable(_)) => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    outcome => return Told::new(&commit, outcome),
                }
            }
        })
    });
    let trying: Vec<_> = trying.collect();
    own.crash().await;
    own.crash().await;
    let mut told = Vec::new();
    for one in trying {
        told.push(one.await.unwrap());
    }
    assert!(told.iter().all(|told| told.outcome.is_ok()));
    assert_told_the_truth(&own.log, &told).await;
    let stored = everything(&own.log, Log::Events).await.len();
    assert_eq!(stored, 180);
}
