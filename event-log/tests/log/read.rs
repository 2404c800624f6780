//! Reading aggregates.

use async_nats::HeaderMap;
use chrono::DateTime;
use event_log::{Commit, Expected, Item, ReadError, Write};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use schemas::{AggregateType, Context, Event, Log, NewEvent, OrgId, Recorded, StreamId};
use serde_json::json;

use crate::support::{
    TestLog, event, event_of, everything, fresh, fresh_run, ids, ids_of, run_stream, write,
};

#[tokio::test]
async fn an_aggregate_of_thousands_of_events_is_loaded_whole_and_in_order() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    let (mut expected, mut last) = (Vec::new(), None);
    for size in [1_000, 999, 1, 500] {
        let commit: Commit = write(&stream, Expected::after(last), size).into();
        expected.extend(ids(&commit));
        last = Some(log.commit(commit).await.unwrap().sequence());
        log.commit(fresh(1)).await.unwrap();
    }
    assert_eq!(ids_of(&log.load(&stream).await.unwrap()), expected);
    let read = log.last(&stream).await.unwrap().unwrap();
    assert_eq!(Some(read.sequence), last);
}

#[tokio::test]
async fn large_events_are_loaded_whole_too() {
    let log = TestLog::new().await;
    let streams = [fresh_run(), fresh_run()];
    for stream in &streams {
        let mut last = None;
        for _ in 0..3 {
            let commit = Write {
                stream: stream.clone(),
                expected: Expected::after(last),
                events: (0..8).map(|_| event_of(900_000)).collect(),
            };
            last = Some(log.commit(commit.into()).await.unwrap().sequence());
        }
    }
    for stream in &streams {
        assert_eq!(log.load(stream).await.unwrap().len(), 24);
    }
}

#[tokio::test]
async fn an_aggregate_of_any_length_comes_page_by_page() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    let (mut expected, mut last) = (Vec::new(), None);
    for _ in 0..3 {
        let commit = Commit::from(Write {
            stream: stream.clone(),
            expected: Expected::after(last),
            events: (0..8).map(|_| event_of(900_000)).collect(),
        });
        expected.extend(ids(&commit));
        last = Some(log.commit(commit).await.unwrap().sequence());
    }
    let (mut since, mut all) = (Vec::new(), Vec::new());
    let take = |page: Vec<Recorded>| since.push(ids_of(&page));
    let read = log.pages_since(&stream, DateTime::UNIX_EPOCH, take);
    read.await.unwrap();
    let take = |page: Vec<Recorded>| all.push(ids_of(&page));
    log.all_pages(&stream, take).await.unwrap();
    for pages in [since, all] {
        assert_eq!(pages.concat(), expected);
        let longest = pages.iter().map(Vec::len).max();
        assert!(longest <= Some(3), "{longest:?} events of a MiB at a time");
    }
}

#[tokio::test]
async fn missing_streams_and_events_are_distinguished_from_existing_ones() {
    let log = TestLog::new().await;
    let nobody = fresh_run();
    assert!(log.load(&nobody).await.unwrap().is_empty());
    assert!(log.last(&nobody).await.unwrap().is_none());
    assert!(log.get(Log::Events, 1).await.unwrap().is_none());
    assert_eq!(log.end(Log::Events).await.unwrap().sequence(), 0);

    let commit = fresh(3);
    let position = log.commit(commit.clone()).await.unwrap();
    assert_eq!(log.end(Log::Events).await.unwrap(), position);
    let second = log.get(Log::Events, 2).await.unwrap().unwrap();
    assert_eq!(second.id, ids(&commit)[1]);
    assert_eq!(second.stream, commit.writes[0].stream);
    assert!(log.get(Log::Events, 4).await.unwrap().is_none());
    assert!(log.load(&nobody).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_last_of_each_of_thousands_comes_in_the_order_asked_for() {
    let log = TestLog::new().await;
    let streams: Vec<StreamId> = (0..2_500).map(|n| run_stream(&format!("r{n}"))).collect();
    let there = |place: usize| !place.is_multiple_of(3);
    let commits = streams
        .iter()
        .enumerate()
        .filter(|(place, _)| there(*place));
    let commits = commits.map(|(_, stream)| write(stream, Expected::Empty, 2).into());
    for outcome in log.commit_each(commits.collect()).await {
        outcome.unwrap();
    }
    let mut asked: Vec<usize> = (0..streams.len()).rev().collect();
    asked.push(7);
    let wanted: Vec<StreamId> = asked.iter().map(|place| streams[*place].clone()).collect();
    let found = log.last_of_each(&wanted).await.unwrap();
    assert_eq!(found.len(), asked.len());
    for (place, found) in asked.into_iter().zip(found) {
        let found = found.map(|event| event.stream);
        assert_eq!(found, there(place).then(|| streams[place].clone()));
    }
    assert!(log.last_of_each(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_last_of_each_is_found_however_large_they_are() {
    let log = TestLog::new().await;
    let streams: Vec<StreamId> = (0..30).map(|_| fresh_run()).collect();
    for stream in &streams {
        let commit = Write {
            stream: stream.clone(),
            expected: Expected::Empty,
            events: vec![event_of(900_000)],
        };
        log.commit(commit.into()).await.unwrap();
    }
    let found = log.last_of_each(&streams).await.unwrap();
    assert!(found.iter().all(Option::is_some));
}

#[tokio::test]
async fn a_reader_gets_the_last_of_each_and_what_follows_in_one() {
    let log = TestLog::new().await;
    let (long, short) = (fresh_run(), fresh_run());
    let commit: Commit = write(&long, Expected::Empty, 5).into();
    let all = ids(&commit);
    log.commit(commit).await.unwrap();
    log.commit(write(&short, Expected::Empty, 1).into())
        .await
        .unwrap();
    assert_eq!(log.end_for_reader(Log::Events).await.unwrap().sequence(), 6);
    let wanted = [short, fresh_run(), long.clone()];
    let lasts = log.last_of_each_for_reader(&wanted).await.unwrap();
    let lasts = lasts.iter().map(|last| last.as_ref().map(|l| l.sequence));
    assert_eq!(lasts.collect::<Vec<_>>(), [Some(6), None, Some(5)]);

    let page = async |after, limit| {
        let page = log.page_of(&long, after, limit).await.unwrap();
        let found: Vec<_> = page.events().map(|event| event.id).collect();
        (found, page.through, page.complete)
    };
    assert_eq!(page(0, 100).await, (all.clone(), 5, true));
    assert_eq!(page(1, 2).await, (all[1..3].to_vec(), 3, false));
    assert_eq!(page(5, 100).await, (Vec::new(), 5, true));
}

#[tokio::test]
async fn what_is_no_event_is_named() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    log.commit(write(&stream, Expected::Empty, 1).into())
        .await
        .unwrap();
    let raw = log.raw().await;
    let publish = async |headers: HeaderMap| {
        let subject = log.subject_of(&stream);
        let sent = raw.publish_with_headers(subject, headers, "{}".into());
        sent.await.unwrap().await.unwrap();
    };
    publish(HeaderMap::new()).await;
    let mut headers = HeaderMap::new();
    headers.insert("ce-id", "0");
    headers.insert("ce-subject", "run/x");
    headers.insert("ce-time", "yesterday");
    publish(headers).await;
    for outcome in [
        log.load(&stream).await.map(|_| ()),
        log.get(Log::Events, 2).await.map(|_| ()),
    ] {
        assert!(matches!(
            outcome,
            Err(ReadError::Undecodable { sequence: 2, .. })
        ));
    }
    let last = log.last(&stream).await;
    assert!(matches!(
        last,
        Err(ReadError::Undecodable { sequence: 3, .. })
    ));
    let mut tail = log.tail(Log::Events, 1, &[]).await.unwrap();
    while !tail.caught_up() {
        for item in tail.next(1).await.unwrap().items {
            let Item::Undecodable { subject, .. } = item else {
                panic!("{item:?}");
            };
            assert_eq!(subject, log.subject_of(&stream));
        }
    }
    assert_eq!(tail.last_sequence(), 3);
}

/// Any text, with what is dangerous in subjects and headers more often than by chance.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        ".",
        Just("\r\n".to_owned()),
        Just("\0".to_owned()),
        Just(">".to_owned()),
        Just("*".to_owned()),
        Just(". ".to_owned()),
        Just("%41".to_owned()),
        Just("/".to_owned()),
        "[a-zA-Z0-9_-]{1,70}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

#[test]
fn ids_names_and_contexts_of_any_characters_survive() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let log = runtime.block_on(TestLog::new());
    let mut runner = TestRunner::new(Config {
        cases: 100,
        failure_persistence: None,
        ..Config::default()
    });
    let texts = prop::collection::vec(text(), 5);
    let outcome = runner.run(&texts, |texts| {
        runtime.block_on(async {
            let [org, id, name, correlation, causation] = texts.try_into().unwrap();
            let unique = fresh_run().id;
            let stream = StreamId {
                org: OrgId::from(org),
                aggregate: AggregateType::Run,
                id: format!("{id}{unique}"),
            };
            let data = json!({"type": "custom", "name": name});
            let name = format!("custom.{name}.v1");
            let new = NewEvent {
                event: Event::decode(&name, data.to_string().as_bytes()).unwrap(),
                context: Context {
                    correlation_id: Some(correlation),
                    causation_id: Some(causation),
                    traceparent: None,
                    hops: 0,
                    cause: None,
                    actor: None,
                },
                ..event()
            };
            let commit = Write {
                stream: stream.clone(),
                expected: Expected::Empty,
                events: vec![new.clone()],
            };
            log.commit(commit.into()).await.unwrap();
            let read = log.load(&stream).await.unwrap();
            assert_eq!(read.len(), 1);
            assert_eq!((&read[0].stream, &read[0].event), (&stream, &new.event));
            assert_eq!(read[0].context, new.context);
        });
        Ok(())
    });
    outcome.unwrap();
    let all = runtime.block_on(everything(&log, Log::Events));
    assert_eq!(all.len(), 100);
}

#[tokio::test]
async fn a_page_holds_one_organization_only() {
    let log = TestLog::new().await;
    let of = |org: &str, kind, id: &str| StreamId::new(&OrgId::from(org), kind, id);
    let (mine, other) = ("mine", "not.mine");
    for (org, kind) in [
        (mine, AggregateType::Run),
        (other, AggregateType::Run),
        (mine, AggregateType::Contact),
        (mine, AggregateType::Run),
    ] {
        let stream = of(org, kind, &fresh_run().id);
        log.commit(write(&stream, Expected::Empty, 1).into())
            .await
            .unwrap();
    }
    let page = async |only, after, limit| {
        let org = OrgId::from(mine);
        let page = log.page(Log::Events, &org, only, after, limit);
        let page = page.await.unwrap();
        (page.items.len(), page.through, page.complete)
    };
    assert_eq!(page(None, 0, 100).await, (3, 4, true));
    assert_eq!(page(None, 0, 2).await, (2, 3, false));
    assert_eq!(page(None, 3, 100).await, (1, 4, true));
    assert_eq!(page(None, 4, 100).await, (0, 4, true));
    assert_eq!(page(Some(AggregateType::Contact), 0, 9).await, (1, 3, true));
}
