//! `/ws`: who may open a socket, and its responses to invalid input.

use std::time::{Duration, Instant};

use harness::{Organization, Socket, System};
use reqwest::Method;
use serde_json::{Value, json};

use crate::system;

async fn reader_key(org: &Organization<'_>) -> (String, String) {
    let terms = json!({"name": "sockets", "scopes": ["events:read"], "rateLimit": 1_000_000});
    let (_, created) = org.unused_key(&terms).await;
    let text = |name: &str| created[name].as_str().unwrap().to_owned();
    (text("keyId"), text("key"))
}

/// The code with which a socket that sends this token is closed.
async fn code_for(system: &System, token: &str) -> u16 {
    let mut socket = Socket::connect(system).await;
    let frame = json!({"type": "auth", "token": token});
    socket.send(&frame).await;
    socket.close_code().await
}

#[track_caller]
fn assert_is_final(code: u16) {
    assert!((3500..4000).contains(&code), "closed with {code}");
}

#[tokio::test]
async fn a_key_in_the_first_frame_opens_a_socket() {
    let org = system().await.organization().await;
    let (_, key) = reader_key(&org).await;
    let mut socket = Socket::open(org.system, &key).await;
    socket.subscribe("s1", "runs", None).await;
    // A token may be sent again at any time.
    let again = json!({"type": "auth", "token": org.key});
    socket.send(&again).await;
    assert_eq!(socket.next().await, json!({"type": "ready"}));
}

#[tokio::test]
async fn a_key_among_the_subprotocols_opens_a_socket() {
    let org = system().await.organization().await;
    let (_, key) = reader_key(&org).await;
    drop(Socket::open(org.system, &key).await);
    for offered in [
        format!("waypost, bearer.{key}"),
        format!("bearer.{key},waypost"),
    ] {
        let opened = Socket::offer(org.system, &offered).await;
        let (mut socket, selected) = opened.expect("a socket");
        assert_eq!(selected.as_deref(), Some("waypost"), "never the token");
        assert_eq!(socket.next().await, json!({"type": "ready"}));
        socket.subscribe("s1", "events", None).await;
    }
}

#[tokio::test]
async fn a_token_that_is_not_good_enough_closes_for_good() {
    let org = system().await.organization().await;
    let (_, key) = reader_key(&org).await;
    drop(Socket::open(org.system, &key).await);
    for token in ["", "x", "wp_", &format!("{key}x"), &key[..key.len() - 1]] {
        assert_is_final(code_for(org.system, token).await);
    }
    let others = ["workflows:read", "workflows:trigger", "keys:manage"];
    let without = json!({"name": "n", "scopes": others, "rateLimit": 1_000});
    let (_, created) = org.unused_key(&without).await;
    assert_is_final(code_for(org.system, created["key"].as_str().unwrap()).await);
    let offered = format!("waypost, bearer.{key}x");
    if let Ok((mut socket, _)) = Socket::offer(org.system, &offered).await {
        assert_is_final(socket.close_code().await);
    }
}

#[tokio::test]
async fn a_socket_that_does_not_say_who_it_is_is_closed() {
    let system = system().await;
    let opened = Instant::now();
    let mut silent = Socket::connect(system).await;
    assert_is_final(silent.close_code().await);
    let waited = opened.elapsed();
    assert!(waited >= Duration::from_millis(900), "after {waited:?}");

    // Anything else sent first reveals nothing.
    let mut eager = Socket::connect(system).await;
    let subscribe = json!({"type": "subscribe", "id": "s1", "channel": "runs"});
    eager.send(&subscribe).await;
    assert_eq!(eager.next().await["type"], "error");
    assert_is_final(eager.close_code().await);
}

#[tokio::test]
async fn a_token_in_the_address_is_no_token() {
    let system = system().await;
    let org = system.organization().await;
    let mut socket =
        Socket::connect_to(system, &format!("/ws?token={0}&access_token={0}", org.key)).await;
    assert_is_final(socket.close_code().await);
}

#[tokio::test]
async fn a_plain_request_is_asked_to_upgrade() {
    let nobody = system().await.client();
    let answer = nobody.get("/ws").await;
    let status = answer.status.as_u16();
    assert!([400, 426].contains(&status), "{status}");
    answer.error(status);
    let posted = harness::Answer::to(nobody.request(Method::POST, "/ws")).await;
    posted.error(405);
}

#[tokio::test]
async fn nonsense_is_answered_and_the_socket_goes_on() {
    let org = system().await.organization().await;
    let bare = [
        "",
        "no json",
        "[]",
        "{}",
        r#"{"type":"dance"}"#,
        r#"{"type":7}"#,
    ];
    let bare = bare.map(|frame| (frame, Value::Null));
    let named = [
        (r#"{"type":"subscribe","id":"a"}"#, json!("a")),
        (r#"{"type":"subscribe","channel":"runs"}"#, Value::Null),
        (
            r#"{"type":"subscribe","id":"b","channel":"gossip"}"#,
            json!("b"),
        ),
        (
            r#"{"type":"subscribe","id":"c","channel":"runs","after":"x"}"#,
            json!("c"),
        ),
        (r#"{"type":"unsubscribe","id":"d"}"#, json!("d")),
    ];
    for frames in [&bare[..], &named[..]] {
        let mut socket = Socket::open(org.system, &org.key).await;
        for (frame, id) in frames {
            socket.send_text(frame).await;
            let error = socket.next().await;
            assert_eq!(error["type"], "error", "{frame}: {error}");
            assert!(!error["error"].as_str().unwrap().is_empty());
            assert_eq!(
                error.get("id").unwrap_or(&Value::Null),
                id,
                "{frame}: {error}"
            );
        }
        socket.subscribe("s1", "runs", None).await;
        let again = json!({"type": "subscribe", "id": "s1", "channel": "runs"});
        socket.send(&again).await;
        assert_eq!(socket.next_of("error").await["id"], "s1");
    }
}

#[tokio::test]
async fn nothing_but_nonsense_closes_for_good() {
    let org = system().await.organization().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    for _ in 0..100 {
        socket.send_text("nonsense").await;
    }
    assert_is_final(socket.close_code().await);
}

#[tokio::test]
async fn a_frame_too_large_ends_the_socket() {
    let org = system().await.organization().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    let frame = json!({"type": "unsubscribe", "id": "x".repeat(1024 * 1024)});
    socket.send(&frame).await;
    // The rest of the frame may still be in transit, and then the close frame can be lost.
    if let Some(code) = socket.end().await {
        assert_is_final(code);
    }
}

#[tokio::test]
async fn a_revoked_key_closes_its_sockets_within_a_second() {
    let org = system().await.organization().await;
    let (key_id, key) = reader_key(&org).await;
    let mut socket = Socket::open(org.system, &key).await;
    socket.subscribe("s1", "runs", None).await;
    let mut idle = Socket::open(org.system, &key).await;
    let mut other = Socket::open(org.system, &org.key).await;

    let path = format!("/api/v1/keys/{key_id}");
    org.admin.delete(&path).await.ok(204);
    let revoked = Instant::now();
    for socket in [&mut socket, &mut idle] {
        assert_is_final(socket.close_code().await);
    }
    let took = revoked.elapsed();
    assert!(took < Duration::from_secs(1), "closed after {took:?}");
    assert_is_final(code_for(org.system, &key).await);
    other.subscribe("s1", "runs", None).await;
}

#[tokio::test]
async fn an_expired_key_closes_its_sockets() {
    let org = system().await.organization().await;
    let expires_at = chrono::Utc::now() + chrono::TimeDelta::milliseconds(2_500);
    let terms = json!({"name": "brief", "scopes": ["events:read"],
        "expiresAt": expires_at.to_rfc3339()});
    let created = org.admin.post("/api/v1/keys", &terms).await.ok(201);
    let key = created["key"].as_str().unwrap();
    let mut socket = Socket::open(org.system, key).await;
    assert_is_final(socket.close_code().await);
    let late = chrono::Utc::now() - expires_at;
    assert!((-100..1_000).contains(&late.num_milliseconds()), "{late}");
}
