//! Clients that are slow, silent, or read nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{any, get};
use bytes::Bytes;
use futures::stream;
use service::settings::EdgeSettings;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Client, millis, post_head, says_close, socket, start, start_with};

#[tokio::test]
async fn a_head_has_a_time_and_silence_has_another() {
    let settings = EdgeSettings {
        head: millis(200),
        silent: millis(600),
        idle: millis(1_000),
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;

    let opened = Instant::now();
    let mut silent = Client::to(addr).await;
    assert_eq!(silent.rest().await, "");
    assert!(opened.elapsed() >= millis(590), "{:?}", opened.elapsed());

    let mut slow = Client::to(addr).await;
    slow.send("GET /ok HTTP/1.1\r\nHost").await;
    let answer = slow.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains(r#"{"error":"#), "{answer}");

    let mut kept = Client::to(addr).await;
    kept.is_served().await;
    let idle = Instant::now();
    assert_eq!(kept.rest().await, "");
    assert!(idle.elapsed() >= millis(990), "{:?}", idle.elapsed());

    let mut slow_later = Client::to(addr).await;
    slow_later.is_served().await;
    slow_later.send("G").await;
    let begun = Instant::now();
    let answer = slow_later.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(begun.elapsed() < millis(900), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up_with_its_bytes() {
    let settings = EdgeSettings {
        body: millis(200),
        body_memory_bytes: 5_000,
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;
    let unfinished = async || {
        let mut client = Client::to(addr).await;
        client
            .send(post_head("/read", "Content-Length: 1000"))
            .await;
        client.send([b'x'; 900]).await;
        client.answer().await
    };
    let (head, body) = unfinished().await;
    assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    assert!(says_close(&head), "{head}");
    assert!(body.contains("too slowly"), "{body}");
    // One client gets a fifth of the memory; each of these finds it free again.
    for _ in 0..3 {
        let (head, _) = unfinished().await;
        assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    }
}

/// Notifies when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_given_up() {
    let dropped = Arc::new(Notify::new());
    let guard = Dropped(dropped.clone());
    let guard = Arc::new(std::sync::Mutex::new(Some(guard)));
    let endless = get(move || async move {
        let guard = guard.lock().unwrap().take();
        let chunks = stream::repeat_with(move || {
            let _guard = &guard;
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; 64 * 1024]))
        });
        Body::from_stream(chunks)
    });
    let settings = EdgeSettings {
        unread: millis(300),
        ..EdgeSettings::default()
    };
    let addr = start_with(Router::new().route("/endless", endless), settings).await;
    let mut client = Client::to(addr).await;
    client
        .send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    let given_up = tokio::time::timeout(Duration::from_secs(30), dropped.notified());
    given_up.await.unwrap();
}

#[tokio::test]
async fn answers_and_sockets_that_are_quiet_are_not_idle() {
    let go = Arc::new(Notify::new());
    let late = {
        let go = go.clone();
        get(move || async move {
            let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"now "))]);
            let later = stream::once(async move {
                go.notified().await;
                Ok(Bytes::from_static(b"later"))
            });
            Body::from_stream(futures::StreamExt::chain(first, later))
        })
    };
    let settings = EdgeSettings {
        head: millis(100),
        silent: millis(100),
        idle: millis(100),
        unread: millis(100),
        ..EdgeSettings::default()
    };
    let routes = Router::new().route("/late", late).route("/ws", any(socket));
    let addr = start_with(routes, settings).await;
    let mut reader = Client::to(addr).await;
    reader
        .send("GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    let mut socket = Client::to(addr).await;
    socket
        .send(
            "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        )
        .await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.0.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    // Several times as long as an idle connection is kept.
    for _ in 0..5 {
        assert_eq!(Client::to(addr).await.rest().await, "");
    }
    go.notify_one();
    let answer = reader.rest().await;
    assert!(
        answer.contains("now ") && answer.contains("later"),
        "{answer}"
    );
    // A ping, and its pong.
    socket.send([0x89, 0x80, 0, 0, 0, 0]).await;
    assert_eq!(socket.0.read_u8().await.unwrap(), 0x8a);
}
