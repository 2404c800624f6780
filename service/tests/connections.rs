//! What clients that are slow, silent, greedy or merely refused may take of a process.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use bytes::Bytes;
use futures::stream;
use service::settings::EdgeSettings;
use service::{HttpError, edge, listen, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Serves a few routes until the test ends.
async fn start(settings: EdgeSettings) -> SocketAddr {
    let routes = Router::new()
        .route("/ok", get(|| async { "fine" }))
        .route("/refused", post(|| async { StatusCode::UNAUTHORIZED }))
        .route("/read", post(read))
        .route("/ws", any(socket));
    start_with(routes, settings).await
}

async fn start_with(routes: Router, settings: EdgeSettings) -> SocketAddr {
    let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (router, never) = (edge(routes), CancellationToken::new());
    tokio::spawn(serve(listener, router, never, Duration::ZERO, settings));
    addr
}

async fn read(request: Request) -> Result<String, HttpError> {
    let body = service::body::read(request, 1024 * 1024).await?;
    Ok(format!("read {}", body.len()))
}

async fn socket(upgrade: WebSocketUpgrade) -> axum::response::Response {
    upgrade.on_upgrade(|mut socket| async move { while socket.recv().await.is_some() {} })
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A connection, as bytes.
struct Client(TcpStream);

impl Client {
    async fn to(addr: SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// One answer with a `Content-Length`: its head and its body.
    async fn answer(&mut self) -> (String, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// Everything until the server closes.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.unwrap();
        String::from_utf8(rest).unwrap()
    }

    async fn is_served(&mut self) {
        self.send("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n").await;
        let (head, body) = self.answer().await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(body, "fine");
    }
}

fn says_close(head: &str) -> bool {
    head.contains("\r\nconnection: close\r\n")
}

fn post_head(path: &str, headers: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n")
}

#[tokio::test]
async fn a_connection_is_usable_after_an_answer_that_was_faster_than_the_body() {
    let mut client = Client::to(start(EdgeSettings::default()).await).await;
    for _ in 0..3 {
        client
            .send(post_head("/refused", "Content-Length: 70000"))
            .await;
        let (head, _) = client.answer().await;
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
        assert!(!says_close(&head), "{head}");
        client.send([b'x'; 70_000]).await;
        client.is_served().await;
    }
}

#[tokio::test]
async fn where_the_body_is_too_long_to_throw_away_the_answer_says_that_it_closes() {
    let addr = start(EdgeSettings {
        drain_bytes: 1_000,
        ..EdgeSettings::default()
    })
    .await;
    for headers in ["Content-Length: 1001", "Transfer-Encoding: chunked"] {
        let mut client = Client::to(addr).await;
        client.send(post_head("/refused", headers)).await;
        let (head, _) = client.answer().await;
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
        assert!(says_close(&head), "{headers}: {head}");
        assert_eq!(client.rest().await, "");
    }
    let mut client = Client::to(addr).await;
    client
        .send(post_head("/refused", "Content-Length: 1000"))
        .await;
    let (head, _) = client.answer().await;
    assert!(!says_close(&head), "{head}");
}

#[tokio::test]
async fn a_client_that_waits_for_leave_to_send_is_not_told_to_where_nobody_wants_the_body() {
    let addr = start(EdgeSettings::default()).await;
    let headers = "Content-Length: 4\r\nExpect: 100-continue";
    let mut refused = Client::to(addr).await;
    refused.send(post_head("/refused", headers)).await;
    let (head, _) = refused.answer().await;
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    assert!(says_close(&head), "{head}");

    let mut wanted = Client::to(addr).await;
    wanted.send(post_head("/read", headers)).await;
    let mut leave = [0; 25];
    wanted.0.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    wanted.send("body").await;
    let (head, body) = wanted.answer().await;
    assert_eq!(body, "read 4");
    assert!(!says_close(&head), "{head}");
    wanted.is_served().await;
}

#[tokio::test]
async fn a_body_that_never_comes_after_an_early_answer_ends_the_connection() {
    let mut client = Client::to(
        start(EdgeSettings {
            body: millis(100),
            ..EdgeSettings::default()
        })
        .await,
    )
    .await;
    client
        .send(post_head("/refused", "Content-Length: 10"))
        .await;
    client.answer().await;
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_head_has_a_time_and_silence_has_another() {
    let settings = EdgeSettings {
        head: millis(200),
        idle: millis(1_000),
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;

    let mut silent = Client::to(addr).await;
    assert_eq!(silent.rest().await, "");

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
    // One client gets a fifth of the memory; these all find it free again.
    for _ in 0..3 {
        let (head, _) = unfinished().await;
        assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    }
}

#[tokio::test]
async fn whoever_holds_much_in_unfinished_bodies_is_told_to_come_back() {
    let settings = EdgeSettings {
        body_memory_bytes: 50_000,
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;
    let mut unfinished = Client::to(addr).await;
    unfinished
        .send(post_head(
            "/read",
            "Content-Length: 9001\r\nExpect: 100-continue",
        ))
        .await;
    unfinished.0.read_exact(&mut [0; 25]).await.unwrap();
    unfinished.send([b'x'; 9_000]).await;

    let mut next = Client::to(addr).await;
    let refusal = loop {
        // The bytes of the first one may not have been read yet.
        next.send(post_head("/read", "Content-Length: 5000")).await;
        next.send([b'x'; 5_000]).await;
        let (head, body) = next.answer().await;
        if !head.starts_with("HTTP/1.1 200") {
            break (head, body);
        }
    };
    let (head, body) = refusal;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert!(head.contains("\r\nretry-after: 5\r\n"), "{head}");
    assert!(body.contains("try again"), "{body}");

    unfinished.send("x").await;
    let (_, body) = unfinished.answer().await;
    assert_eq!(body, "read 9001");
    next.send(post_head("/read", "Content-Length: 5000")).await;
    next.send([b'x'; 5_000]).await;
    let (_, body) = next.answer().await;
    assert_eq!(body, "read 5000");
}

/// Ends when it is dropped, and says so.
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

#[tokio::test]
async fn connections_beyond_the_bound_are_told_so_and_harm_nobody() {
    let settings = EdgeSettings {
        connections: 3,
        ..EdgeSettings::default()
    };
    let addr = start(settings).await;
    let mut served = Vec::new();
    for _ in 0..3 {
        let mut client = Client::to(addr).await;
        client.is_served().await;
        served.push(client);
    }
    for _ in 0..200 {
        let refusal = Client::to(addr).await.rest().await;
        if !refusal.is_empty() {
            assert!(refusal.starts_with("HTTP/1.1 503"), "{refusal}");
            assert!(refusal.contains("retry-after: "), "{refusal}");
            assert!(refusal.contains(r#"{"error":"#), "{refusal}");
        }
    }
    for client in &mut served {
        client.is_served().await;
    }
    served.pop();
    loop {
        let mut next = Client::to(addr).await;
        next.send("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await;
        if next.rest().await.starts_with("HTTP/1.1 200") {
            break;
        }
    }
}

#[tokio::test]
async fn what_is_no_request_is_answered_in_the_shape_of_all_errors() {
    let addr = start(EdgeSettings::default()).await;
    let long = format!("GET /ok HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    let many = format!("GET /ok HTTP/1.1\r\n{}\r\n", "X: x\r\n".repeat(200));
    let address = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000));
    for (wrong, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (long, "431"),
        (many, "431"),
        (address, "431"),
    ] {
        let mut client = Client::to(addr).await;
        client.send(wrong).await;
        let answer = client.rest().await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body["error"].is_string(), "{body}");
    }
}
