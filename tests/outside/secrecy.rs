//! What must not appear in plain text anywhere: in the log, in a table, in a log line.

use std::path::Path;

use axum::http::{HeaderMap, StatusCode};
use harness::{Answer, Organization, Receiver, Socket, System};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, ORIGIN};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};

use super::active;
use crate::SHAPE;

/// The contents of all files below a folder.
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

/// Uses a key in every valid and invalid way.
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

/// Lets a workflow send a secret to a receiver that echoes it, with success and failure.
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

/// Invites a person to an organization's people, opens the link and returns its code.
async fn invite(org: &Organization<'_>, email: &str) -> String {
    let invite = ["org", "invite", "--org", &org.id, email];
    let invited = org.system.waypost(&invite).await;
    let (_, code) = invited["link"].as_str().unwrap().split_once('#').unwrap();
    let client = org.system.client();
    let look = client.request(Method::POST, "/dashboard/invite/look");
    let look = look
        .header(ORIGIN, client.base())
        .header(CONTENT_TYPE, "application/json")
        .body(json!({"code": code}).to_string());
    Answer::to(look).await.ok(200);
    code.to_owned()
}

#[tokio::test]
async fn secrets_are_nowhere_in_plain_text() {
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
    let code = invite(&org, "invited@owner.example").await;
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
        ("the code of an invite", code.as_str()),
        ("an invited address", "invited@owner.example"),
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

#[tokio::test]
async fn what_persons_entrust_is_nowhere_in_plain_text() {
    let system = System::start_alone(SHAPE, &[("WAYPOST_LOG", "debug")]).await;
    let client = system.client();
    let (email, phone) = ("grete@entrusted.example", "+4915799912345");
    let body = json!({"name": "Grete Anvertraut", "email": email, "phone": phone,
                      "password": "entrusted pass phrase"});
    let registered = client.post_once("/auth/register", "entrusted-key", &body);
    let session = registered.await.ok(201);
    let token = session["access_token"].as_str().unwrap();
    let person = client.with_key(token);
    let wrong = json!({"email": email, "password": "mistyped pass phrase"});
    client.post("/auth/login", &wrong).await.error(401);
    client
        .post("/auth/otp/send", &json!({"phone": phone}))
        .await
        .ok(202);
    let outbox = std::fs::read_to_string(system.home().join("outbox/sms.ndjson")).unwrap();
    let sent: serde_json::Value = serde_json::from_str(outbox.lines().last().unwrap()).unwrap();
    let code = sent["code"].as_str().unwrap();
    let kept: Vec<(String,)> = sqlx::query_as("SELECT t::text FROM one_time_codes AS t")
        .fetch_all(&mut system.database().await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    assert!(
        !kept[0].0.split([',', '(', ')']).any(|field| field == code),
        "{kept:?}"
    );
    let tried = json!({"phone": phone, "code": code});
    person.post("/auth/otp/verify", &tried).await.ok(200);
    let change = json!({"old": "entrusted pass phrase", "new": "another pass phrase"});
    let changed = person.post("/auth/password", &change).await.ok(200);
    let person = client.with_key(changed["access_token"].as_str().unwrap());
    let fix = json!({"lat": 51.234_567, "lng": 11.765_432, "place_name": "Entrusted place"});
    let updated = person.post("/location/update", &fix).await;
    person
        .get_at("/location/latest", &updated.position())
        .await
        .ok(200);
    let sos = json!({"message": "Entrusted message", "lat": 51.234_567, "lng": 11.765_432});
    person.post("/sos/trigger", &sos).await.ok(202);
    assert_eq!(person.post_nothing("/auth/logout").await.status, 204);

    let log = bytes_below(&system.home().join("nats").join("data"));
    let rows = all_rows(&mut system.database().await).await;
    let said = system.said();
    assert!(
        contains(&log, "account.registered"),
        "the log can be searched"
    );
    for secret in [
        "entrusted pass phrase",
        "mistyped pass phrase",
        "another pass phrase",
        "$argon2id$",
        token,
        token.rsplit('.').next().unwrap(),
        changed["access_token"].as_str().unwrap(),
        email,
        phone,
        "entrusted-key",
        "Entrusted message",
    ] {
        assert!(!contains(&log, secret), "{secret} stands in the log");
        assert!(!rows.contains(secret), "{secret} stands in a table");
        assert!(!said.contains(secret), "{secret} stands in a log line");
    }
    // The read models show these to those who may see them.
    for shown in ["Grete Anvertraut", "Entrusted place", "51.234567"] {
        assert!(
            rows.contains(shown),
            "the tables can be searched for {shown}"
        );
        assert!(!contains(&log, shown), "{shown} stands in the log");
        assert!(!said.contains(shown), "{shown} stands in a log line");
    }
}
