//! Feeds whose clients read nothing, and feeds whose key has ended.

use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::{Organization, SlowReader, System, eventually};
use serde_json::{Value, json};

use super::{ndjson, only_begins};
use crate::system;

const FEED: &str = "/api/v1/events";
const STREAM: &str = "text/event-stream";

/// Writes more contacts than all buffers between a server and its client hold.
pub(super) async fn fill(org: &Organization<'_>) {
    let line = |nth: u32| {
        let long = "x".repeat(950);
        json!({
            "id": format!("c{nth}"), "email": "a@b.c", "firstName": long, "lastName": long,
            "jobTitle": long, "city": long,
        })
    };
    for some in 0..3 {
        let lines = ndjson((some * 1_000..some * 1_000 + 1_000).map(line));
        let path = "/api/v1/records/contacts";
        let answer = org.admin.post_bytes(path, "application/x-ndjson", lines);
        let answer = answer.await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("\"error\""), "{}", answer.text());
    }
}

async fn revoke(org: &Organization<'_>, key: &Value) {
    let path = format!("/api/v1/keys/{}", key["keyId"].as_str().unwrap());
    org.admin.delete(&path).await.ok(204);
}

#[tokio::test]
async fn readers_that_take_nothing_hold_up_nobody() {
    let system = system().await;
    let (crowd, other) = tokio::join!(system.organization(), system.organization());
    fill(&crowd).await;
    let workflow = other.workflow(&only_begins()).await;
    let unread = join_all((0..150).map(|_| SlowReader::get(system, &crowd.key, FEED))).await;
    let reading = unread.iter().filter(|reader| reader.status == 200).count();
    assert!((1..=32).contains(&reading), "{reading}");
    for refused in unread.iter().filter(|reader| reader.status != 200) {
        // For the key, or for the share that others leave its organization.
        assert!([429, 503].contains(&refused.status), "{refused:?}");
        assert!(refused.header("retry-after").is_some());
    }
    // They would block these for as long as a client may read nothing.
    let began = Instant::now();
    system.organization().await;
    let run = other.trigger(&workflow, &json!({})).await;
    other.ended(&run).await;
    let feed = other.admin.get(FEED).await;
    assert!(feed.text().contains("run.succeeded"), "{}", feed.text());
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_given_up() {
    let settings = [
        ("WAYPOST_FEED_READERS_PER_KEY", "1"),
        ("WAYPOST_FEED_STALL_SECONDS", "1"),
    ];
    let system = System::start(system().await.shape(), &settings).await;
    let org = system.organization().await;
    fill(&org).await;
    for accept in ["*/*", STREAM] {
        let after = if accept == STREAM {
            first_of(&org).await
        } else {
            String::new()
        };
        let path = format!("{FEED}{after}");
        let unread = SlowReader::get_as(&system, &org.key, &path, accept).await;
        assert_eq!(unread.status, 200);
        let refused = org.admin.get(FEED).await;
        assert!(refused.header("retry-after").is_some());
        assert!(refused.error(429).contains("feeds"));
        eventually("the place of a reader that takes nothing", async || {
            let answer = org.admin.get(&format!("{FEED}?limit=1")).await;
            (answer.status == 200).then_some(())
        })
        .await;
        assert!(
            unread.rest().await.is_none(),
            "{accept}: a part for the whole"
        );
    }
    // A client that reads gets all of it.
    let all = SlowReader::get(&system, &org.key, FEED).await.rest().await;
    let all = String::from_utf8(all.expect("all")).unwrap();
    assert_eq!(all.matches("\"contact.created\"").count(), 3_000);
}

/// `?after=` the first event of an organization.
async fn first_of(org: &Organization<'_>) -> String {
    eventually("a place among the readers", async || {
        let answer = org.admin.get(&format!("{FEED}?limit=1")).await;
        let first: Value = serde_json::from_slice(&answer.body).ok()?;
        Some(format!("?after={}", first["position"].as_str()?))
    })
    .await
}

#[tokio::test]
async fn a_feed_ends_with_its_key() {
    let org = system().await.organization().await;
    fill(&org).await;
    let after = first_of(&org).await;
    for (accept, whole) in [("*/*", false), (STREAM, true)] {
        let terms = json!({"name": "reader", "scopes": ["events:read"]});
        let (_, made) = org.unused_key(&terms).await;
        let key = made["key"].as_str().unwrap();
        let path = format!("{FEED}{after}");
        let unread = SlowReader::get_as(org.system, key, &path, accept).await;
        assert_eq!(unread.status, 200);
        revoke(&org, &made).await;
        // All processes know of it once a key that was created later is known.
        org.client(&["admin"]).await;
        let rest = unread.rest().await;
        assert_eq!(rest.is_some(), whole, "{accept}");
        let told = String::from_utf8(rest.unwrap_or_default()).unwrap();
        assert!(told.matches("contact.created").count() < 3_000, "{accept}");
    }
}

#[tokio::test]
async fn a_feed_ends_when_its_key_expires() {
    let org = system().await.organization().await;
    let end = chrono::Utc::now() + chrono::TimeDelta::seconds(8);
    let terms = json!({"name": "reader", "scopes": ["events:read"], "expiresAt": end});
    let (_, made) = org.unused_key(&terms).await;
    let key = made["key"].as_str().unwrap();
    let live = SlowReader::get_as(org.system, key, FEED, STREAM).await;
    assert_eq!(live.status, 200);
    live.rest().await.expect("an end like any other");
    let late = chrono::Utc::now() - end;
    assert!((0..1_500).contains(&late.num_milliseconds()), "{late}");
}

#[tokio::test]
async fn where_numbers_end_is_no_position() {
    let org = system().await.organization().await;
    let here = first_of(&org).await;
    let (epoch, _) = here.rsplit_once('-').unwrap();
    for last in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1] {
        for accept in ["*/*", STREAM] {
            let path = format!("{FEED}{epoch}-{last}");
            let refused = SlowReader::get_as(org.system, &org.key, &path, accept).await;
            assert_eq!(refused.status, 400, "{last}");
            let error = refused.rest().await.expect("an error");
            let error = String::from_utf8(error).unwrap();
            assert!(error.contains("after"), "{error}");
        }
    }
    // A position that is not yet reached is valid.
    let ahead = org
        .admin
        .get(&format!("{FEED}{epoch}-{}", 1_u64 << 40))
        .await;
    assert_eq!((ahead.status.as_u16(), ahead.text()), (200, String::new()));
}

#[tokio::test]
async fn a_feed_includes_the_position_that_it_is_to_wait_for() {
    let org = system().await.organization().await;
    let contact = json!({"email": "ada@example.com"});
    let written = org.admin.put("/api/v1/records/contacts/ada", &contact);
    let position = written.await.position();
    for path in [FEED, "/api/v1/locations"] {
        let refused = org.admin.get_at(path, "garbage").await.error(400);
        assert!(refused.starts_with("Waypost-Min-Position: "), "{refused}");
        let told = eventually("a place among the readers", async || {
            let answer = org.admin.get_at(path, &position).await;
            (answer.status == 200).then(|| answer.text())
        });
        let (told, wanted) = (told.await, format!("\"{position}\""));
        assert_eq!(told.contains(&wanted), path == FEED, "{told}");
    }
}
