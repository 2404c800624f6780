//! Batches at the server's limits, and the server's answers that the log relies on.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use event_log::{AppendError, Commit, Expected};
use futures::future::join_all;
use schemas::{Log, OrgId};
use serde_json::Value;

use crate::support::{
    TestLog, assert_stored_at, event_of, everything, far_away, fresh, fresh_run, ids, ids_of, write,
};

#[tokio::test]
async fn a_thousand_events_are_one_commit_and_one_more_is_too_large() {
    let log = TestLog::new().await;
    let (one, other) = (fresh(600), fresh(400));
    let writes = [one.writes, other.writes].concat();
    let full = Commit { writes };
    log.commit(fresh(1)).await.unwrap();
    let position = log.commit(full.clone()).await.unwrap();
    assert_eq!(position.sequence(), 1_001);
    assert_eq!(log.commit(fresh(1_001)).await, Err(AppendError::TooLarge));
    let all = everything(&log, Log::Events).await;
    assert_eq!(all.len(), 1_001);
    assert_stored_at(&all, position, &ids(&full));
}

#[tokio::test]
async fn an_event_fills_a_message_and_no_more() {
    let log = TestLog::new().await;
    let max_payload = log.raw().await.client().max_payload();
    let of = |bytes| {
        let mut commit = fresh(1);
        commit.writes[0].events = vec![event_of(bytes)];
        commit
    };
    let (mut fits, mut too_large) = (0, max_payload);
    while too_large - fits > 1 {
        let middle = usize::midpoint(fits, too_large);
        match log.commit(of(middle)).await {
            Ok(_) => fits = middle,
            Err(error) => {
                assert_eq!(error, AppendError::TooLarge);
                too_large = middle;
            }
        }
    }
    assert!(max_payload - fits < 1_024, "{fits} of {max_payload}");
    // The largest that fits alone fits in a batch too, with its further headers.
    let mut commit = of(fits);
    commit.writes[0].events.push(event_of(fits));
    log.commit(commit.clone()).await.unwrap();
    let stream = &commit.writes[0].stream;
    assert_eq!(ids_of(&log.load(stream).await.unwrap()), ids(&commit));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_may_be_larger_than_a_batch_is_when_gathered() {
    let log = TestLog::new().await;
    let of = |count| {
        let mut commit = fresh(1);
        commit.writes[0].events = (0..count).map(|_| event_of(500_000)).collect();
        commit
    };
    let (large, too_large) = (of(15), of(18));
    let small: Vec<Commit> = (0..100).map(|_| fresh(1)).collect();
    let commits = [small, vec![too_large, large.clone()]].concat();
    let mut outcomes = log.commit_each(commits.clone()).await;
    let position = outcomes.pop().unwrap().unwrap();
    assert_eq!(outcomes.pop(), Some(Err(AppendError::TooLarge)));
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let all = everything(&log, Log::Events).await;
    assert_eq!(all.len(), 115);
    assert_stored_at(&all, position, &ids(&large));
}

#[tokio::test]
async fn many_commits_are_answered_in_the_order_they_were_given() {
    let log = TestLog::new().await;
    let commits: Vec<Commit> = (0..5_000).map(|count| fresh(1 + count % 3)).collect();
    let outcomes = log.commit_each(commits.clone()).await;
    let all = everything(&log, Log::Events).await;
    for (commit, outcome) in commits.iter().zip(outcomes) {
        assert_stored_at(&all, outcome.unwrap(), &ids(commit));
    }
}

/// Between two consecutive commits of one organization there are one or two batches of another's,
/// however many of those wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flood_of_one_organization_holds_up_no_other() {
    let log = TestLog::new().await;
    // On any machine, more arrives than is sent.
    let log = far_away(&log.settings, Duration::from_millis(20)).await;
    let flood = (0..8).map(|_| log.commit_each((0..1_000).map(|_| fresh(1)).collect()));
    let mut flood = Box::pin(join_all(flood));
    let asked = async {
        let mut places = Vec::new();
        while places.len() < 5 {
            let mut write = write(&fresh_run(), Expected::Empty, 2);
            write.stream.org = OrgId::from("org_other");
            places.push(log.commit(write.into()).await.unwrap().sequence());
        }
        places
    };
    let places = tokio::select! {
        places = asked => places,
        _ = &mut flood => panic!("the other came last"),
    };
    let between: Vec<u64> = places.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(between.iter().all(|events| *events < 500), "{between:?}");
    for outcome in flood.await.concat() {
        outcome.unwrap();
    }
}

/// A second full batch goes out before the first is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_full_batches_are_under_way_at_a_time() {
    let log = TestLog::new().await;
    let here = log.raw_stream(Log::Events).await;
    let way = Duration::from_millis(250);
    let far = far_away(&log.settings, way).await;
    let commits = || (0..1_000).map(|_| fresh(1)).collect();
    let mut appending = Box::pin(join_all((0..3).map(|_| far.commit_each(commits()))));
    let mut seen = Vec::new();
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let outcomes = loop {
        tokio::select! {
            outcomes = &mut appending => break outcomes,
            _ = looks.tick() => {
                let state = here.get_info().await.unwrap().state;
                seen.push((Instant::now(), state.messages));
            }
        }
    };
    assert!(outcomes.concat().iter().all(Result::is_ok));
    // One after the other they would be twice `way` apart.
    let soon = (way * 2).saturating_sub(Duration::from_millis(50));
    let together = |(at, count): &(Instant, u64)| {
        let soon = seen.iter().filter(|(later, _)| *later < *at + soon);
        soon.map(|(_, later)| later.saturating_sub(*count)).max()
    };
    let most = seen.iter().filter_map(together).max();
    assert!(most > Some(1_000), "{most:?}");
}

/// Sends one message of a batch past the event log; the last is answered.
async fn send(raw: &Context, subject: &str, batch: &str, place: u32, last: bool) -> Option<Value> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Batch-Id", batch);
    headers.insert("Nats-Batch-Sequence", place.to_string());
    headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
    let client = raw.client();
    let subject = subject.to_owned();
    if !last {
        let sent = client.publish_with_headers(subject, headers, "{}".into());
        sent.await.unwrap();
        return None;
    }
    headers.insert("Nats-Batch-Commit", "1");
    let answer = client.request_with_headers(subject, headers, "{}".into());
    Some(serde_json::from_slice(&answer.await.unwrap().payload).unwrap())
}

/// The event log treats both codes as one: here the server says which.
#[tokio::test]
async fn the_server_has_two_codes_for_a_wrong_expectation() {
    let log = TestLog::new().await;
    let raw = log.raw().await;
    let subject = log.subject_of(&fresh_run());
    send(&raw, &subject, "twice", 1, false).await;
    let answer = send(&raw, &subject, "twice", 2, true).await.unwrap();
    assert_eq!(answer["error"]["err_code"], 10_164, "{answer}");
    assert_eq!(answer["error"]["code"], 400, "{answer}");

    send(&raw, &subject, "first", 1, true).await;
    let answer = send(&raw, &subject, "again", 1, true).await.unwrap();
    assert_eq!(answer["error"]["err_code"], 10_071, "{answer}");
}

#[tokio::test]
async fn half_a_batch_that_nobody_ends_leaves_no_trace() {
    let log = TestLog::new().await;
    let raw = log.raw().await;
    let (mine, other) = (fresh_run(), fresh_run());
    send(&raw, &log.subject_of(&mine), "half", 1, false).await;
    send(&raw, &log.subject_of(&other), "half", 2, false).await;
    log.commit(write(&mine, Expected::Empty, 2).into())
        .await
        .unwrap();
    assert_eq!(log.load(&mine).await.unwrap().len(), 2);
    assert!(log.load(&other).await.unwrap().is_empty());
}

/// The server keeps 50 unfinished batches of a stream and refuses more.
#[tokio::test]
async fn where_no_batch_can_be_had_events_go_by_themselves() {
    let log = TestLog::new().await;
    let raw = log.raw().await;
    for batch in 0..50 {
        let subject = log.subject_of(&fresh_run());
        send(&raw, &subject, &format!("b{batch}"), 1, false).await;
    }
    raw.client().flush().await.unwrap();
    let commits: Vec<Commit> = (0..200).map(|_| fresh(1)).collect();
    let outcomes = log.commit_each(commits.clone()).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // What needs a batch has to wait, and gets an error.
    let several = log.commit(fresh(2)).await;
    assert!(
        matches!(several, Err(AppendError::Unavailable(_))),
        "{several:?}"
    );
    let all = everything(&log, Log::Events).await;
    for (commit, outcome) in commits.iter().zip(outcomes) {
        assert_stored_at(&all, outcome.unwrap(), &ids(commit));
    }
}
