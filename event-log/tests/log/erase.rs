//! Erasing an aggregate.

use std::time::Duration;

use event_log::{EventLog, Expected, Whose};
use schemas::Log;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::{
    OwnServer, TestLog, event, event_of, everything, fresh, fresh_run, holds, ids_of, keyring,
    write,
};

/// Far longer than anything takes.
const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_erased_aggregate_leaves_no_byte_and_no_hole() {
    let mut own = OwnServer::start().await;
    let mut before = fresh(1);
    before.writes[0].events = vec![event_of(200)];
    own.log.commit(before).await.unwrap();
    let mut gone = fresh(1);
    gone.writes[0].events = (0..900).map(|_| event_of(50)).collect();
    let stream = gone.writes[0].stream.clone();
    let named = gone.writes[0].events[0].id.to_string();
    own.log.commit(gone).await.unwrap();
    own.log.commit(fresh(2)).await.unwrap();

    let data = own.home.path().join("nats/data");
    assert!(
        holds(&data, named.as_bytes()),
        "the search finds what is there"
    );
    assert_eq!(own.log.erase(&stream).await.unwrap(), 900);
    assert_eq!(own.log.erase(&stream).await.unwrap(), 0);
    assert!(own.log.load(&stream).await.unwrap().is_empty());
    assert!(!holds(&data, named.as_bytes()));

    own.nats.restart().await.unwrap();
    assert!(!holds(&data, named.as_bytes()));
    let log = EventLog::connect(&own.settings, keyring()).await.unwrap();
    assert_eq!(everything(&log, Log::Events).await.len(), 3);
}

#[tokio::test]
async fn an_erased_aggregate_can_begin_anew() {
    let own = OwnServer::start().await;
    let commit = fresh(3);
    let stream = commit.writes[0].stream.clone();
    own.log.commit(commit).await.unwrap();
    own.log.erase(&stream).await.unwrap();
    let mut again = fresh(1);
    again.writes[0].stream = stream.clone();
    own.log.commit(again).await.unwrap();
    assert_eq!(own.log.load(&stream).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_comes_before_an_event_can_be_erased_without_it() {
    let log = TestLog::new().await;
    let (stream, mut seen) = (fresh_run(), None);
    for _ in 0..3 {
        let part = write(&stream, Expected::after(seen), 500);
        seen = Some(log.commit(part.into()).await.unwrap().sequence());
    }
    let all = ids_of(&log.load(&stream).await.unwrap());
    let last = log.last(&stream).await.unwrap().unwrap().sequence;
    let first = ids_of(&log.first_page(&stream).await.unwrap());
    assert!(!first.is_empty() && all.starts_with(&first));
    assert_eq!(log.erase_before(&stream, last).await.unwrap(), 1_499);
    assert_eq!(log.erase_before(&stream, last).await.unwrap(), 0);
    assert_eq!(ids_of(&log.load(&stream).await.unwrap()), all[1_499..]);
    assert_eq!(log.erase(&stream).await.unwrap(), 1);
    assert!(log.first_page(&stream).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_aggregate_that_the_log_begins_with_can_be_erased() {
    let own = OwnServer::start().await;
    let mut left = 0;
    for _ in 0..3 {
        let begins = fresh(2);
        let stream = begins.writes[0].stream.clone();
        own.log.commit(begins).await.unwrap();
        own.log.commit(fresh(1)).await.unwrap();
        own.log.erase(&stream).await.unwrap();
        left += 1;
        let log = EventLog::connect(&own.settings, keyring()).await.unwrap();
        assert_eq!(everything(&log, Log::Events).await.len(), left);
    }
}

#[tokio::test]
async fn waiting_for_the_end_does_not_include_what_was_erased_before_it() {
    let log = TestLog::new().await;
    log.commit(fresh(1)).await.unwrap();
    let gone = fresh(2);
    let stream = gone.writes[0].stream.clone();
    log.commit(gone).await.unwrap();
    let end = log.end(Log::Events).await.unwrap().sequence();
    let (_taken, seen) = watch::channel(end - 2);
    let early = log.until_taken(Log::Events, seen.clone(), end);
    let early = timeout(Duration::from_secs(1), early).await;
    assert!(early.is_err(), "what is there is waited for");
    log.erase(&stream).await.unwrap();
    let done = log.until_taken(Log::Events, seen, end);
    timeout(TIMEOUT, done).await.unwrap();
}

#[tokio::test]
async fn a_reader_learns_that_what_waited_behind_was_erased() {
    /// As many as a reader requests at a time; as many again may be in transit.
    const AT_ONCE: usize = 128;
    let log = TestLog::new().await;
    let (mut before, mut gone) = (fresh(1), fresh(1));
    before.writes[0].events = (0..AT_ONCE).map(|_| event()).collect();
    gone.writes[0].events = (0..4 * AT_ONCE).map(|_| event()).collect();
    let stream = gone.writes[0].stream.clone();
    log.commit(before).await.unwrap();
    log.commit(gone).await.unwrap();
    let mut tail = log.read_for(Log::Events, Whose::All, 0).await.unwrap();
    while tail.last_sequence() < AT_ONCE as u64 {
        tail.next(AT_ONCE).await.unwrap();
    }
    assert!(!tail.caught_up());
    log.erase(&stream).await.unwrap();
    let mut left = usize::MAX;
    while left > 0 {
        let batch = timeout(TIMEOUT, tail.next(AT_ONCE)).await.unwrap();
        left = batch.unwrap().items.len();
    }
    assert!(tail.caught_up() && tail.last_sequence() < 5 * AT_ONCE as u64);
    // And it continues.
    log.commit(fresh(1)).await.unwrap();
    let batch = timeout(TIMEOUT, tail.next(AT_ONCE)).await.unwrap();
    assert_eq!(batch.unwrap().items.len(), 1);
}
