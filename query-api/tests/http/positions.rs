//! Reads that wait for a position.

use std::time::Duration;

use crate::support::{TestApi, settings};
use event_log::Position;
use query_api::QuerySettings;
use schemas::Log;

const CONTACT: &str = "INSERT INTO contacts (org_id, id, first_name, created_at, updated_at)
     VALUES ($1, 'c1', 'Ada', now(), now())";
const PATH: &str = "/api/v1/records/contacts/c1";
const FEEDS: [&str; 2] = ["/api/v1/events", "/api/v1/locations"];

/// Moves every projection of the events to a position, as the projector does.
async fn project(api: &TestApi, position: Position, epoch: u32) {
    let mut transaction = api.pool.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO projection_checkpoints (name, log, epoch, sequence)
         SELECT name, 'events', $1, $2
         FROM UNNEST('{contacts,organizations,workflows,runs,webhooks,api_keys}'::text[]) AS p (name)
         ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, sequence = excluded.sequence",
    )
    .bind(i64::from(epoch))
    .bind(i64::try_from(position.sequence()).unwrap())
    .execute(&mut *transaction)
    .await
    .unwrap();
    let told = sqlx::query("SELECT pg_notify('projection', 'events')");
    told.execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
}

/// An API with a contact, whose reads wait only briefly.
async fn impatient() -> TestApi {
    let settings = QuerySettings {
        position_wait: Duration::from_millis(50),
        ..settings()
    };
    let api = TestApi::open_with(settings, None).await;
    api.execute(CONTACT).await;
    api
}

#[tokio::test]
async fn a_read_waits_until_its_projections_have_reached_the_position() {
    let api = TestApi::open().await;
    let position = api.log.end(Log::Events).await.unwrap();
    let before = api.log.position(Log::Events, position.sequence() - 1);
    project(&api, before, position.epoch()).await;
    api.execute(CONTACT).await;
    let text = position.to_string();
    let headers = [("waypost-min-position", text.as_str())];
    let reads = futures::future::join(
        api.get_with(PATH, &headers),
        api.get_with("/api/export/contacts", &headers),
    );
    let mut reads = Box::pin(reads);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut reads);
    assert!(
        early.await.is_err(),
        "answered before the projection was there"
    );
    project(&api, position, position.epoch()).await;
    let (contact, export) = reads.as_mut().await;
    drop(reads);
    assert_eq!((contact.status, export.status), (200, 200));
    // Once it is known, reads do not wait at all.
    assert_eq!(api.get_with(PATH, &headers).await.status, 200);
    api.close().await;
}

#[tokio::test]
async fn a_position_that_is_not_reached_in_time_is_503_and_of_an_export_500() {
    let api = impatient().await;
    let position = api.log.end(Log::Events).await.unwrap();
    // The sequences of another epoch mean nothing.
    project(&api, position, position.epoch().wrapping_add(1)).await;
    let text = position.to_string();
    let headers = [("waypost-min-position", text.as_str())];
    for (path, status) in [(PATH, 503), ("/api/export/contacts", 500)] {
        let answer = api.get_with(path, &headers).await;
        assert_eq!(answer.status, status);
        assert!(answer.error().contains("Waypost-Min-Position"));
    }
    // The projections of contacts are not folded from positions.
    let other = api.log.position(Log::Locations, 1_000_000).to_string();
    let headers = [("waypost-min-position", other.as_str())];
    assert_eq!(api.get_with(PATH, &headers).await.status, 200);
    api.close().await;
}

/// A server that went down may have lost the last rows, and the positions with them.
#[tokio::test]
async fn a_position_that_the_database_may_have_lost_is_not_taken_for_reached() {
    let api = impatient().await;
    let position = api.log.end(Log::Events).await.unwrap();
    project(&api, position, position.epoch()).await;
    let text = position.to_string();
    let headers = [("waypost-min-position", text.as_str())];
    let answers = async |status, seconds| {
        let answered = async { while api.get_with(PATH, &headers).await.status != status {} };
        tokio::time::timeout(Duration::from_secs(seconds), answered).await
    };
    answers(200, 20).await.unwrap();
    let forgets = async || {
        // As long as this transaction is open, no one can read the positions.
        let mut lost = api.pool.begin().await.unwrap();
        for statement in [
            "LOCK TABLE projection_checkpoints",
            "UPDATE projection_checkpoints SET sequence = 0",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND query LIKE 'LISTEN %'",
        ] {
            sqlx::query(statement).execute(&mut *lost).await.unwrap();
        }
        let forgotten = answers(503, 2).await.is_ok();
        lost.rollback().await.unwrap();
        answers(200, 20).await.unwrap();
        forgotten
    };
    // A reader that was just reading only learns of the loss afterwards.
    let mut attempts = 0..5;
    let mut forgotten = false;
    while !forgotten && attempts.next().is_some() {
        forgotten = forgets().await;
    }
    assert!(forgotten);
    api.close().await;
}

#[tokio::test]
async fn a_feed_is_503_if_the_log_does_not_reach_the_position_in_time() {
    let api = impatient().await;
    for log in [Log::Events, Log::Locations] {
        let beyond = api.log.position(log, 1 << 40).to_string();
        let headers = [("waypost-min-position", beyond.as_str())];
        for path in FEEDS {
            let answer = api.get_with(path, &headers).await;
            assert_eq!(answer.status, 503, "{path} {beyond}");
            assert!(answer.error().contains("Waypost-Min-Position"));
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
    }
    api.close().await;
}

#[tokio::test]
async fn what_is_no_position_is_refused() {
    let api = TestApi::open().await;
    for text in ["", "x", "e0-1", "e00000000-", "1"] {
        let headers = [("waypost-min-position", text)];
        for path in [PATH, "/api/export/contacts"].into_iter().chain(FEEDS) {
            let answer = api.get_with(path, &headers).await;
            assert_eq!(answer.status, 400, "{path} {text:?}");
            assert!(answer.error().contains("Waypost-Min-Position"));
        }
    }
    api.close().await;
}
