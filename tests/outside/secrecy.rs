//! What must stand nowhere in plain: not in the log, not in a table, not in a log line.

use std::path::Path;

use axum::http::{HeaderMap, StatusCode};
use harness::{Answer, Organization, Receiver, Socket, System};
use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};

use super::active;
use crate::SHAPE;

/// All that the files below a folder hold.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(bytes_below(&path));
        } else {
            bytes.extend(std::fs::read(&path).unwrap());
        }
    }
    bytes
}

/// Every row of every table, as text.
async fn all_rows(connection: &mut PgConnection) -> String {
    let tables: Vec<(String,)> = sqlx::query_as(
        "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
         WHERE table_type = 'BASE TABLE'
           AND table_schema NOT IN ('pg_catalog', 'information_schema')",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    assert!(tables.len() > 5, "{tables:?}");
    let mut text = String::new();
    for (table,) in tables {
        let rows = format!("SELECT coalesce(string_agg(t::text, ' '), '') FROM {table} AS t");
        let (rows,): (String,) = sqlx::query_as(AssertSqlSafe(rows))
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        text.push_str(&rows);
    }
    text
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|some| some == text.as_bytes())
}

/// Uses a key in every right and wrong way.
async fn use_key(org: &Organization<'_>, key: &str) {
    let client = org.system.client();
    client.with_key(key).get("/api/v1/workflows").await.ok(200);
    let request = client.request(Method::GET, &format!("/api/v1/workflows?key={key}"));
    Answer::to(request.header("x-api-key", key))
        .await
        .error(401);
    client.get(&format!("/{key}")).await.error(404);
    let cut = &key[..key.len() - 1];
    client.with_key(cut).get("/api/v1/runs/x").await.error(401);
    let mut socket = Socket::open(org.system, key).await;
    socket.send_text(&format!("{{\"type\":\"{key}\"}}")).await;
    socket.next_of("error").await;
    let offered = format!("waypost, bearer.{key}");
    drop(Socket::offer(org.system, &offered).await.expect("a socket"));
}

/// Lets a workflow send a secret to a receiver that repeats it, well and badly.
async fn use_secret(org: &Organization<'_>, receiver: &Receiver, secret: &str) {
    let set = ["secret", "set", "--org", &org.id, "TOKEN"];
    org.system.waypost_reading(&set, secret.as_bytes()).await;
    for path in ["/well", "/badly"] {
        let workflow = active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["call"]},
            {"id": "call", "type": "HTTP", "method": "POST", "url": receiver.url(path),
             "headers": {"Authorization": "Bearer {{ secrets.TOKEN }}"},
             "body": {"token": "{{ secrets.TOKEN }}"}, "retry": {"maxAttempts": 1},
             "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "told",
             "data": {"answer": "{{ steps.call.output }}"}},
        ]));
        let workflow = org.workflow(&workflow).await;
        let run_id = org.trigger(&workflow, &json!({})).await;
        org.ended(&run_id).await;
    }
}

#[tokio::test]
async fn secrets_stand_nowhere_in_plain() {
    let system = System::start_alone(SHAPE, &[("WAYPOST_LOG", "debug")]).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    receiver.reply(|received| {
        let status = if received.path == "/badly" { 500 } else { 200 };
        let echo = format!("{} {:?}", received.header("authorization"), received.body);
        (
            StatusCode::from_u16(status).unwrap(),
            HeaderMap::new(),
            echo,
        )
    });
    let url = receiver.url("/hook");
    let hook = json!({"url": url, "events": ["contact.created"]});
    let hook = org
        .admin
        .post_once("/api/v1/webhooks", "idempotent-once", &hook);
    let hook = hook.await.ok(201);
    let terms = json!({"name": "the key's own name", "scopes": ["admin"]});
    let made = org.admin.post("/api/v1/keys", &terms).await.ok(201);
    let key = made["key"].as_str().unwrap();
    use_key(&org, key).await;
    let secret = format!("s3cret-{}", uuid::Uuid::new_v4().simple());
    use_secret(&org, &receiver, &secret).await;
    let owner = [
        "org",
        "create",
        "--name",
        "Owned",
        "--owner",
        "ada@owner.example",
    ];
    let made_for_owner = system.waypost(&owner).await;
    let contact = json!({"id": "c", "email": "in-plain@contact.example"});
    let written = org.admin.post("/api/v1/records/contacts", &contact).await;
    org.admin
        .get_at("/api/v1/records/contacts/c", &written.position())
        .await
        .ok(200);
    receiver.wait_for(1, |call| call.path == "/hook").await;

    let log = bytes_below(&system.home().join("nats").join("data"));
    let rows = all_rows(&mut system.database().await).await;
    let said = system.said();
    for plain in ["in-plain@contact.example", "the key's own name"] {
        assert!(contains(&log, plain), "the log can be searched for {plain}");
        assert!(
            rows.contains(plain),
            "the tables can be searched for {plain}"
        );
    }
    assert!(
        said.contains("\"DEBUG\"") || said.contains("DEBUG"),
        "{said}"
    );
    let password = made_for_owner["ownerPassword"]
        .as_str()
        .expect("a password");
    let webhook_secret = hook["secret"].as_str().unwrap();
    for (what, secret) in [
        ("the operator's key", org.key.as_str()),
        ("a key", key),
        ("half a key", &key[..key.len() / 2]),
        (
            "a webhook's secret",
            webhook_secret.trim_start_matches("whsec_"),
        ),
        ("a workflow's secret", secret.as_str()),
        ("a password", password),
        ("a person's e-mail", "ada@owner.example"),
        ("an idempotency key", "idempotent-once"),
    ] {
        assert!(!contains(&log, secret), "{what} stands in the log");
        assert!(!rows.contains(secret), "{what} stands in a table");
        assert!(!said.contains(secret), "{what} stands in a log line");
    }
}
