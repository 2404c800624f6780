//! The feed of everything that happened.

use std::time::Duration;

use harness::{Answer, Client, Organization};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::only_begins;
use crate::system;

const FEED: &str = "/api/v1/events";
const SOON: Duration = Duration::from_secs(20);

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let line = |line: &str| serde_json::from_str(line).expect("a line of JSON");
    answer.text().lines().map(line).collect()
}

fn of(events: &[Value], field: &str) -> Vec<String> {
    let text = |event: &Value| event[field].as_str().expect(field).to_owned();
    events.iter().map(text).collect()
}

async fn contact(org: &Organization<'_>, id: &str) -> String {
    let body = json!({"email": format!("{id}@example.com")});
    let path = format!("/api/v1/records/contacts/{id}");
    org.admin.put(&path, &body).await.position()
}

/// Server-sent events as they arrive.
struct Sse {
    response: Response,
    buffer: String,
}

impl Sse {
    async fn open(client: &Client, path: &str, last: Option<&str>) -> Self {
        let request = client.request(Method::GET, path);
        let mut request = request.header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let buffer = String::new();
        Self { response, buffer }
    }

    /// The next event with its id; `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let (Some(id), Some(data)) = self.frame().await? {
                return Some((id, serde_json::from_str(&data).expect("JSON")));
            }
        }
    }

    /// The starting position that the feed sends, before any event.
    async fn start(&mut self) -> String {
        match self.frame().await.expect("a frame") {
            (Some(id), None) => id,
            other => panic!("not a place without an event: {other:?}"),
        }
    }

    /// Id and data of the next frame; `None` at the end.
    async fn frame(&mut self) -> Option<(Option<String>, Option<String>)> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let frame: String = self.buffer.drain(..end + 2).collect();
                let field = |name: &str| {
                    let mut lines = frame.lines();
                    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                return Some((field("id: "), field("data: ")));
            }
            let chunk = timeout(SOON, self.response.chunk()).await.expect("a chunk");
            let chunk = chunk.ok().flatten()?;
            self.buffer
                .push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }
}

#[tokio::test]
async fn everything_that_happened_is_in_the_feed_in_order() {
    let org = system().await.organization().await;
    let workflow = org.workflow(&only_begins()).await;
    let run_id = org.trigger(&workflow, &json!({"who": "Ada"})).await;
    org.ended(&run_id).await;
    let odd = json!({"id": "c 1/ä", "email": "odd@example.com"});
    org.admin
        .post("/api/v1/records/contacts", &odd)
        .await
        .ok(201);
    org.admin
        .delete("/api/v1/records/contacts/c%201%2F%C3%A4")
        .await;

    let events = lines(&org.admin.get(FEED).await);
    let types = of(&events, "type");
    assert_eq!(
        types,
        [
            "key.created",
            "workflow.saved",
            "workflow.triggered",
            "run.started",
            "run.step_started",
            "run.step_succeeded",
            "run.succeeded",
            "contact.created",
            "contact.deleted",
        ]
    );
    let triggered = &events[2];
    let fields: Vec<_> = triggered
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = [
        "position",
        "id",
        "type",
        "version",
        "time",
        "subject",
        "correlationId",
        "causationId",
        "data",
    ];
    let mut fields = fields;
    fields.sort_unstable();
    expected.sort_unstable();
    assert_eq!(fields, expected);
    assert_eq!(triggered["version"], 1);
    assert_eq!(triggered["subject"], format!("run/{run_id}"));
    assert_eq!(triggered["data"]["runId"], run_id);
    assert_eq!(triggered["data"]["triggerPayload"]["who"], "Ada");
    assert_eq!(events[3]["causationId"], triggered["id"]);
    assert_eq!(events[7]["data"]["id"], "c 1/ä");
    assert!(!events[0].to_string().contains("Sha256"), "{}", events[0]);
}

#[tokio::test]
async fn a_reader_goes_on_where_it_stopped() {
    let org = system().await.organization().await;
    for id in ["a", "b", "c", "d"] {
        contact(&org, id).await;
    }
    let all = lines(&org.admin.get(FEED).await);
    let mut walked = Vec::new();
    let mut path = format!("{FEED}?limit=2");
    loop {
        let some = lines(&org.admin.get(&path).await);
        let Some(last) = some.last() else { break };
        assert!(some.len() <= 2);
        path = format!(
            "{FEED}?limit=2&after={}",
            last["position"].as_str().unwrap()
        );
        walked.extend(some);
    }
    assert_eq!(walked, all);
    let of_contacts = lines(
        &org.admin
            .get(&format!("{FEED}?types=contact.*&limit=3"))
            .await,
    );
    assert_eq!(of_contacts, all[1..4]);
    let two = lines(
        &org.admin
            .get(&format!("{FEED}?types=key.created,%20contact.deleted"))
            .await,
    );
    assert_eq!(of(&two, "type"), ["key.created"]);
    // A command's position is one of this feed.
    let position = contact(&org, "e").await;
    let rest = format!("{FEED}?after={position}");
    assert_eq!(lines(&org.admin.get(&rest).await), Vec::<Value>::new());
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let org = system().await.organization().await;
    for (query, named) in [
        ("after=nonsense", "after"),
        ("after=", "after"),
        ("types=nobody.knows", "types"),
        ("types=", "types"),
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
    ] {
        for feed in [FEED, "/api/v1/locations"] {
            let error = org.admin.get(&format!("{feed}?{query}")).await.error(400);
            assert!(error.contains(named), "{query}: {error}");
        }
    }
    let here = contact(&org, "a").await;
    let elsewhere = format!("/api/v1/locations?after={here}");
    org.admin.get(&elsewhere).await.error(400);
    let reader = org.client(&["workflows:read"]).await;
    assert!(reader.get(FEED).await.error(403).contains("events:read"));
    system().await.client().get(FEED).await.error(401);
    assert!(lines(&org.admin.get("/api/v1/locations").await).is_empty());
}

#[tokio::test]
async fn nobody_hears_of_others() {
    let system = system().await;
    let (one, other) = (system.organization().await, system.organization().await);
    contact(&one, "mine").await;
    let mut live = Sse::open(&other.admin, FEED, None).await;
    contact(&one, "mine-too").await;
    contact(&other, "theirs").await;
    let (_, first) = live.next().await.expect("an event");
    assert_eq!(first["data"]["id"], "theirs");
    let told = org_text(&other).await;
    assert!(told.contains("theirs") && !told.contains("mine"), "{told}");
}

async fn org_text(org: &Organization<'_>) -> String {
    org.admin.get(FEED).await.text()
}

#[tokio::test]
async fn server_sent_events_go_on_and_lose_and_double_nothing() {
    let org = system().await.organization().await;
    contact(&org, "before").await;
    let path = format!("{FEED}?types=contact.*");
    let mut live = Sse::open(&org.admin, &path, None).await;
    let mut last = None;
    let mut heard = Vec::new();
    for round in 0..4 {
        for n in 0..10 {
            contact(&org, &format!("{round}-{n}")).await;
        }
        // Disconnects in the middle of the stream.
        for _ in 0..if round == 3 { 40 - heard.len() } else { 7 } {
            let (id, event) = live.next().await.expect("an event");
            assert_eq!(event["position"], id.as_str());
            heard.push(event["data"]["id"].as_str().unwrap().to_owned());
            last = Some(id);
        }
        live = Sse::open(&org.admin, &path, last.as_deref()).await;
    }
    let all: Vec<_> = (0..4)
        .flat_map(|r| (0..10).map(move |n| format!("{r}-{n}")))
        .collect();
    assert_eq!(heard, all);
}

#[tokio::test]
async fn a_feed_that_breaks_off_before_its_first_event_goes_on_from_where_it_began() {
    let org = system().await.organization().await;
    contact(&org, "before").await;
    let places = "/api/v1/locations";
    for path in [FEED, "/api/v1/events?types=contact.*", places] {
        let mut live = Sse::open(&org.admin, path, None).await;
        let start = live.start().await;
        drop(live);
        contact(&org, "meanwhile").await;
        let mut live = Sse::open(&org.admin, path, Some(&start)).await;
        assert_eq!(live.start().await, start);
        if path != places {
            let (_, event) = live.next().await.expect("an event");
            assert_eq!(event["data"]["id"], "meanwhile", "{event}");
        }
        org.admin
            .delete("/api/v1/records/contacts/meanwhile")
            .await
            .ok(204);
    }
}

#[tokio::test]
async fn a_revoked_key_hears_nothing_more() {
    let org = system().await.organization().await;
    let made = json!({"name": "listener", "scopes": ["events:read"]});
    let (client, made) = org.unused_key(&made).await;
    let mut live = Sse::open(&client, FEED, None).await;
    contact(&org, "heard").await;
    assert!(live.next().await.is_some());
    let key_id = made["keyId"].as_str().unwrap();
    org.admin
        .delete(&format!("/api/v1/keys/{key_id}"))
        .await
        .ok(204);
    let ended = timeout(SOON, async { while live.next().await.is_some() {} }).await;
    ended.expect("the end of the feed");
}

#[tokio::test]
async fn an_operator_reads_the_same_events() {
    let org = system().await.organization().await;
    contact(&org, "a").await;
    let from_api = org_text(&org).await;
    let printed = org.system.waypost_text(&["events", "--org", &org.id]).await;
    assert_eq!(printed, from_api);
    let first = lines(&org.admin.get(&format!("{FEED}?limit=1")).await);
    let after = first[0]["position"].as_str().unwrap();
    let arguments = [
        "events",
        "--types",
        "contact.*",
        "--org",
        &org.id,
        "--after",
        after,
    ];
    let printed = org.system.waypost_text(&arguments).await;
    assert_eq!(printed.lines().count(), 1);
    let everyone = org.system.waypost_text(&["events", "--after", after]).await;
    assert!(everyone.lines().count() >= 1, "{everyone}");
}
