//! How connections end, and what the client is told.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use futures::SinkExt as _;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use workflow_runner::live::SocketSettings;

use super::{Server, Socket};
use crate::support::eventually;

const A_SECOND: Duration = Duration::from_secs(1);

impl Server {
    /// A server that soon disconnects a client of which it hears nothing.
    async fn impatient() -> Self {
        Self::with(SocketSettings {
            ping_interval: A_SECOND,
            ..SocketSettings::default()
        })
        .await
    }
}

impl Socket {
    /// Reads nothing and sends pings with this payload, so many at a time, until the server has
    /// ended the connection. It does not while it hears them.
    async fn ping_until_ended(&mut self, at_a_time: usize, payload: Vec<u8>) {
        let ping = Message::Ping(payload.into());
        eventually("the connection to be ended", async || {
            for _ in 0..at_a_time {
                if self.0.send(ping.clone()).await.is_err() {
                    return true;
                }
            }
            false
        })
        .await;
    }
}

#[tokio::test]
async fn a_token_that_means_nothing_ends_it_for_good() {
    let server = Server::start().await;
    let mut socket = Socket::connect(server.addr).await;
    socket.auth("wp_nothing").await;
    assert_eq!(socket.frame().await["type"], "error");
    assert_eq!(socket.close_code().await, 3500);
    let offered = "waypost, bearer.wp_nothing".to_owned();
    let headers = [("sec-websocket-protocol", offered)];
    let (mut socket, _) = Socket::handshake(server.addr, "/ws", &headers).await;
    assert_eq!(socket.close_code().await, 3500);
}

#[tokio::test]
async fn a_key_without_the_scope_ends_it_for_good() {
    let server = Server::start().await;
    let key = server.world.key(&["workflows:read"], None).await;
    let key = server.known(key).await;
    let mut socket = Socket::connect(server.addr).await;
    socket.auth(&key.secret).await;
    let error = socket.frame().await;
    let words = error["error"].as_str().unwrap();
    assert!(words.contains("events:read"), "{words}");
    assert_eq!(socket.close_code().await, 3503);
}

#[tokio::test]
async fn a_client_that_does_not_authenticate_is_disconnected() {
    let server = Server::with(SocketSettings {
        auth_timeout: Duration::from_millis(100),
        ..SocketSettings::default()
    })
    .await;
    let mut socket = Socket::connect(server.addr).await;
    assert_eq!(socket.close_code().await, 3502);
}

#[tokio::test]
async fn a_revoked_key_ends_its_connections_within_a_second() {
    let server = Server::start().await;
    let (key, other) = (server.key().await, server.key().await);
    let mut socket = server.open_with(&key).await;
    let mut others = server.open_with(&other).await;
    socket.subscribe("s", "runs").await;
    let revoked = Instant::now();
    server.world.revoke(&key).await;
    assert_eq!(socket.close_code().await, 3501);
    assert!(revoked.elapsed() < A_SECOND, "{:?}", revoked.elapsed());
    others.subscribe("s", "runs").await;
    let mut again = Socket::connect(server.addr).await;
    again.auth(&key.secret).await;
    assert_eq!(again.close_code().await, 3500);
}

#[tokio::test]
async fn an_expired_key_ends_its_connections_within_a_second() {
    let server = Server::start().await;
    let expires_at = Utc::now() + TimeDelta::seconds(2);
    let key = server.world.key(&["events:read"], Some(expires_at)).await;
    let key = server.known(key).await;
    let mut socket = server.open_with(&key).await;
    assert_eq!(socket.close_code().await, 3501);
    let late = (Utc::now() - expires_at).to_std().unwrap_or_default();
    assert!(late < A_SECOND, "{late:?}");
}

#[tokio::test]
async fn a_token_can_be_renewed_by_another_of_the_same_organization() {
    let server = Server::start().await;
    let (old, new) = (server.key().await, server.key().await);
    let mut socket = server.open_with(&old).await;
    socket.auth(&new.secret).await;
    assert_eq!(socket.frame().await, json!({"type": "ready"}));
    server.world.revoke(&old).await;
    socket.subscribe("s", "runs").await;
    let neighbour = server.world.neighbour();
    let foreign = server
        .known(neighbour.key(&["events:read"], None).await)
        .await;
    socket.auth(&foreign.secret).await;
    let error = socket.frame().await;
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .contains("another organization"),
        "{error}"
    );
    let (run, _) = server.world.run().await;
    assert_eq!(socket.frame().await["event"]["data"]["runId"], run.as_str());
    socket.auth("wp_nothing").await;
    assert_eq!(socket.close_code().await, 3500);
}

#[tokio::test]
async fn a_frame_too_large_or_too_many_frames_end_it() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    socket.send_text("x".repeat(17 * 1024)).await;
    assert_eq!(socket.close_code().await, 3504);
    let mut socket = server.open().await;
    for _ in 0..11 {
        socket.send_text("nonsense".to_owned()).await;
    }
    assert_eq!(socket.close_code().await, 3505);
}

#[tokio::test]
async fn shutting_down_asks_clients_to_come_back() {
    let server = Server::start().await;
    let mut ready = server.open().await;
    let mut waiting = Socket::connect(server.addr).await;
    server.world.shutdown.cancel();
    assert_eq!(ready.close_code().await, 3000);
    assert_eq!(waiting.close_code().await, 3000);
}

#[tokio::test]
async fn clients_are_pinged_and_dead_ones_are_disconnected() {
    let server = Server::with(SocketSettings {
        ping_interval: Duration::from_millis(100),
        ..SocketSettings::default()
    })
    .await;
    let key = server.key().await;
    let mut live = server.open_with(&key).await;
    let mut dead = server.open_with(&key).await;
    for _ in 0..10 {
        // A client answers pings while it reads.
        assert!(matches!(live.next().await, Message::Ping(_)));
    }
    // This one has not read, and so not answered, for ten pings.
    eventually("the dead to be let go", async || {
        matches!(dead.next().await, Message::Close(Some(frame)) if u16::from(frame.code) == 3003)
    })
    .await;
    live.subscribe("s", "runs").await;
}

#[tokio::test]
async fn a_client_that_asks_for_snapshots_without_reading_is_disconnected() {
    /// Fewer frames than a client may send at once, and far fewer than may wait.
    const TIMES: usize = 25;
    const SNAPSHOT_BYTES: usize = 400 * 1024;
    let server = Server::impatient().await;
    let anna = server.person("Anna").await;
    let place_name = "x".repeat(SNAPSHOT_BYTES);
    server.world.fix(&anna, 1.0, &place_name).await;
    let mut socket = server.socket_of(&anna).await;
    for _ in 0..TIMES {
        socket
            .send(json!({"type": "subscribe", "id": "l", "channel": "locations"}))
            .await;
        socket.send(json!({"type": "unsubscribe", "id": "l"})).await;
    }
    socket.ping_until_ended(1, Vec::new()).await;
}

#[tokio::test]
async fn a_client_that_asks_for_pongs_without_reading_is_disconnected() {
    let server = Server::impatient().await;
    let mut socket = server.open().await;
    socket.ping_until_ended(200, vec![0; 125]).await;
}

#[tokio::test]
async fn a_process_holds_so_many_sockets_and_no_more() {
    let server = Server::with(SocketSettings {
        max_connections: 1,
        ..SocketSettings::default()
    })
    .await;
    let first = Socket::connect(server.addr).await;
    let url = format!("ws://{}/ws", server.addr);
    let refused = tokio_tungstenite::connect_async(&url).await.unwrap_err();
    assert!(refused.to_string().contains("503"), "{refused}");
    drop(first);
    eventually("the place to be free", async || {
        tokio_tungstenite::connect_async(&url).await.is_ok()
    })
    .await;
}
