//! `waypost forget`: nothing of a person or a record can be read afterwards.

use std::path::Path;
use std::time::Duration;

use harness::{Answer, Client, Receiver, Socket, System, eventually, eventually_within};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::accounts::{PASSWORD, email, phone};
use super::active;
use super::deliveries::{delivery, webhook};
use crate::{SHAPE, system};

const NAME: &str = "Ottilie Unvergessen";
const PLACE: &str = "Hinterzimmer Unvergessen";

async fn register(client: &Client, email: &str, phone: &str) -> Value {
    let body = json!({"name": NAME, "email": email, "password": PASSWORD, "phone": phone});
    client.post("/auth/register", &body).await.ok(201)
}

/// Number of rows of any table that contain a text.
async fn rows_with(connection: &mut PgConnection, text: &str) -> i64 {
    let tables: Vec<(String,)> = sqlx::query_as(
        "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
         WHERE table_type = 'BASE TABLE'
           AND table_schema NOT IN ('pg_catalog', 'information_schema')",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    let mut rows = 0;
    for (table,) in tables {
        let count = format!("SELECT count(*) FROM {table} AS t WHERE strpos(t::text, $1) > 0");
        let (found,): (i64,) = sqlx::query_as(AssertSqlSafe(count))
            .bind(text)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        rows += found;
    }
    rows
}

/// Whether any file below a folder contains a text.
fn stands_below(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return stands_below(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|some| some == text.as_bytes())
    })
}

#[tokio::test]
async fn a_forgotten_person_is_nowhere_to_be_read() {
    let system = System::start_alone(SHAPE, &[]).await;
    let client = system.client();
    let org = system.organization().await;
    let (email, phone) = (email(), phone());
    let session = register(&client, &email, &phone).await;
    let person = client.with_key(session["access_token"].as_str().unwrap());
    let circle = org.circle("Field").await;
    let code = org.invite(&circle).await;
    person
        .post("/circles/join", &json!({ "code": code }))
        .await
        .ok(200);
    let fixes: Vec<Value> = (0..10)
        .map(|nth| {
            json!({"lat": 12.345_678, "lng": 23.456_789, "place_name": PLACE,
                          "recorded_at": format!("2026-01-02T03:04:{nth:02}Z")})
        })
        .collect();
    let answer = person.post("/location/update", &json!(fixes)).await;
    answer.ok(202);
    let latest = person.get_at("/location/latest", &answer.position()).await;
    assert_eq!(latest.ok(200)["data"][0]["place_name"], PLACE);
    let mut database = system.database().await;
    assert!(rows_with(&mut database, PLACE).await >= 10);
    assert!(rows_with(&mut database, NAME).await >= 1);

    let told = system.waypost(&["forget", &email]).await;
    assert_eq!(told["forgotten"], session["user"]["id"]);
    assert_eq!(told["events"], 10);
    assert!(told["rows"].as_i64().unwrap() >= 11, "{told}");
    person.get("/location/latest").await.error(401);
    let sign_in = json!({"email": email, "password": PASSWORD});
    client.post("/auth/login", &sign_in).await.error(401);
    for text in [NAME, PLACE, &email, &phone] {
        assert_eq!(
            rows_with(&mut database, text).await,
            0,
            "{text} stands in a table"
        );
        let log = system.home().join("nats").join("data");
        assert!(!stands_below(&log, text), "{text} stands in the log");
    }
    for feed in ["/api/v1/events", "/api/v1/locations"] {
        let read = org.admin.get(feed).await;
        assert_eq!(read.status, 200, "{}", read.text());
        let text = read.text();
        assert!(
            ![NAME, PLACE, "12.345678"]
                .iter()
                .any(|some| text.contains(some)),
            "{text}"
        );
    }
    // Others can take what the person held.
    let other = register(&client, &email, &phone).await;
    assert_ne!(other["user"]["id"], session["user"]["id"]);
    let output = system
        .waypost_output(&["forget", &self::email()], b"")
        .await;
    assert!(!output.status.success());
}

#[tokio::test]
async fn runs_that_a_forgotten_persons_call_began_are_forgotten_with_them() {
    const MESSAGE: &str = "Gefangen im Keller Unvergessen";
    let system = System::start_alone(SHAPE, &[]).await;
    let (org, person) = (system.organization().await, system.person(NAME).await);
    let circle = org.circle("Field").await;
    person.joins_by(&org.invite(&circle).await).await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "on": {"event": "sos.triggered"},
             "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "heard", "next": ["wait"],
             "data": {"said": "{{ trigger.message }}"}},
            {"id": "wait", "type": "WAIT_FOR_EVENT", "event": "lead.created",
             "timeoutSeconds": 600},
        ])))
        .await;
    let call = json!({"lat": 52.5, "lng": 13.4, "message": MESSAGE});
    person.client.post("/sos/trigger", &call).await.ok(202);
    let path = format!("/api/v1/workflows/{workflow}/runs");
    let waits = |list: &Value| list["data"][0]["state"] == "WAITING";
    let list = org.until(&path, waits).await;
    let run = list["data"][0]["runId"].as_str().unwrap().to_owned();
    let run = format!("/api/v1/runs/{run}");
    org.admin.get(&run).await.ok(200);
    let mut database = system.database().await;
    assert_eq!(rows_with(&mut database, MESSAGE).await, 1);
    let log = system.home().join("nats").join("data");
    assert!(
        stands_below(&log, MESSAGE),
        "the search finds what is there"
    );

    let body = json!({"password": PASSWORD});
    let deleted = person.client.post("/auth/delete", &body).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let none = org.until(&path, |list| list["total"] == 0).await;
    assert_eq!(none["data"], json!([]));
    org.admin.get(&run).await.error(404);
    let cancel = format!("{run}/cancel");
    org.admin.post_nothing(&cancel).await.error(404);
    assert_eq!(rows_with(&mut database, MESSAGE).await, 0);
    assert!(!stands_below(&log, MESSAGE), "it stands in the log");
    let feed = org.admin.get("/api/v1/events").await.text();
    assert!(!feed.contains(MESSAGE), "{feed}");
}

#[tokio::test]
async fn forgetting_a_person_is_completed_after_all_processes_were_killed() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    let client = system.client();
    let email = email();
    let session = register(&client, &email, &phone()).await;
    let person = client.with_key(session["access_token"].as_str().unwrap());
    let fix = json!({"lat": 12.345_678, "lng": 23.456_789});
    person.post("/location/update", &fix).await.ok(202);
    let id = &session["user"]["id"];
    let data = system.home().join("nats").join("data");
    let kept = [format!("track.{id}"), format!("KEYS.account.{id}")];
    let is_kept = |text: &String| stands_below(&data, text);
    assert!(kept.iter().all(is_kept));

    let leaving = person.clone();
    let deleting = tokio::spawn(async move {
        let body = json!({"password": PASSWORD});
        let request = leaving.request(Method::POST, "/auth/delete");
        let request = request.header("content-type", "application/json");
        let answer = Answer::or_error(request.body(body.to_string())).await;
        answer.map(|answer| answer.status)
    });
    eventually("the deletion to have begun", async || {
        let refused = person.get("/circles").await.status == 401;
        refused.then_some(())
    })
    .await;
    for program in system.programs() {
        program.kill();
    }
    assert_ne!(deleting.await.unwrap().ok(), Some(StatusCode::NO_CONTENT));
    assert!(kept.iter().all(is_kept), "it was not cut off in the midst");
    for program in system.programs() {
        program.restart();
    }
    system.until_ready().await;
    eventually_within(Duration::from_mins(1), "all to be gone", async || {
        let left = kept.iter().any(is_kept);
        (!left).then_some(())
    })
    .await;
    let other = register(&client, &email, &phone()).await;
    assert_ne!(other["user"]["id"], *id);
}

#[tokio::test]
async fn a_verified_number_is_given_back() {
    let system = system().await;
    let client = system.client();
    let (first, phone) = (email(), phone());
    let verified = async |session: &Value| {
        client
            .post("/auth/otp/send", &json!({"phone": phone}))
            .await
            .ok(202);
        let outbox = std::fs::read_to_string(system.home().join("outbox/sms.ndjson")).unwrap();
        let mut lines = outbox
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let line = lines.rfind(|line| line["phone"] == phone).unwrap();
        let person = client.with_key(session["access_token"].as_str().unwrap());
        let body = json!({"phone": phone, "code": line["code"]});
        person.post("/auth/otp/verify", &body).await
    };
    let ada = register(&client, &first, &phone).await;
    verified(&ada).await.ok(200);
    let bob = register(&client, &email(), &phone).await;
    verified(&bob).await.error(409);
    system.waypost(&["forget", &first]).await;
    verified(&bob).await.ok(200);
}

#[tokio::test]
async fn a_forgotten_record_is_nowhere_to_be_read() {
    let system = System::start_alone(SHAPE, &[]).await;
    let org = system.organization().await;
    let secret = "very-private@contact.example";
    let records = "/api/v1/records/contacts";
    org.admin
        .post(records, &json!({"id": "c1", "email": secret}))
        .await
        .ok(201);
    let path = format!("{records}/c1");
    org.admin
        .put(&path, &json!({"email": secret, "firstName": "Ida"}))
        .await
        .ok(200);
    let kept = org
        .admin
        .post(
            records,
            &json!({"id": "c2", "email": "kept@contact.example"}),
        )
        .await;
    org.admin.get_at(&path, &kept.position()).await.ok(200);
    let told = system
        .waypost(&["forget", "--org", &org.id, "contacts", "c1"])
        .await;
    assert_eq!(told, json!({"forgotten": "c1", "events": 3, "rows": 1}));
    org.admin.get(&path).await.error(404);
    assert_eq!(rows_with(&mut system.database().await, secret).await, 0);
    assert!(!stands_below(
        &system.home().join("nats").join("data"),
        secret
    ));
    let feed = org.admin.get("/api/v1/events").await.text();
    assert!(
        !feed.contains(secret) && feed.contains("kept@contact.example"),
        "{feed}"
    );
    // The log continues, and so do all its consumers.
    let next = org
        .admin
        .post(
            records,
            &json!({"id": "c3", "email": "next@contact.example"}),
        )
        .await;
    org.admin
        .get_at(&format!("{records}/c3"), &next.position())
        .await
        .ok(200);
    for wrong in [["contacts", "c1"], ["nothing", "c2"]] {
        let arguments = [&["forget", "--org", &org.id][..], &wrong].concat();
        let output = system.waypost_output(&arguments, b"").await;
        assert!(!output.status.success(), "{wrong:?}");
    }
}

#[tokio::test]
async fn a_record_that_is_created_again_while_it_is_forgotten_is_kept_until_forgotten_again() {
    let system = System::start_alone(SHAPE, &[]).await;
    let org = system.organization().await;
    let path = "/api/v1/records/contacts/c1";
    let [first, second] = ["first@contact.example", "second@contact.example"];
    let made = org.admin.put(path, &json!({"email": first})).await;
    org.admin.get_at(path, &made.position()).await.ok(200);
    // Held as by a rebuild from the command line, which the erasing waits for.
    let mut database = system.database().await;
    let hold = "SELECT pg_advisory_lock(x'77617971'::int, hashtext('rebuild_contacts'))";
    database.execute(hold).await.unwrap();
    let forget = ["forget", "--org", &org.id, "contacts", "c1"];
    let creating_again = async {
        eventually("the deletion", async || {
            let gone = org.admin.get(path).await.status == StatusCode::NOT_FOUND;
            gone.then_some(())
        })
        .await;
        let again = org.admin.put(path, &json!({"email": second})).await;
        org.admin.get_at(path, &again.position()).await.ok(200);
        let let_go = "SELECT pg_advisory_unlock_all()";
        database.execute(let_go).await.unwrap();
    };
    let (output, ()) = tokio::join!(system.waypost_output(&forget, b""), creating_again);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("forget it again"), "{said}");
    let feed = org.admin.get("/api/v1/events").await.text();
    assert!(feed.contains(second) && !feed.contains(first), "{feed}");
    let kept = org.admin.get(path).await.ok(200);
    assert_eq!(kept["email"], second);

    let told = system.waypost(&forget).await;
    assert_eq!(told, json!({"forgotten": "c1", "events": 2, "rows": 1}));
    org.admin.get(path).await.error(404);
    let feed = org.admin.get("/api/v1/events").await.text();
    assert!(!feed.contains(second), "{feed}");
}

#[tokio::test]
async fn a_forgotten_record_is_neither_sent_again_nor_shown_again() {
    let retries = ["1"; 60].join(",");
    let settings = [("WAYPOST_WEBHOOK_RETRY_SECONDS", retries.as_str())];
    let system = System::start_alone(SHAPE, &settings).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    receiver.status(500);
    let hook = webhook(&org, &receiver.url("/"), &["contact.created"]).await;
    let mut socket = Socket::open(&system, &org.key).await;
    let before = socket.subscribe("s", "events", None).await;
    let records = "/api/v1/records/contacts";
    let given = json!({"id": "c1", "email": "very-private@contact.example"});
    org.admin.post(records, &given).await.ok(201);
    receiver.wait_for(1, |_| true).await;
    shown_until(&mut socket, "c1").await;
    system
        .waypost(&["forget", "--org", &org.id, "contacts", "c1"])
        .await;
    let failed = delivery(&org, &hook, "FAILED").await;
    let attempts = failed["attempts"].to_string();
    assert!(attempts.contains("may no longer be shown"), "{failed}");
    let sent = || {
        let received = receiver.received();
        let private = |body: &[u8]| String::from_utf8_lossy(body).contains("very-private");
        received.iter().filter(|one| private(&one.body)).count()
    };
    let sent_before = sent();

    // The first socket stays open: what is in memory for its organization stays there.
    let next = json!({"id": "c2", "email": "next@contact.example"});
    org.admin.post(records, &next).await.ok(201);
    let mut again = Socket::open(&system, &org.key).await;
    again.subscribe("s", "events", Some(&before)).await;
    shown_until(&mut socket, "c2").await;
    let shown = shown_until(&mut again, "c2").await;
    assert!(!shown.contains(&json!("c1")), "{shown:?}");
    assert_eq!(sent(), sent_before);
}

/// The ids in the next events of a socket, up to this one.
async fn shown_until(socket: &mut Socket, id: &str) -> Vec<Value> {
    let mut ids: Vec<Value> = Vec::new();
    while ids.last().is_none_or(|last| last != id) {
        let frame = socket.next_of("event").await;
        ids.push(frame["event"]["data"]["id"].clone());
    }
    ids
}
