//! Following the log for outside readers.

use std::time::Duration;

use event_log::{EventLog, Expected, Whose, Write};
use futures::{StreamExt as _, TryStreamExt as _};
use schemas::Log;
use tokio::time::timeout;

use crate::support::{
    TestLog, event_of, everything, fresh, fresh_run, ids_of, org, stream_name, until_caught_up,
};

/// Many events, some of them as large as one may be.
async fn fill(log: &EventLog) {
    let sizes = [
        10, 300_000, 10, 900_000, 900_000, 10, 10, 500_000, 100_000, 10,
    ];
    for size in sizes.repeat(3) {
        let write = Write {
            stream: fresh_run(),
            expected: Expected::Empty,
            events: vec![event_of(size)],
        };
        log.commit(write.into()).await.unwrap();
        log.commit(fresh(20)).await.unwrap();
    }
}

#[tokio::test]
async fn a_reader_gets_everything_in_order_whatever_its_size() {
    let log = TestLog::new().await;
    fill(&log).await;
    let all = ids_of(&everything(&log, Log::Events).await);
    for whose in [Whose::All, Whose::Organization(&org(), None)] {
        let mut tail = log.read_for(Log::Events, whose, 0).await.unwrap();
        assert_eq!(ids_of(&until_caught_up(&mut tail).await), all);
    }
}

#[tokio::test]
async fn a_reader_that_stops_holds_what_it_asked_for_last() {
    let log = TestLog::new().await;
    fill(&log).await;
    let mut tail = log.read_for(Log::Events, Whose::All, 0).await.unwrap();
    tail.next(1).await.unwrap();
    let stream = log.raw().await;
    let stream = stream.get_stream(stream_name(&log.settings, Log::Events));
    let stream = stream.await.unwrap();
    let given = async || {
        let consumers: Vec<_> = stream.consumers().try_collect().await.unwrap();
        consumers
            .iter()
            .map(|one| one.delivered.consumer_sequence)
            .sum::<u64>()
    };
    // Large events wait for each other, however long nobody takes any.
    let before = given().await;
    assert!((1..=128).contains(&before), "{before}");
    for _ in 0..200 {
        log.commit(fresh(1)).await.unwrap();
        assert_eq!(given().await, before);
    }
    // And when it continues, nothing is missing.
    let rest = until_caught_up(&mut tail).await.len();
    assert_eq!(rest + 1, everything(&log, Log::Events).await.len());
}

#[tokio::test]
async fn the_leader_is_asked_for_a_reader_over_the_connection_that_its_pages_come_by() {
    let log = TestLog::new().await;
    let name = stream_name(&log.settings, Log::Events);
    let raw = log.raw().await;
    let client = raw.client();
    let subject = format!("$JS.API.*.*.{name}");
    let mut questions = client.subscribe(subject).await.unwrap();
    let mut connection = async || {
        let next = timeout(Duration::from_secs(20), questions.next());
        let question = next.await.unwrap().unwrap();
        // The server's answers come to an inbox of the connection.
        let inbox = question.reply.unwrap();
        inbox.rsplit_once('.').unwrap().0.to_owned()
    };
    // Once this is answered, the server has the subscription that was sent before.
    raw.get_stream(&name).await.unwrap();
    connection().await;
    log.end(Log::Events).await.unwrap();
    let of_decisions = connection().await;
    log.first_for_reader(&fresh_run()).await.unwrap();
    let of_readers = connection().await;
    assert_ne!(of_readers, of_decisions);
    log.end_for_reader(Log::Events).await.unwrap();
    assert_eq!(connection().await, of_readers);
}

#[tokio::test]
async fn a_hundred_readers_that_take_nothing_hold_up_no_append() {
    let log = TestLog::new().await;
    fill(&log).await;
    let readers = futures::stream::iter(0..100).map(async |_| {
        let mut tail = log.read_for(Log::Events, Whose::All, 0).await.unwrap();
        tail.next(1).await.unwrap();
        tail
    });
    let readers: Vec<_> = readers.buffered(4).collect().await;
    for _ in 0..50 {
        let appended = timeout(Duration::from_secs(5), log.commit(fresh(1)));
        appended.await.expect("an append in time").unwrap();
    }
    drop(readers);
}
