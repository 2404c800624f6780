//! A third-party WebSocket client, with frames as JSON.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::{System, eventually, proxy};

const TIMEOUT: Duration = Duration::from_secs(20);

/// An open socket.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Connects without authenticating.
    pub async fn connect(system: &System) -> Self {
        Self::connect_to(system, "/ws").await
    }

    /// The same at another path or query.
    pub async fn connect_to(system: &System, path: &str) -> Self {
        let address = format!("ws://{}{path}", system.addr());
        let tcp = proxy::connect(system.addr()).await.expect("a connection");
        let (stream, _) = client_async(address, tcp).await.expect("a socket");
        Self { stream }
    }

    /// Connects and authenticates by the first frame.
    pub async fn open(system: &System, token: &str) -> Self {
        // The process that holds sockets may learn of a new key a moment after the others.
        eventually("the key to be known to sockets", async || {
            let mut socket = Self::connect(system).await;
            let frame = json!({ "type": "auth", "token": token });
            socket.send(&frame).await;
            match socket.receive().await {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(&text).expect("JSON");
                    if frame["error"] == "invalid token" {
                        return None;
                    }
                    assert_eq!(frame, json!({"type": "ready"}));
                    Some(socket)
                }
                _ => None,
            }
        })
        .await
    }

    /// Connects with subprotocols; returns the one that the server selected.
    pub async fn offer(
        system: &System,
        protocols: &str,
    ) -> Result<(Self, Option<String>), Box<tungstenite::Error>> {
        Self::with_headers(system, "/ws", &[("sec-websocket-protocol", protocols)]).await
    }

    /// Connects to a path with further headers; returns the subprotocol that the server selected.
    pub async fn with_headers(
        system: &System,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<(Self, Option<String>), Box<tungstenite::Error>> {
        let mut request = format!("ws://{}{path}", system.addr())
            .into_client_request()
            .expect("a request");
        for (name, value) in headers {
            let value = value.parse().expect("a header");
            request.headers_mut().insert(*name, value);
        }
        let tcp = proxy::connect(system.addr()).await.expect("a connection");
        let (stream, answer) = client_async(request, tcp).await?;
        let selected = answer.headers().get("sec-websocket-protocol");
        let selected = selected.map(|value| value.to_str().expect("text").to_owned());
        Ok((Self { stream }, selected))
    }

    /// Subscribes and returns the position from which events follow; skips the snapshot.
    pub async fn subscribe(&mut self, id: &str, channel: &str, after: Option<&str>) -> String {
        let mut frame = json!({"type": "subscribe", "id": id, "channel": channel});
        if let Some(after) = after {
            frame["after"] = after.into();
        }
        self.send(&frame).await;
        let subscribed = self.next().await;
        assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
        assert_eq!(subscribed["id"], id);
        if after.is_none() {
            let snapshot = self.next().await;
            assert_eq!(snapshot["type"], "snapshot", "{snapshot}");
            assert_eq!(snapshot["id"], id);
        }
        subscribed["position"].as_str().expect("a position").into()
    }

    /// Disconnects without a closing frame.
    pub fn cut(self) {
        drop(self);
    }

    /// Sends a frame.
    pub async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    /// Sends a frame that need not be JSON.
    pub async fn send_text(&mut self, text: &str) {
        self.stream
            .send(Message::text(text))
            .await
            .expect("sending");
    }

    /// Sends a ping, to show that the client is there.
    pub async fn ping(&mut self) {
        let ping = Message::Ping(Vec::new().into());
        self.stream.send(ping).await.expect("sending");
    }

    /// The next frame.
    pub async fn next(&mut self) -> Value {
        match self.receive().await {
            Message::Text(text) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("expected a frame, got {other:?}"),
        }
    }

    /// The next frame of a type, skipping others.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// The code with which the server closes.
    pub async fn close_code(&mut self) -> u16 {
        self.end().await.expect("a closing frame")
    }

    /// The code with which the server closes; `None` if it disconnects without a closing frame.
    pub async fn end(&mut self) -> Option<u16> {
        loop {
            match self.try_receive().await {
                Ok(Message::Close(frame)) => {
                    return Some(frame.map_or(1005, |CloseFrame { code, .. }| code.into()));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    async fn receive(&mut self) -> Message {
        self.try_receive().await.expect("a message")
    }

    async fn try_receive(&mut self) -> Result<Message, Box<tungstenite::Error>> {
        loop {
            let next = tokio::time::timeout(TIMEOUT, self.stream.next()).await;
            let message = next.expect("a message in time").expect("an open socket");
            match message? {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return Ok(message),
            }
        }
    }
}
