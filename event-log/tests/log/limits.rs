//! What a stream refuses for good is reported at once.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Config;
use event_log::AppendError;
use schemas::nesting::MAX_EVENT_LEVELS;
use schemas::{Custom, Event, Log};
use serde_json::json;

use crate::support::{TestLog, event_of, fresh, hasty, new_event};

async fn change(log: &TestLog, change: impl FnOnce(&mut Config)) {
    let mut stream = log.raw_stream(Log::Events).await;
    let mut config = stream.info().await.unwrap().config.clone();
    change(&mut config);
    log.raw().await.update_stream(config).await.unwrap();
}

#[tokio::test]
async fn a_message_that_the_stream_never_takes_is_not_tried_until_the_end() {
    let log = TestLog::new().await;
    change(&log, |config| config.max_message_size = 2_000).await;
    let mut large = fresh(1);
    large.writes[0].events = vec![event_of(3_000)];
    let started = Instant::now();
    assert_eq!(log.commit(large.clone()).await, Err(AppendError::TooLarge));
    assert!(started.elapsed() < Duration::from_millis(500));

    // Among others it spoils the batch, but only once.
    let mut commits: Vec<_> = (0..300).map(|_| fresh(1)).collect();
    commits.insert(150, large);
    let mut outcomes = log.commit_each(commits).await;
    assert_eq!(outcomes.remove(150), Err(AppendError::TooLarge));
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[tokio::test]
async fn a_sealed_stream_refuses_at_once_and_says_why() {
    let log = TestLog::new().await;
    change(&log, |config| config.sealed = true).await;
    let started = Instant::now();
    let outcome = log.commit(fresh(1)).await;
    let Err(AppendError::Unavailable(reason)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("sealed"), "{reason}");
    assert!(started.elapsed() < Duration::from_millis(500));
}

#[tokio::test]
async fn a_full_stream_says_so() {
    let log = TestLog::with(hasty()).await;
    log.commit(fresh(3)).await.unwrap();
    change(&log, |config| config.max_messages = 3).await;
    for commit in [fresh(1), fresh(2)] {
        let outcome = log.commit(commit).await;
        let Err(AppendError::Unavailable(reason)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.contains("maximum messages"), "{reason}");
    }
    change(&log, |config| config.max_messages = -1).await;
    log.commit(fresh(2)).await.unwrap();
}

#[tokio::test]
async fn an_event_that_is_nested_deeper_than_readers_accept_is_refused() {
    let log = TestLog::new().await;
    let nested = |levels: usize| {
        let data = (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
        let mut commit = fresh(1);
        commit.writes[0].events = vec![new_event(Event::Custom(Custom {
            name: "deep".to_owned(),
            data: data.as_object().unwrap().clone(),
        }))];
        commit
    };
    let deeper = log.commit(nested(MAX_EVENT_LEVELS + 1)).await;
    assert_eq!(deeper, Err(AppendError::TooDeep));
    let commit = nested(MAX_EVENT_LEVELS);
    log.commit(commit.clone()).await.unwrap();
    let write = &commit.writes[0];
    let stored = log.load(&write.stream).await.unwrap();
    assert_eq!(stored[0].event, write.events[0].event);
}
