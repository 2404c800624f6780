//! What was in progress with a key when it was revoked: all of it ends within a second.

use std::time::{Duration, Instant};

use harness::{Client, Organization, SlowReader, System, eventually, eventually_within};
use reqwest::{Method, Response};
use serde_json::json;

use super::connections::told;
use super::exports::{position_of, until_read};
use super::feeds_bounds::fill;
use super::uploads::{Upload, send};
use crate::SHAPE;

const A_SECOND: Duration = Duration::from_secs(1);
const FEED: &str = "/api/v1/events";
const EXPORT: &str = "/api/export/contacts";

/// Creates a key that writes, reads feeds and exports; returns it with its id.
async fn key(org: &Organization<'_>) -> (Client, String, String) {
    let scopes = ["records:write", "events:read", "export:contacts:read"];
    let terms = json!({"name": "test", "scopes": scopes, "rateLimit": 100_000});
    let (client, made) = org.unused_key(&terms).await;
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (client, text("key"), text("keyId"))
}

/// The remaining responses to an upload, and how long it took to end.
async fn rest_of(upload: &mut Upload, since: Instant) -> (String, Duration) {
    let mut rest = String::new();
    while let Some(line) = upload.next().await {
        rest.push_str(&line.to_string());
    }
    (rest, since.elapsed())
}

/// How long a response took to end, or to break off.
async fn ended(mut response: Response, since: Instant) -> Duration {
    while let Ok(Some(_)) = response.chunk().await {}
    since.elapsed()
}

/// Waits until the given numbers of feeds and exports were cut off because their key had ended.
async fn until_cut(system: &System, feeds: f64, exports: f64) {
    let metric =
        |kind| format!("waypost_answers_cut_total{{kind=\"{kind}\",reason=\"key_ended\"}}");
    eventually_within(A_SECOND, "feeds and exports to end", async || {
        let cut = told(system, &metric("feed")).await >= feeds;
        (cut && told(system, &metric("export")).await >= exports).then_some(())
    })
    .await;
}

#[tokio::test]
async fn all_that_is_under_way_with_a_revoked_key_ends_within_a_second() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    fill(&org).await;
    let here = position_of("contacts", &org).await;
    until_read(&org, "c2999", &here).await;
    let (client, key, id) = key(&org).await;

    let mut upload = Upload::begin(&client, "before").await;
    assert_eq!(upload.next().await.unwrap()["status"], "created");
    let listening = client.request(Method::GET, FEED);
    let listening = listening.header("accept", "text/event-stream");
    let mut listening = listening.send().await.unwrap();
    listening.chunk().await.unwrap().expect("where it begins");
    let lines_of_feed = SlowReader::get(&system, &key, FEED).await;
    let export = SlowReader::get(&system, &key, EXPORT).await;
    assert_eq!((lines_of_feed.status, export.status), (200, 200));
    assert!(told(&system, "waypost_feed_readers").await > 1.0);

    let path = format!("/api/v1/keys/{id}");
    org.admin.delete(&path).await.ok(204);
    let revoked = Instant::now();
    let ((reason, uploaded), listened, ()) = tokio::join!(
        rest_of(&mut upload, revoked),
        ended(listening, revoked),
        until_cut(&system, 2.0, 1.0)
    );
    assert!(
        uploaded < A_SECOND && listened < A_SECOND,
        "{uploaded:?} {listened:?}"
    );
    assert!(reason.contains("no longer valid"), "{reason}");
    // Low-priority threads release what they held.
    eventually("readers' places", async || {
        (told(&system, "waypost_feed_readers").await < 1.0).then_some(())
    })
    .await;
    // A slow reader gets only what was in transit, and no end that looks complete.
    assert_eq!(lines_of_feed.rest().await, None);
    assert_eq!(export.rest().await, None);
    // Nothing sent afterwards is accepted.
    send(&upload.lines, "after");
    let here = position_of("contacts", &org).await;
    let ids = org.admin.get_at(EXPORT, &here).await.text();
    assert!(ids.contains("\nbefore,") && !ids.contains("\nafter,"));
}
