//! Handshakes, and frames that ask for something wrong.

use serde_json::json;
use workflow_runner::live::SocketSettings;

use super::{Server, Socket};

const PROTOCOLS: &str = "sec-websocket-protocol";

#[tokio::test]
async fn a_token_may_come_as_a_subprotocol() {
    let server = Server::start().await;
    let key = server.key().await;
    let offered = format!("waypost, bearer.{}", key.secret);
    let (mut socket, response) =
        Socket::handshake(server.addr, "/ws", &[(PROTOCOLS, offered)]).await;
    assert_eq!(response.headers()[PROTOCOLS], "waypost");
    assert_eq!(socket.frame().await, json!({"type": "ready"}));
    socket.subscribe("s", "runs").await;
}

#[tokio::test]
async fn a_token_may_come_in_the_header_of_all_requests() {
    let server = Server::start().await;
    let key = server.key().await;
    let bearer = format!("Bearer {}", key.secret);
    let headers = [("authorization", bearer)];
    let (mut socket, _) = Socket::handshake(server.addr, "/ws", &headers).await;
    assert_eq!(socket.frame().await, json!({"type": "ready"}));
}

#[tokio::test]
async fn a_token_in_the_address_is_not_read() {
    let server = Server::with(SocketSettings {
        auth_timeout: std::time::Duration::from_millis(200),
        ..SocketSettings::default()
    })
    .await;
    let key = server.world.key(&["events:read"], None).await;
    let path = format!("/ws?token={}", key.secret);
    let (mut socket, _) = Socket::handshake(server.addr, &path, &[]).await;
    assert_eq!(socket.close_code().await, 3502);
}

#[tokio::test]
async fn nothing_is_served_before_the_token() {
    let server = Server::start().await;
    let mut socket = Socket::connect(server.addr).await;
    socket
        .send(json!({"type": "subscribe", "id": "s", "channel": "runs"}))
        .await;
    let frame = socket.frame().await;
    assert_eq!(frame["type"], "error");
    assert!(frame["error"].as_str().unwrap().contains("auth"), "{frame}");
    let key = server.key().await;
    socket.auth(&key.secret).await;
    assert_eq!(socket.frame().await, json!({"type": "ready"}));
}

#[tokio::test]
async fn what_is_wrong_is_said_and_the_connection_goes_on() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    socket.subscribe("taken", "runs").await;
    let subscribe = |id: &str, channel: &str, after: Option<&str>| {
        let frame = json!({"type": "subscribe", "id": id, "channel": channel, "after": after});
        (frame, Some(id.to_owned()))
    };
    let deliveries = server.world.log.position(schemas::Log::Locations, 1);
    let cases = [
        ((json!({"type": "dance"}), None), "`type`"),
        ((json!([]), None), "invalid frame"),
        (subscribe("s", "nothing", None), "`channel`"),
        (subscribe("taken", "runs", None), "`id`"),
        (subscribe("s", "runs", Some("x")), "not a position"),
        (
            subscribe("s", "runs", Some(&deliveries.to_string())),
            "another feed",
        ),
        (
            (
                json!({"type": "unsubscribe", "id": "s"}),
                Some("s".to_owned()),
            ),
            "no such subscription",
        ),
    ];
    for ((frame, id), words) in cases {
        socket.send(frame).await;
        let error = socket.frame().await;
        assert_eq!(error["type"], "error");
        assert_eq!(error["id"].as_str().map(str::to_owned), id);
        assert!(error["error"].as_str().unwrap().contains(words), "{error}");
    }
    socket.subscribe("s", "runs").await;
}

#[tokio::test]
async fn a_position_that_the_log_does_not_have_starts_afresh() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    let here = socket.subscribe("here", "runs").await;
    let (epoch, _) = here.split_once('-').unwrap();
    let other_epoch = "e00000000-1";
    let not_there = format!("{epoch}-999999");
    for (id, after) in [("a", other_epoch), ("b", not_there.as_str())] {
        socket
            .send(json!({"type": "subscribe", "id": id, "channel": "runs", "after": after}))
            .await;
        let subscribed = socket.frame().await;
        assert_eq!(subscribed["type"], "subscribed");
        assert_ne!(subscribed["position"], after);
        assert_eq!(socket.frame().await, json!({"type": "reset", "id": id}));
        let snapshot = json!({"type": "snapshot", "id": id, "data": []});
        assert_eq!(socket.frame().await, snapshot);
    }
}

#[tokio::test]
async fn a_connection_has_so_many_subscriptions_and_no_more() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    for id in 0..16 {
        socket.subscribe(&format!("s{id}"), "runs").await;
    }
    socket
        .send(json!({"type": "subscribe", "id": "more", "channel": "runs"}))
        .await;
    let error = socket.frame().await;
    assert!(error["error"].as_str().unwrap().contains("16"), "{error}");
}

#[tokio::test]
async fn a_request_that_is_no_handshake_is_an_error_like_any_other() {
    let server = Server::start().await;
    let mut stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let request = "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer)
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert!(answer.contains(r#"{"error":""#), "{answer}");
}
