//! Limits for clients that are slow, silent, greedy or merely refused.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod early_answers;
mod greedy;
mod slow;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use service::settings::EdgeSettings;
use service::{HttpError, edge, listen, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
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

/// A raw connection.
struct Client(TcpStream);

impl Client {
    async fn to(addr: SocketAddr) -> Self {
        Self(TcpStream::connect(addr).await.unwrap())
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads one response with a `Content-Length`: its head and its body.
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

    /// Reads everything until the server closes.
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
