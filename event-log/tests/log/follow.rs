//! Following the log.

use std::time::Duration;

use event_log::{Batch, Commit, EventLog, Expected, Tail, Whose, Write};
use schemas::{AggregateType, EventId, Log};
use tokio::time::timeout;

use crate::support::{
    TestLog, event_of, everything, fresh, fresh_run, ids, ids_of, recorded, stream,
    until_caught_up, write,
};

const TIMEOUT: Duration = Duration::from_secs(20);

async fn next(tail: &mut Tail, max: usize) -> Batch {
    timeout(TIMEOUT, tail.next(max)).await.unwrap().unwrap()
}

async fn append(log: &EventLog, kind: AggregateType, id: &str) -> EventId {
    let commit: Commit = write(&stream(kind, id), Expected::Empty, 1).into();
    log.commit(commit.clone()).await.unwrap();
    ids(&commit)[0]
}

#[tokio::test]
async fn a_tail_is_caught_up_at_once_if_nothing_follows_its_start() {
    let log = TestLog::new().await;
    let caught_up = async |after, only: &[AggregateType]| {
        let tail = log.tail(Log::Events, after, only).await.unwrap();
        tail.caught_up()
    };
    assert!(caught_up(0, &[]).await);
    append(&log, AggregateType::Contact, "c1").await;
    append(&log, AggregateType::Run, "r1").await;
    assert!(!caught_up(0, &[]).await);
    assert!(!caught_up(1, &[AggregateType::Run]).await);
    assert!(caught_up(2, &[]).await);
    assert!(caught_up(1, &[AggregateType::Contact]).await);
    assert!(caught_up(0, &[AggregateType::Key, AggregateType::Webhook]).await);
}

#[tokio::test]
async fn a_tail_waits_for_what_comes() {
    let log = TestLog::new().await;
    let mut tail = log.tail(Log::Events, 0, &[]).await.unwrap();
    for _ in 0..3 {
        let commit = fresh(2);
        let (mut read, last) = (Vec::new(), log.commit(commit.clone()));
        let last = last.await.unwrap().sequence();
        while tail.last_sequence() < last {
            let batch = next(&mut tail, 10).await;
            assert_eq!(batch.last_sequence, tail.last_sequence());
            read.extend(recorded(batch.items));
        }
        assert_eq!(ids_of(&read), ids(&commit));
        assert!(tail.caught_up());
    }
    let idle = timeout(Duration::from_millis(100), tail.next(1)).await;
    assert!(idle.is_err());
}

#[tokio::test]
async fn a_tail_goes_on_behind_any_place_in_bites_of_any_size() {
    let log = TestLog::new().await;
    for outcome in log.commit_each((0..60).map(|_| fresh(5)).collect()).await {
        outcome.unwrap();
    }
    let all = ids_of(&everything(&log, Log::Events).await);
    assert_eq!(all.len(), 300);
    for (after, max) in [(0, 0), (0, 1), (17, 7), (299, 1_000), (150, 1_000)] {
        let mut tail = log.tail(Log::Events, after, &[]).await.unwrap();
        let mut read = Vec::new();
        while !tail.caught_up() {
            let batch = next(&mut tail, max).await;
            assert!((1..=max.max(1)).contains(&batch.items.len()));
            assert_eq!(batch.caught_up, batch.last_sequence == 300);
            read.extend(recorded(batch.items));
        }
        assert_eq!(ids_of(&read), all[usize::try_from(after).unwrap()..]);
    }
}

#[tokio::test]
async fn a_filtered_tail_shows_its_kinds_only() {
    let log = TestLog::new().await;
    let mut wanted = Vec::new();
    for n in 0..20 {
        append(&log, AggregateType::Run, &format!("r{n}")).await;
        wanted.push(append(&log, AggregateType::Key, &format!("k{n}")).await);
        append(&log, AggregateType::Contact, &format!("c{n}")).await;
        wanted.push(append(&log, AggregateType::Webhook, &format!("w{n}")).await);
    }
    let only = [AggregateType::Webhook, AggregateType::Key];
    let mut tail = log.tail(Log::Events, 0, &only).await.unwrap();
    let read = until_caught_up(&mut tail).await;
    assert_eq!(ids_of(&read), wanted);
    assert!(
        read.iter()
            .all(|event| only.contains(&event.stream.aggregate))
    );
}

/// The past is read kind by kind, and what is appended meanwhile must come once, after it.
#[tokio::test]
async fn a_tail_of_several_kinds_keeps_the_order_of_the_log() {
    const KINDS: [AggregateType; 4] = [
        AggregateType::Run,
        AggregateType::Key,
        AggregateType::Contact,
        AggregateType::Webhook,
    ];
    let log = TestLog::new().await;
    let only = [AggregateType::Webhook, AggregateType::Key];
    let mut wanted = Vec::new();
    let append_some = async |wanted: &mut Vec<EventId>, from: usize, to: usize| {
        for n in from..to {
            // Sometimes many of one kind in a row, sometimes the kinds in turn.
            let kind = KINDS[(n / (n % 7 + 1)) % KINDS.len()];
            let id = append(&log, kind, &format!("a{n}")).await;
            if only.contains(&kind) {
                wanted.push(id);
            }
        }
    };
    append_some(&mut wanted, 0, 150).await;
    let mut tails = Vec::new();
    for max in [1, 7, 1_000] {
        let tail = log.tail(Log::Events, 0, &only).await.unwrap();
        assert!(!tail.caught_up());
        tails.push((tail, max, Vec::new()));
    }
    append_some(&mut wanted, 150, 200).await;
    for (tail, max, read) in &mut tails {
        while !tail.caught_up() {
            let batch = next(tail, *max).await;
            assert!(batch.items.len() <= *max);
            read.extend(recorded(batch.items));
        }
    }
    append_some(&mut wanted, 200, 230).await;
    for (tail, max, read) in &mut tails {
        while read.len() < wanted.len() {
            read.extend(recorded(next(tail, *max).await.items));
        }
        assert!(tail.caught_up());
        assert_eq!(ids_of(read), wanted);
    }
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let log = TestLog::new().await;
    let writer = log.another().await;
    let writing = tokio::spawn(async move {
        let mut written = Vec::new();
        for _ in 0..300 {
            let commit = fresh(1);
            writer.commit(commit.clone()).await.unwrap();
            written.extend(ids(&commit));
        }
        written
    });
    let mut tail = log.tail(Log::Events, 0, &[]).await.unwrap();
    let (mut read, mut given_up) = (Vec::new(), 0_u64);
    while read.len() < 300 {
        // A pace independent of the writer's: waits end at any moment, often at once.
        let max_wait = Duration::from_micros(given_up * 37 % 1_500);
        match timeout(max_wait, tail.next(3)).await {
            Ok(batch) => read.extend(recorded(batch.unwrap().items)),
            Err(_) => given_up += 1,
        }
        given_up += 1;
    }
    assert_eq!(ids_of(&read), writing.await.unwrap());
}

#[tokio::test]
async fn large_events_come_one_after_the_other_without_being_piled_up() {
    let log = TestLog::new().await;
    let mut expected = Vec::new();
    for _ in 0..40 {
        let commit: Commit = Write {
            stream: fresh_run(),
            expected: Expected::Empty,
            events: vec![event_of(900_000)],
        }
        .into();
        expected.extend(ids(&commit));
        log.commit(commit).await.unwrap();
    }
    let mut tail = log.tail(Log::Events, 0, &[]).await.unwrap();
    let mut read = Vec::new();
    while !tail.caught_up() {
        read.extend(recorded(next(&mut tail, 100).await.items));
    }
    assert_eq!(ids_of(&read), expected);
}

#[tokio::test]
async fn what_was_erased_is_passed() {
    let log = TestLog::new().await;
    let mut expected = Vec::new();
    for outcome in log.commit_each((0..100).map(|_| fresh(1)).collect()).await {
        outcome.unwrap();
    }
    let raw = log.raw_stream(Log::Events).await;
    let erased = [2, 3, 30, 31, 32, 60, 100];
    let mut early = log.tail(Log::Events, 0, &[]).await.unwrap();
    let first = next(&mut early, 5).await;
    for sequence in erased {
        raw.delete_message(sequence).await.unwrap();
    }
    for sequence in 1..=100 {
        let event = log.get(Log::Events, sequence).await.unwrap();
        assert_eq!(event.is_none(), erased.contains(&sequence));
        expected.extend(event.map(|event| event.id));
    }
    let all = ids_of(&everything(&log, Log::Events).await);
    assert_eq!(all, expected);
    // What was sent before the erasure still comes; nothing comes twice or is left out.
    let mut read = recorded(first.items);
    read.extend(until_caught_up(&mut early).await);
    assert!(
        read.windows(2)
            .all(|pair| pair[0].sequence < pair[1].sequence)
    );
    assert!(expected.iter().all(|id| ids_of(&read).contains(id)));
}

#[tokio::test]
async fn what_has_expired_is_passed() {
    let log = TestLog::new().await;
    let track = stream(AggregateType::Track, "a1");
    let commit = write(&track, Expected::Empty, 50);
    log.commit(commit.into()).await.unwrap();
    let raw = log.raw_stream(Log::Locations).await;
    raw.purge().sequence(41).await.unwrap();
    let all = everything(&log, Log::Locations).await;
    let sequences: Vec<u64> = all.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (41..=50).collect::<Vec<_>>());
    raw.purge().await.unwrap();
    assert!(everything(&log, Log::Locations).await.is_empty());
    let commit = write(&stream(AggregateType::Track, "a2"), Expected::Empty, 1);
    let position = log.commit(commit.into()).await.unwrap();
    assert_eq!(position.sequence(), 51);
    assert_eq!(everything(&log, Log::Locations).await.len(), 1);
}

#[tokio::test]
async fn a_tail_that_lost_its_consumer_makes_a_new_one() {
    let log = TestLog::new().await;
    let mut tail = log.tail(Log::Events, 0, &[]).await.unwrap();
    let raw = log.raw_stream(Log::Events).await;
    let mut expected = Vec::new();
    let mut read = Vec::new();
    for _ in 0..3 {
        let commit = fresh(10);
        expected.extend(ids(&commit));
        log.commit(commit).await.unwrap();
        read.extend(recorded(next(&mut tail, 3).await.items));
        for name in consumers(&raw).await {
            raw.delete_consumer(&name).await.unwrap();
        }
    }
    while read.len() < expected.len() {
        read.extend(recorded(next(&mut tail, 4).await.items));
    }
    assert_eq!(ids_of(&read), expected);
}

#[tokio::test]
async fn a_dropped_tail_leaves_no_consumer_behind() {
    let log = TestLog::new().await;
    log.commit(fresh(10)).await.unwrap();
    let raw = log.raw_stream(Log::Events).await;
    let mut tails = Vec::new();
    for _ in 0..5 {
        tails.push(log.tail(Log::Events, 0, &[]).await.unwrap());
        tails.push(log.read_for(Log::Events, Whose::All, 0).await.unwrap());
    }
    assert_eq!(consumers(&raw).await.len(), 10);
    drop(tails);
    let gone = async {
        while !consumers(&raw).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, gone).await.unwrap();
}

async fn consumers(stream: &async_nats::jetstream::stream::Stream) -> Vec<String> {
    use futures::TryStreamExt as _;
    stream.consumer_names().try_collect().await.unwrap()
}
