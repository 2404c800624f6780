//! Erasing an aggregate.

use event_log::EventLog;
use schemas::Log;

use crate::support::{OwnServer, event_of, everything, fresh, holds, keyring};

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
