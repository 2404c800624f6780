//! Appending: what is stored is what was decided, and only on the past that was seen.

use std::time::Duration;

use event_log::{AppendError, Commit, Expected, Position, Write};
use schemas::{
    Actor, AggregateType, Cause, Context, Event, Log, Receipt, Traceparent, claim, delivery,
};
use uuid::Uuid;

use crate::support::{
    TestLog, event, events, everything, far_away, fresh, fresh_run, ids, ids_of, new_event,
    run_stream, stream, write,
};

#[tokio::test]
async fn an_event_is_read_back_as_it_was_decided() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    let mut new = event();
    new.context = Context {
        correlation_id: Some("request 7\nwith \"odd\" %20 words: ä".to_owned()),
        causation_id: Some(String::new()),
        traceparent: Some(Traceparent::from_parts(7, 8)),
        hops: 3,
        cause: Some(Cause {
            id: Uuid::from_u128(7),
            runs: 5,
        }),
        actor: Some(Actor::Key("ä key".to_owned())),
    };
    new.receipt = Some(Receipt {
        key: "key".to_owned(),
        fingerprint: "fingerprint".to_owned(),
    });
    let commit = Commit::from(Write {
        stream: stream.clone(),
        expected: Expected::Empty,
        events: vec![new.clone()],
    });
    let position = log.commit(commit).await.unwrap();
    let read = log.last(&stream).await.unwrap().unwrap();
    assert_eq!(read.sequence, position.sequence());
    assert_eq!(read.stream, stream);
    assert_eq!(
        (read.id, read.time, &read.event),
        (new.id, new.time, &new.event)
    );
    assert_eq!(read.context, new.context);
    assert_eq!(read.receipt, new.receipt);
}

#[tokio::test]
async fn a_commit_is_stored_only_after_the_past_that_it_expects() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    let commit = async |expected| log.commit(write(&stream, expected, 1).into()).await;
    let conflict = Err(AppendError::Conflict);

    assert_eq!(commit(Expected::At(1)).await, conflict, "nothing is there");
    let first = commit(Expected::Empty).await.unwrap().sequence();
    assert_eq!(commit(Expected::Empty).await, conflict);
    assert_eq!(commit(Expected::At(first + 1)).await, conflict);
    let second = commit(Expected::At(first)).await.unwrap().sequence();
    assert_eq!(commit(Expected::At(first)).await, conflict);
    assert_eq!(Expected::after(Some(second)), Expected::At(second));
    assert!(commit(Expected::after(Some(second))).await.is_ok());
    assert_eq!(log.load(&stream).await.unwrap().len(), 3);
}

#[tokio::test]
async fn several_events_of_one_decision_are_stored_one_after_the_other() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    let three: Commit = write(&stream, Expected::Empty, 3).into();
    let position = log.commit(three.clone()).await.unwrap();
    let two: Commit = write(&stream, Expected::At(position.sequence()), 2).into();
    log.commit(two.clone()).await.unwrap();
    let read = log.load(&stream).await.unwrap();
    assert_eq!(ids_of(&read), [ids(&three), ids(&two)].concat());
    let sequences: Vec<u64> = read.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_decision_over_several_aggregates_is_stored_whole_or_not_at_all() {
    let log = TestLog::new().await;
    let email = log.claim("email", "jo@example.com");
    let claimed = |holder: &str| Write {
        stream: email.clone(),
        expected: Expected::Empty,
        events: vec![new_event(Event::ClaimClaimed(claim::Claimed {
            holder: holder.to_owned(),
        }))],
    };
    let account = |id: &str| write(&stream(AggregateType::Account, id), Expected::Empty, 2);
    let first = Commit {
        writes: vec![claimed("1"), account("1")],
    };
    let second = Commit {
        writes: vec![account("2"), claimed("2"), account("3")],
    };
    let position = log.commit(first.clone()).await.unwrap();
    assert_eq!(position.sequence(), 3);
    assert_eq!(log.commit(second).await, Err(AppendError::Conflict));
    let all = everything(&log, Log::Events).await;
    assert_eq!(ids_of(&all), ids(&first));
}

/// A crowd whose answers were lost: each caller learns what became of its commit, even if so much
/// was appended since that finding it out takes longer than one request may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_commits_again_is_the_same_events() {
    let log = TestLog::new().await;
    let commits: Vec<Commit> = (0..1_000).map(|_| fresh(1)).collect();
    let positions = log.commit_each(commits.clone()).await;
    assert_eq!(log.commit_each(commits.clone()).await, positions);
    let behind = |(commit, position): (&Commit, &Result<Position, AppendError>)| {
        let last = position.as_ref().unwrap().sequence();
        Commit::from(write(&commit.writes[0].stream, Expected::At(last), 1))
    };
    let more = commits.iter().zip(&positions).map(behind);
    for outcome in log.commit_each(more.collect()).await {
        outcome.unwrap();
    }
    let far_away = far_away(&log.settings, Duration::from_millis(20)).await;
    assert_eq!(far_away.commit_each(commits).await, positions);
}

#[tokio::test]
async fn the_same_commit_again_is_the_same_event() {
    let log = TestLog::new().await;
    let pair = Commit {
        writes: vec![
            write(&fresh_run(), Expected::Empty, 2),
            write(&fresh_run(), Expected::Empty, 3),
        ],
    };
    for commit in [fresh(1), fresh(4), pair] {
        let first = log.commit(commit.clone()).await.unwrap();
        let stream = commit.writes[0].stream.clone();
        assert_eq!(log.commit(commit.clone()).await, Ok(first));
        // Regardless of what has been appended since.
        let last = log.last(&stream).await.unwrap().unwrap().sequence;
        let next = write(&stream, Expected::At(last), 1);
        log.commit(next.into()).await.unwrap();
        assert_eq!(log.commit(commit.clone()).await, Ok(first));
        let another = log.another().await;
        assert_eq!(another.commit(commit).await, Ok(first));
    }
}

#[tokio::test]
async fn the_same_commit_many_times_at_once_is_the_same_event() {
    let log = TestLog::new().await;
    for commit in [fresh(1), fresh(3)] {
        let repeats = (0..100).map(|_| commit.clone()).collect();
        let positions = log.commit_each(repeats).await;
        let first = positions[0].clone().unwrap();
        assert!(positions.into_iter().all(|other| other == Ok(first)));
        assert_eq!(
            log.load(&commit.writes[0].stream).await.unwrap().len(),
            ids(&commit).len()
        );
    }
}

#[tokio::test]
async fn a_malformed_commit_is_refused_before_it_leaves() {
    let log = TestLog::new().await;
    let (one, other) = (run_stream("one"), run_stream("other"));
    let mut empty = write(&other, Expected::Empty, 1);
    empty.events.clear();
    let attempt = delivery::Message {
        delivery_id: "d".into(),
        webhook_id: "w".into(),
        event_id: event().id,
        event_sequence: 1,
        event_type: "run.started".to_owned(),
    };
    let in_another_stream = Write {
        stream: stream(AggregateType::Delivery, &attempt.delivery_id.to_string()),
        expected: Expected::Empty,
        events: events(1),
    };
    let first = || write(&one, Expected::Empty, 1);
    for writes in [
        vec![],
        vec![first(), empty],
        vec![first(), first()],
        vec![first(), in_another_stream],
    ] {
        let outcome = log.commit(Commit { writes }).await;
        assert!(
            matches!(outcome, Err(AppendError::Malformed(_))),
            "{outcome:?}"
        );
    }
    assert!(everything(&log, Log::Events).await.is_empty());
}

#[tokio::test]
async fn each_stream_of_the_log_has_its_own_order() {
    let log = TestLog::new().await;
    let delivery = write(&stream(AggregateType::Delivery, "d1"), Expected::Empty, 1);
    log.commit(fresh(2)).await.unwrap();
    let position = log.commit(delivery.into()).await.unwrap();
    assert_eq!((position.log(), position.sequence()), (Log::Deliveries, 1));
    assert_eq!(everything(&log, Log::Events).await.len(), 2);
    assert_eq!(everything(&log, Log::Deliveries).await.len(), 1);
    assert!(everything(&log, Log::Locations).await.is_empty());
}
