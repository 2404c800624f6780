//! What was under way with a key when it was revoked: all of it ends within a second.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use harness::{Client, Organization, SlowReader, System, eventually_within};
use reqwest::{Body, Method, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::connections::told;
use super::exports::position_of;
use super::feeds_bounds::fill;
use crate::SHAPE;

const A_SECOND: Duration = Duration::from_secs(1);
const FEED: &str = "/api/v1/events";
const EXPORT: &str = "/api/export/contacts";
const CONTACTS: &str = "/api/v1/records/contacts";

/// A key that writes, reads feeds and exports, with its id.
async fn key(org: &Organization<'_>) -> (Client, String, String) {
    let scopes = ["records:write", "events:read", "export:contacts:read"];
    let terms = json!({"name": "test", "scopes": scopes, "rateLimit": 100_000});
    let (client, made) = org.unused_key(&terms).await;
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (client, text("key"), text("keyId"))
}

/// Begins an upload with one line, and waits for its answer; what is sent into the channel follows.
async fn upload(client: &Client) -> (mpsc::UnboundedSender<String>, Response) {
    let (lines, coming) = mpsc::unbounded_channel();
    let coming = futures::stream::unfold(coming, async |mut coming| {
        let line: String = coming.recv().await?;
        Some((Ok::<_, std::io::Error>(line), coming))
    });
    lines.send(contact("before")).unwrap();
    let request = client.request(Method::POST, CONTACTS);
    let request = request.header("content-type", "application/x-ndjson");
    let body = Body::wrap_stream(coming.boxed());
    let mut response = request.body(body).send().await.unwrap();
    let first = response.chunk().await.unwrap().expect("an answer");
    let first: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(first["status"], "created", "{first}");
    (lines, response)
}

fn contact(id: &str) -> String {
    format!("{}\n", json!({"id": id, "email": "a@b.c"}))
}

/// The rest of an answer and how long it took to come, whether it ended or broke off.
async fn rest(mut response: Response, since: Instant) -> (String, Duration) {
    let mut rest = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        rest.extend_from_slice(&chunk);
    }
    (String::from_utf8(rest).unwrap(), since.elapsed())
}

/// Waits until so many answers were cut off since their key had ended: feeds and exports.
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
    org.admin
        .get_at(&format!("{EXPORT}?format=pdf"), &here)
        .await;
    let (client, key, id) = key(&org).await;

    let (lines, uploading) = upload(&client).await;
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
    let ((reason, uploaded), (_, listened), ()) = tokio::join!(
        rest(uploading, revoked),
        rest(listening, revoked),
        until_cut(&system, 2.0, 1.0)
    );
    assert!(
        uploaded < A_SECOND && listened < A_SECOND,
        "{uploaded:?} {listened:?}"
    );
    assert!(reason.contains("no longer valid"), "{reason}");
    assert!(told(&system, "waypost_feed_readers").await < 1.0);
    // Who reads slowly gets no more than what was on its way, and no end that looks like one.
    assert_eq!(lines_of_feed.rest().await, None);
    assert_eq!(export.rest().await, None);
    // Nothing that comes afterwards is taken; there may be nobody left to send it to.
    let _ = lines.send(contact("after"));
    let here = position_of("contacts", &org).await;
    let ids = org.admin.get_at(EXPORT, &here).await.text();
    assert!(ids.contains("\nbefore,") && !ids.contains("\nafter,"));
}
