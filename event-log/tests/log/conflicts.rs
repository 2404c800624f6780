//! Many commits at once, some of them wrong: exactly those get a conflict.

use std::collections::HashSet;
use std::time::Instant;

use event_log::{AppendError, Commit, EventLog, Expected, Position, Write};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use schemas::{EventId, Log, NewEvent, Recorded, StreamId};
use uuid::Uuid;

use crate::support::{TestLog, assert_stored_at, event, everything, fresh_run, ids, ids_of, write};

#[tokio::test]
async fn of_many_who_saw_the_same_past_one_wins() {
    let log = TestLog::new().await;
    for callers in [2, 15, 300] {
        let stream = fresh_run();
        let commits = (0..callers).map(|_| write(&stream, Expected::Empty, 1).into());
        let outcomes = log.commit_each(commits.collect()).await;
        assert_one_wins(&log, &stream, outcomes).await;
    }
}

async fn assert_one_wins(
    log: &EventLog,
    stream: &StreamId,
    outcomes: Vec<Result<Position, AppendError>>,
) {
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    assert!(lost.iter().all(|o| *o == Err(AppendError::Conflict)));
    let read = log.load(stream).await.unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(won[0], Ok(log.position(Log::Events, read[0].sequence)));
}

#[tokio::test]
async fn of_many_processes_that_saw_the_same_past_one_wins() {
    let log = TestLog::new().await;
    let others = join_all((0..4).map(|_| log.another())).await;
    for _ in 0..20 {
        let stream = fresh_run();
        let commits = others.iter().flat_map(|other| {
            let stream = &stream;
            (0..10).map(move |_| other.commit(write(stream, Expected::Empty, 1).into()))
        });
        let outcomes = join_all(commits).await;
        assert_one_wins(&log, &stream, outcomes).await;
    }
}

#[tokio::test]
async fn a_crowd_on_one_aggregate_does_not_hold_up_the_others() {
    let log = TestLog::new().await;
    let hot = fresh_run();
    let crowd = |_| Commit::from(write(&hot, Expected::Empty, 1));
    let others: Vec<Commit> = (0..400)
        .map(|_| write(&fresh_run(), Expected::Empty, 1).into())
        .collect();
    let mixed = others
        .into_iter()
        .enumerate()
        .flat_map(|(place, other)| [crowd(place), other]);
    let started = Instant::now();
    let outcomes = log.commit_each(mixed.collect()).await;
    let took = started.elapsed();
    let (crowd, others): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .enumerate()
        .partition(|(place, _)| place % 2 == 0);
    assert!(others.into_iter().all(|(_, outcome)| outcome.is_ok()));
    let crowd = crowd.into_iter().map(|(_, outcome)| outcome).collect();
    assert_one_wins(&log, &hot, crowd).await;
    assert!(took.as_millis() < 1_500, "{took:?}");
}

/// What one caller does in the property below.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The first events of an aggregate of its own.
    Fresh(usize),
    /// The same over two aggregates.
    Pair(usize),
    /// On an aggregate that has a past, which it knows.
    Known(usize),
    /// The same, but it does not know it.
    Stale(usize),
    /// One of several that want the same aggregate.
    Rival(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let size = || 1_usize..5;
    prop_oneof![
        8 => size().prop_map(Step::Fresh),
        2 => size().prop_map(Step::Pair),
        4 => size().prop_map(Step::Known),
        2 => size().prop_map(Step::Stale),
        2 => (0_usize..4).prop_map(Step::Rival),
    ]
}

/// The commit of a step, and whether it must succeed, if that is certain.
async fn prepare(log: &EventLog, rivals: &[StreamId], step: Step) -> (Commit, Option<bool>) {
    let known = async || {
        let stream = fresh_run();
        let first = log.commit(write(&stream, Expected::Empty, 1).into());
        (stream, first.await.unwrap().sequence())
    };
    match step {
        Step::Fresh(size) => (
            write(&fresh_run(), Expected::Empty, size).into(),
            Some(true),
        ),
        Step::Pair(size) => {
            let writes = [size, 1].map(|size| write(&fresh_run(), Expected::Empty, size));
            let writes = writes.into();
            (Commit { writes }, Some(true))
        }
        Step::Known(size) => {
            let (stream, last) = known().await;
            (write(&stream, Expected::At(last), size).into(), Some(true))
        }
        Step::Stale(size) => {
            let (stream, _) = known().await;
            let other = write(&fresh_run(), Expected::Empty, 1);
            let writes = vec![other, write(&stream, Expected::Empty, size)];
            (Commit { writes }, Some(false))
        }
        Step::Rival(which) => (write(&rivals[which], Expected::Empty, 2).into(), None),
    }
}

async fn check(log: &EventLog, steps: Vec<Step>) {
    let rivals: Vec<StreamId> = (0..4).map(|_| fresh_run()).collect();
    let mut prepared = Vec::new();
    for step in &steps {
        prepared.push(prepare(log, &rivals, *step).await);
    }
    let commits = prepared.iter().map(|(commit, _)| commit.clone()).collect();
    let outcomes = log.commit_each(commits).await;
    let all = everything(log, Log::Events).await;
    assert!(
        all.iter()
            .zip(1..)
            .all(|(event, place)| event.sequence == place)
    );
    let stored: HashSet<EventId> = ids_of(&all).into_iter().collect();
    for ((commit, must), outcome) in prepared.iter().zip(outcomes) {
        match outcome {
            Ok(position) => {
                assert_ne!(*must, Some(false), "{commit:?}");
                assert_stored_at(&all, position, &ids(commit));
            }
            Err(error) => {
                assert_eq!(error, AppendError::Conflict);
                assert_ne!(*must, Some(true), "{commit:?}");
                assert!(!ids(commit).iter().any(|id| stored.contains(id)));
            }
        }
    }
    for rival in &rivals {
        let wanted = steps.iter().zip(&prepared);
        let wanted = wanted.filter(|(_, (commit, _))| commit.writes[0].stream == *rival);
        let read: Vec<Recorded> = log.load(rival).await.unwrap();
        assert_eq!(read.len(), if wanted.count() == 0 { 0 } else { 2 });
    }
}

#[test]
fn exactly_the_conflicting_commits_are_refused_and_all_others_stored_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let mut runner = TestRunner::new(Config {
        cases: 12,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    });
    let mixes = prop::collection::vec(step(), 1..250);
    let outcome = runner.run(&mixes, |steps| {
        runtime.block_on(async {
            let log = TestLog::new().await;
            check(&log, steps).await;
        });
        Ok(())
    });
    outcome.unwrap();
}

/// Positions have ids derived from their content, so that two requests may send the same one.
#[tokio::test]
async fn a_commit_that_shares_an_event_with_another_is_not_taken_for_it() {
    let log = TestLog::new().await;
    let derived = |place: u128| {
        let mut event = event();
        event.id = EventId(Uuid::new_v8(
            (Uuid::new_v4().as_u128() << 4 | place).to_be_bytes(),
        ));
        event
    };
    let (first, second, third) = (derived(1), derived(2), derived(3));
    let commit = async |stream: &StreamId, expected, events: &[&NewEvent]| {
        let write = Write {
            stream: stream.clone(),
            expected,
            events: events.iter().copied().cloned().collect(),
        };
        log.commit(write.into()).await
    };
    let overtaken = Err(AppendError::Conflict);
    for stored in [&first, &second, &third] {
        let stream = fresh_run();
        let at = commit(&stream, Expected::Empty, &[stored]).await.unwrap();
        let all = [&first, &second, &third];
        assert_eq!(commit(&stream, Expected::Empty, &all).await, overtaken);
        assert_eq!(commit(&stream, Expected::Empty, &[stored]).await, Ok(at));
    }
    let stream = fresh_run();
    let at = commit(&stream, Expected::Empty, &[&first]).await.unwrap();
    let after = Expected::At(at.sequence());
    let last = commit(&stream, after, &[&second, &third]).await.unwrap();
    let gap = commit(&stream, Expected::Empty, &[&first, &third]).await;
    assert_eq!(gap, overtaken);
    let all = commit(&stream, Expected::Empty, &[&first, &second, &third]).await;
    assert_eq!(all, Ok(last), "all of it is there");
}
