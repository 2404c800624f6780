//! A key's limit over a rolling window, over all processes.

use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::{Answer, Client, Organization, System, eventually};
use serde_json::{Value, json};

use super::only_begins;
use crate::{SHAPE, system};

/// The requests in a limit's fields: how many are left, and the seconds until there are more.
#[track_caller]
fn limit_of(answer: &Answer, quota: u32, window: u32) -> (u32, u32) {
    let policy = answer.header("ratelimit-policy").expect("RateLimit-Policy");
    assert_eq!(policy, format!("\"hourly\";q={quota};w={window}"));
    let limit = answer.header("ratelimit").expect("RateLimit");
    let rest = limit.strip_prefix("\"hourly\";r=").expect(limit);
    let (left, seconds) = rest.split_once(";t=").expect(limit);
    (left.parse().unwrap(), seconds.parse().unwrap())
}

fn retry_after(answer: &Answer) -> u64 {
    let seconds = answer.header("retry-after").expect("Retry-After");
    seconds.parse().expect("whole seconds")
}

fn terms(scopes: &[&str], limit: u32) -> Value {
    json!({"name": "limited", "scopes": scopes, "rateLimit": limit})
}

async fn trigger_path(org: &Organization<'_>) -> String {
    let workflow = org.workflow(&only_begins()).await;
    format!("/api/v1/workflows/{workflow}/trigger")
}

#[tokio::test]
async fn every_answer_under_a_limit_states_the_limit_and_what_remains_of_it() {
    let org = system().await.organization().await;
    let path = trigger_path(&org).await;
    let nothing = "/api/v1/workflows/nothing/trigger";
    let scopes = ["workflows:trigger", "workflows:read"];
    let (client, _) = org.unused_key(&terms(&scopes, 7)).await;
    let bad = client.post_bytes(nothing, "application/json", "[]");
    let answers = [
        (202, client.post_nothing(&path).await),
        (400, bad.await),
        (404, client.post_nothing(nothing).await),
        (403, client.get("/api/export/contacts").await),
        (200, client.get("/api/v1/workflows").await),
        (404, client.get("/api/v1/runs/nothing").await),
        (400, client.get("/api/v1/workflows?limit=0").await),
    ];
    for ((status, answer), left) in answers.iter().zip((0..7).rev()) {
        assert_eq!(answer.status, *status);
        let (remaining, seconds) = limit_of(answer, 7, 3600);
        assert_eq!(remaining, left, "each answer counts, whatever it is");
        assert!((3_540..=3_601).contains(&seconds), "{seconds} s");
        assert_eq!(answer.header("retry-after"), None);
    }
    for path in ["/api/v1/workflows", "/api/export/contacts"] {
        let refused = client.get(path).await;
        refused.error(429);
        assert_eq!(limit_of(&refused, 7, 3600).0, 0);
        assert!((3_540..=3_601).contains(&retry_after(&refused)));
    }
    let refused = client.post_nothing(&path).await;
    refused.error(429);
    assert!(retry_after(&refused) >= u64::from(limit_of(&refused, 7, 3600).1));
}

#[tokio::test]
async fn a_key_has_a_thousand_requests_where_nothing_was_said() {
    let org = system().await.organization().await;
    let plain = json!({"name": "plain", "scopes": ["workflows:read"]});
    let (client, _) = org.unused_key(&plain).await;
    let answer = client.get("/api/v1/workflows").await;
    assert_eq!(limit_of(&answer, 1_000, 3_600).0, 999);
}

#[tokio::test]
async fn a_limit_is_one_keys_own() {
    let org = system().await.organization().await;
    let (spent, _) = org.unused_key(&terms(&["workflows:read"], 1)).await;
    let (fresh, _) = org.unused_key(&terms(&["workflows:read"], 1)).await;
    spent.get("/api/v1/workflows").await.ok(200);
    spent.get("/api/v1/workflows").await.error(429);
    fresh.get("/api/v1/workflows").await.ok(200);
    // Other requests do not count, whether without a key or with a wrong one.
    let (fresh, created) = org.unused_key(&terms(&["workflows:read"], 2)).await;
    let nobody = org.system.client();
    for _ in 0..5 {
        nobody.get("/api/v1/workflows").await.error(401);
        let wrong = format!("{}x", created["key"].as_str().unwrap());
        let wrong = nobody.with_key(&wrong);
        wrong.get("/api/v1/workflows").await.error(401);
    }
    let answer = fresh.get("/api/v1/workflows").await;
    assert_eq!(limit_of(&answer, 2, 3_600).0, 1);
}

#[tokio::test]
async fn two_instances_never_admit_more_than_the_limit_together() {
    let org = system().await.organization().await;
    let path = trigger_path(&org).await;
    let (second, _program) = org.system.another("command-api").await;
    let (client, _) = org.unused_key(&terms(&["workflows:trigger"], 60)).await;
    let second = client.at(&second);
    let known = org.admin.at(&second);
    eventually("the second instance to know the keys", async || {
        let answer = known.post_nothing("/api/v1/workflows/no/trigger").await;
        (answer.status == 404).then_some(())
    })
    .await;
    let sends = (0..200).map(|nth| {
        let client: &Client = if nth % 2 == 0 { &client } else { &second };
        client.post_nothing(&path)
    });
    let answers = join_all(sends).await;
    let with = |status: u16| answers.iter().filter(move |a| a.status == status);
    assert_eq!((with(202).count(), with(429).count()), (60, 140));
    let mut left: Vec<_> = with(202).map(|a| limit_of(a, 60, 3_600).0).collect();
    left.sort_unstable();
    assert_eq!(left[0], 0, "the last one says that nothing is left");
}

/// A system whose window is `window` seconds long.
async fn system_with_window(window: &str) -> System {
    System::start(SHAPE, &[("WAYPOST_LIMIT_WINDOW_SECONDS", window)]).await
}

#[tokio::test]
async fn a_request_after_the_retry_after_time_is_admitted() {
    let system = system_with_window("2").await;
    let org = system.organization().await;
    let (client, _) = org.unused_key(&terms(&["workflows:read"], 3)).await;
    for _ in 0..2 {
        // Refusals in between must not push the time out.
        let refused = loop {
            let answer = client.get("/api/v1/workflows").await;
            if answer.status == 429 {
                break answer;
            }
            answer.ok(200);
        };
        let told = Instant::now() + Duration::from_secs(retry_after(&refused));
        assert!((1..=3).contains(&retry_after(&refused)));
        // The reported time is at most a second late, as it is in whole seconds.
        while Instant::now() + Duration::from_millis(1_300) < told {
            tokio::time::sleep(Duration::from_millis(100)).await;
            client.get("/api/v1/workflows").await.error(429);
        }
        tokio::time::sleep_until(told.into()).await;
        client.get("/api/v1/workflows").await.ok(200);
    }
}

/// When a request was sent, and when it was answered.
type Span = (Instant, Instant);

async fn hammer(client: &Client, path: &str, until: Instant) -> Vec<Span> {
    let mut admitted = Vec::new();
    while Instant::now() < until {
        let sent = Instant::now();
        let answer = client.post_nothing(path).await;
        match answer.status.as_u16() {
            202 => admitted.push((sent, Instant::now())),
            _ => _ = answer.error(429),
        }
    }
    admitted
}

#[tokio::test]
async fn no_window_ever_holds_more_than_the_limit() {
    const LIMIT: usize = 25;
    let window = Duration::from_secs(2);
    let system = system_with_window("2").await;
    let org = system.organization().await;
    let path = trigger_path(&org).await;
    let limit = u32::try_from(LIMIT).unwrap();
    let (client, _) = org.unused_key(&terms(&["workflows:trigger"], limit)).await;
    let (second, _program) = system.another("command-api").await;
    let second = client.at(&second);

    let until = Instant::now() + 5 * window;
    let senders = [&client, &second].into_iter().cycle().take(8);
    let senders = senders.map(|client| hammer(client, &path, until));
    let mut admitted: Vec<Span> = join_all(senders).await.into_iter().flatten().collect();
    admitted.sort_by_key(|(_, answered)| *answered);
    for some in admitted.windows(LIMIT + 1) {
        // Each was admitted between being sent and being answered, so all of them within this.
        let first = some.iter().map(|(sent, _)| *sent).min().unwrap();
        let last = some[LIMIT].1;
        assert!(last - first > window, "{} in {:?}", LIMIT + 1, last - first);
    }
    // At most a second stricter: about every three seconds the whole limit is available again.
    assert!(admitted.len() >= 3 * LIMIT, "only {}", admitted.len());
}
