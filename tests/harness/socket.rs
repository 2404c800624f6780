//! A WebSocket client that others wrote, with frames as JSON.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::System;

const PATIENCE: Duration = Duration::from_secs(20);

/// An open socket.
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    /// Connects without saying who.
    pub async fn connect(system: &System) -> Self {
        let (stream, _) = connect_async(format!("ws://{}/ws", system.addr()))
            .await
            .expect("a socket");
        Self { stream }
    }

    /// Connects and authenticates by the first frame.
    pub async fn open(system: &System, token: &str) -> Self {
        let mut socket = Self::connect(system).await;
        socket
            .send(&json!({ "type": "auth", "token": token }))
            .await;
        assert_eq!(socket.next().await["type"], "ready");
        socket
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

    /// The next frame.
    pub async fn next(&mut self) -> Value {
        match self.receive().await {
            Message::Text(text) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("expected a frame, got {other:?}"),
        }
    }

    /// The next frame of a type, passing over others.
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
        loop {
            if let Message::Close(frame) = self.receive().await {
                return frame.map_or(1005, |CloseFrame { code, .. }| code.into());
            }
        }
    }

    async fn receive(&mut self) -> Message {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.stream.next()).await;
            let message = next.expect("a message in time").expect("an open socket");
            match message.expect("a message") {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }
}
